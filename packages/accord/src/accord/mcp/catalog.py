"""The tools, resources, prompts and results of MCP servers, in plain fields and in ACP's types.

Both protocols use the same JSON for content blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from accord._internal import Consent
from accord.schema import codec, v1
from accord.schema.base import Json, Unknown

if TYPE_CHECKING:
    import mcp_types
    from pydantic import BaseModel


class McpTool(msgspec.Struct, frozen=True):
    """A tool of an MCP server."""

    server: str
    """The name of its server."""
    name: str
    """Its name, unique at its server."""
    title: str
    """Its name for people."""
    description: str
    """Its purpose, in the server's description for models."""
    input_schema: dict[str, Json]
    """The JSON Schema of its arguments, as model APIs expect it."""
    kind: v1.ToolKind = "other"
    """`read` if the server declares that the tool only reads."""

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
    """Its purpose, in the server's description."""
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


class McpResult(Consent, msgspec.Struct, frozen=True):
    """The result of a tool; it is true if the tool ran and succeeded, so it is false if the user did not allow it."""

    content: list[v1.ContentBlock | Unknown]
    """The result as content blocks, for models and people."""
    structured: Json = None
    """The result as JSON, for programs; None if the server returns none."""
    failed: bool = False
    """Whether the tool reported a failure, or the user did not allow it; `content` has the reason."""

    def _agreed(self) -> bool:
        return not self.failed

    @property
    def text(self) -> str:
        """The text of all blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, v1.TextContent))


class McpMessage(msgspec.Struct, frozen=True):
    """A message of a prompt that a server filled in."""

    role: v1.Role
    """The speaker: `user` or `assistant`."""
    content: v1.ContentBlock | Unknown
    """The content."""


def result_of(result: mcp_types.CallToolResult) -> McpResult:
    """Convert a result of the official package."""
    return McpResult([*blocks_of(result.content)], result.structured_content, result.is_error)


def contents_of(result: mcp_types.ReadResourceResult) -> list[v1.EmbeddedResource]:
    """The contents of a resource from the official package's."""
    return [
        v1.EmbeddedResource(codec.decode(_json(contents), v1.EmbeddedResourceResource)) for contents in result.contents
    ]


def messages_of(result: mcp_types.GetPromptResult) -> list[McpMessage]:
    """The messages of a prompt from the official package's."""
    return [McpMessage(message.role, block_of(message.content)) for message in result.messages]


def blocks_of(blocks: Iterable[BaseModel]) -> list[v1.ContentBlock | Unknown]:
    """Content blocks from the official package's."""
    return [block_of(block) for block in blocks]


def block_of(block: BaseModel) -> v1.ContentBlock | Unknown:
    """A content block from the official package's."""
    decoded: v1.ContentBlock | Unknown = codec.decode(_json(block), v1.ContentBlock)
    return decoded


def _json(value: BaseModel) -> bytes:
    return value.model_dump_json(by_alias=True, exclude_none=True).encode()
