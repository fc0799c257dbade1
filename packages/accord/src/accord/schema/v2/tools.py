"""Tool calls: what an agent does, and what came of it. Proposals: tool-call-updates, diff-file-states.

Differs from version 1: one upsert both begins and changes a tool call; content may be streamed; a client may cancel a
tool call that offers it; words are open sets.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta

from accord.schema.base import (
    Json,
    Model,
    Open,
    Patch,
    Request,
    Tolerant,
    UnsetType,
    ValidItems,
    words,
)
from accord.schema.v1.session import SessionId
from accord.schema.v1.tools import Terminal, ToolCallId
from accord.schema.v2.content import ContentBlock, as_block
from accord.schema.v2.diffs import Diff
from accord.schema.v2.protocol import AbsolutePath
from accord.schema.v2.upserts import Upsert

ToolKind: TypeAlias = Annotated[
    str,
    words("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"),
]
ToolCallStatus: TypeAlias = Annotated[
    str, words("pending", "in_progress", "paused", "completed", "failed", "cancelled")
]
_LineNumber = Annotated[int, Meta(ge=1, le=2**32 - 1)]


class Content(Model, tag_field="type", tag="content"):
    """Content that a tool produced."""

    content: ContentBlock

    @classmethod
    def of(cls, content: str | ContentBlock) -> Content:
        return cls(as_block(content))


ToolCallContent: TypeAlias = Open[Content | Diff | Terminal]


class ToolCallLocation(Model):
    """A place in a file that a tool works on, which an editor can follow."""

    path: AbsolutePath
    line: Tolerant[_LineNumber | None] = None


class ToolCallCancelCapabilities(Model):
    """Declares that the client may cancel a tool call."""


class ToolCallCapabilities(Model):
    """The client's present options for a tool call."""

    cancel: Tolerant[ToolCallCancelCapabilities | None] = None


class ToolCallUpdate(Upsert):
    """A tool call, or changes to it; the defaults are kind `other` and status `pending`."""

    tool_call_id: ToolCallId
    title: Tolerant[Patch[str]] = UNSET
    kind: Tolerant[Patch[ToolKind]] = UNSET
    status: Tolerant[Patch[ToolCallStatus]] = UNSET
    content: Tolerant[Patch[ValidItems[ToolCallContent]]] = UNSET
    locations: Tolerant[Patch[ValidItems[ToolCallLocation]]] = UNSET
    raw_input: Tolerant[Json | UnsetType] = UNSET
    raw_output: Tolerant[Json | UnsetType] = UNSET
    name: Tolerant[Patch[str]] = UNSET
    capabilities: Tolerant[Patch[ToolCallCapabilities]] = UNSET


class ToolCallProgress(ToolCallUpdate, tag_field="sessionUpdate", tag="tool_call_update"):
    """A `ToolCallUpdate` as a session update."""

    @classmethod
    def reading(cls, tool_call_id: ToolCallId, path: str, *, title: str | None = None) -> ToolCallProgress:
        """A file is being read."""
        return cls(tool_call_id, title or f"Read {path}", "read", "pending", locations=[ToolCallLocation(path)])

    @classmethod
    def editing(
        cls,
        tool_call_id: ToolCallId,
        path: str,
        new_text: str,
        old_text: str | None = None,
        *,
        title: str | None = None,
    ) -> ToolCallProgress:
        """A file is being changed; the diff shows how."""
        diff, place = Diff.of(path, new_text, old_text), ToolCallLocation(path)
        return cls(tool_call_id, title or f"Edit {path}", "edit", "pending", [diff], [place])


class ToolCallContentChunk(Model, tag_field="sessionUpdate", tag="tool_call_content_chunk"):
    """An item to append to a tool call's content."""

    tool_call_id: ToolCallId
    content: ToolCallContent


class CancelToolCallResponse(Model):
    """The result of `tool_call/cancel`; the status follows when the tool call has ended."""


class CancelToolCallRequest(Request[CancelToolCallResponse], method="tool_call/cancel"):
    """Cancel one tool call; needs the tool call's `capabilities.cancel`."""

    session_id: SessionId
    tool_call_id: ToolCallId
