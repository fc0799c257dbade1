"""What MCP servers offer, in a few plain fields."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from accord.schema import v1
from accord.schema.base import Json

if TYPE_CHECKING:
    import mcp_types


class McpTool(msgspec.Struct, frozen=True):
    """Something that a server can do."""

    server: str
    name: str
    title: str
    description: str
    input_schema: dict[str, Json]
    """JSON Schema of its arguments, as a model API wants it."""
    kind: v1.ToolKind = "other"

    @property
    def qualified_name(self) -> str:
        """Unique among the tools of all servers: `server/tool`."""
        return f"{self.server}/{self.name}"


class McpResource(msgspec.Struct, frozen=True):
    """Something that a server has to read."""

    server: str
    link: v1.ResourceLink

    @property
    def uri(self) -> str:
        return self.link.uri


class McpPrompt(msgspec.Struct, frozen=True):
    """A prompt that a server fills in."""

    server: str
    name: str
    title: str
    description: str
    arguments: dict[str, bool] = msgspec.field(default_factory=dict[str, bool])
    """Each argument's name, and whether it has to be given."""

    @property
    def qualified_name(self) -> str:
        """Unique among the prompts of all servers: `server/prompt`."""
        return f"{self.server}/{self.name}"


def tool_of(server: str, tool: mcp_types.Tool) -> McpTool:
    hints = tool.annotations
    title = tool.title or (hints.title if hints else None) or tool.name
    kind: v1.ToolKind = "read" if hints and hints.read_only_hint else "other"
    return McpTool(server, tool.name, title, tool.description or "", tool.input_schema, kind)


def resource_of(server: str, resource: mcp_types.Resource) -> McpResource:
    name = resource.name or PurePath(resource.uri).name or resource.uri
    link = v1.ResourceLink(name, resource.uri, resource.title, resource.description, resource.mime_type, resource.size)
    return McpResource(server, link)


def prompt_of(server: str, prompt: mcp_types.Prompt) -> McpPrompt:
    arguments = {argument.name: bool(argument.required) for argument in prompt.arguments or []}
    return McpPrompt(server, prompt.name, prompt.title or prompt.name, prompt.description or "", arguments)
