"""What MCP servers say, in this protocol's words: content blocks are the same JSON in both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from accord.schema import codec, v1
from accord.schema.base import Json, Unknown

if TYPE_CHECKING:
    import mcp_types
    from pydantic import BaseModel


class McpResult(msgspec.Struct, frozen=True):
    """What a tool gave back."""

    content: list[v1.ContentBlock | Unknown]
    structured: Json = None
    """The same for programs, where the server gives it."""
    failed: bool = False
    """The tool ran and says that it failed; `content` says how."""

    @property
    def text(self) -> str:
        """All text in it."""
        return "\n".join(block.text for block in self.content if isinstance(block, v1.TextContent))


class McpMessage(msgspec.Struct, frozen=True):
    """A message of a prompt that a server filled in."""

    role: v1.Role
    content: v1.ContentBlock | Unknown


def result_of(result: mcp_types.CallToolResult) -> McpResult:
    return McpResult([*blocks_of(result.content)], result.structured_content, result.is_error)


def resource_of(result: mcp_types.ReadResourceResult) -> list[v1.EmbeddedResource]:
    return [
        v1.EmbeddedResource(codec.decode(_json(contents), v1.EmbeddedResourceResource)) for contents in result.contents
    ]


def messages_of(result: mcp_types.GetPromptResult) -> list[McpMessage]:
    return [McpMessage(message.role, block_of(message.content)) for message in result.messages]


def blocks_of(blocks: Iterable[BaseModel]) -> list[v1.ContentBlock | Unknown]:
    return [block_of(block) for block in blocks]


def block_of(block: BaseModel) -> v1.ContentBlock | Unknown:
    decoded: v1.ContentBlock | Unknown = codec.decode(_json(block), v1.ContentBlock)
    return decoded


def _json(value: BaseModel) -> bytes:
    return value.model_dump_json(by_alias=True, exclude_none=True).encode()
