"""Results and messages of MCP servers in ACP's types; both protocols use the same JSON for content blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from accord.consent import Consent
from accord.schema import codec, v1
from accord.schema.base import Json, Unknown

if TYPE_CHECKING:
    import mcp_types
    from pydantic import BaseModel


class McpResult(Consent, msgspec.Struct, frozen=True):
    """The result of a tool; it is true if the tool ran and succeeded, so it is false if the user did not allow it."""

    content: list[v1.ContentBlock | Unknown]
    """The result as content blocks, for models and people."""
    structured: Json = None
    """The result as JSON, for programs; None if the server does not give it."""
    failed: bool = False
    """Whether the tool reported a failure, or the user did not allow it; `content` says which."""

    def _agreed(self) -> bool:
        return not self.failed

    @property
    def text(self) -> str:
        """The text of all blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, v1.TextContent))


class McpMessage(msgspec.Struct, frozen=True):
    """A message of a prompt that a server filled in."""

    role: v1.Role
    """Who speaks: `user` or `assistant`."""
    content: v1.ContentBlock | Unknown
    """What is said."""


def result_of(result: mcp_types.CallToolResult) -> McpResult:
    """A result from the official package's."""
    return McpResult([*blocks_of(result.content)], result.structured_content, result.is_error)


def resource_of(result: mcp_types.ReadResourceResult) -> list[v1.EmbeddedResource]:
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
