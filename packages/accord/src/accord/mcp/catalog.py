"""The tools, resources and prompts of MCP servers, in a few plain fields."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from accord.schema import v1
from accord.schema.base import Json

if TYPE_CHECKING:
    import mcp_types


class McpTool(msgspec.Struct, frozen=True):
    """A tool of an MCP server."""

    server: str
    """The name of its server."""
    name: str
    """Its name, unique at its server."""
    title: str
    """Its name for people."""
    description: str
    """What it does, as the server describes it to models."""
    input_schema: dict[str, Json]
    """The JSON Schema of its arguments, as model APIs expect it."""
    kind: v1.ToolKind = "other"
    """`read` if the server says that the tool only reads."""

    @property
    def qualified_name(self) -> str:
        """Its name among the tools of all servers: `server/tool`."""
        return f"{self.server}/{self.name}"


class McpResource(msgspec.Struct, frozen=True):
    """A resource of an MCP server."""

    server: str
    """The name of its server."""
    link: v1.ResourceLink
    """Its name, URI and description, as a block for prompts and messages."""

    @property
    def uri(self) -> str:
        """Its URI, by which it is read."""
        return self.link.uri


class McpPrompt(msgspec.Struct, frozen=True):
    """A prompt of an MCP server, which the server fills in."""

    server: str
    """The name of its server."""
    name: str
    """Its name, unique at its server."""
    title: str
    """Its name for people."""
    description: str
    """What it is for, as the server describes it."""
    arguments: dict[str, bool] = msgspec.field(default_factory=dict[str, bool])
    """Each argument's name, and whether it is required."""

    @property
    def qualified_name(self) -> str:
        """Its name among the prompts of all servers: `server/prompt`."""
        return f"{self.server}/{self.name}"


def tool_of(server: str, tool: mcp_types.Tool) -> McpTool:
    """A tool from the official package's."""
    hints = tool.annotations
    title = tool.title or (hints.title if hints else None) or tool.name
    kind: v1.ToolKind = "read" if hints and hints.read_only_hint else "other"
    return McpTool(server, tool.name, title, tool.description or "", tool.input_schema, kind)


def resource_of(server: str, resource: mcp_types.Resource) -> McpResource:
    """A resource from the official package's."""
    name = resource.name or PurePath(resource.uri).name or resource.uri
    link = v1.ResourceLink(name, resource.uri, resource.title, resource.description, resource.mime_type, resource.size)
    return McpResource(server, link)


def prompt_of(server: str, prompt: mcp_types.Prompt) -> McpPrompt:
    """A prompt from the official package's."""
    arguments = {argument.name: bool(argument.required) for argument in prompt.arguments or []}
    return McpPrompt(server, prompt.name, prompt.title or prompt.name, prompt.description or "", arguments)
