"""The values in a session's state: messages, tool calls, subagents, and a snapshot of everything."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from accord.schema import codec, shared_updates as updates
from accord.schema.base import Json, JsonObject, Unknown, Upsert, words
from accord.schema.content import ContentBlock, TextContent
from accord.schema.shared_updates import (
    PlanEntry,
    PlanId,
    PlanUpdateContent,
    ToolCallContent,
    ToolCallContentChunk,
    ToolCallLocation,
    ToolCallUpdate,
)

# Text that comes in chunks, in which an emoji may have been split in two, and the approximate sizes of values.
#
# JavaScript counts a character beyond the first 65,536 as two, and agents written in it split between them. Each half
# comes as a lone surrogate, which UTF-8 cannot encode; together they are the character again.


class JoinedText:
    """Text that comes in chunks; an emoji that was split between two chunks is joined again.

    >>> text = JoinedText()
    >>> text.add("Hi \\ud83d"), text.add("\\ude00")
    ('Hi ', '😀')
    >>> text.read()
    'Hi 😀'
    """

    __slots__ = ("_buffer", "_half")

    def __init__(self) -> None:
        self._buffer = io.StringIO()
        self._half = ""

    def add(self, chunk: str) -> str:
        """Add a chunk; returns the text that is complete now. Half an emoji at its end waits for the other half."""
        if self._half:
            chunk = mended(self._half, chunk)
            self._half = ""
        if chunk and "\ud800" <= chunk[-1] <= "\udbff":
            chunk, self._half = chunk[:-1], chunk[-1]
        self._buffer.write(chunk)
        return chunk

    def rest(self) -> str:
        """The half that still waits, at the end of the text."""
        return self._half

    def read(self) -> str:
        """The whole text so far."""
        return self._buffer.getvalue() + self._half

    def __len__(self) -> int:
        return self._buffer.tell()


def whole_part(half: str, chunk: str) -> tuple[str, str]:
    """Return this chunk after a waiting half: the text that is complete now, and a half at its end."""
    chunk = mended(half, chunk)
    if chunk and "\ud800" <= chunk[-1] <= "\udbff":
        return chunk[:-1], chunk[-1]
    return chunk, ""


def mended(first: str, second: str) -> str:
    """Return two chunks as one text; an emoji that was split between them is joined."""
    if first and second and "\ud800" <= first[-1] <= "\udbff" and "\udc00" <= second[0] <= "\udfff":
        emoji = chr(0x10000 + ((ord(first[-1]) - 0xD800) << 10) + ord(second[0]) - 0xDC00)
        return first[:-1] + emoji + second[1:]
    return first + second


class GrowingContent:
    """Content blocks that may still grow; adjacent plain text becomes one block."""

    __slots__ = ("_blocks", "run")

    def __init__(self) -> None:
        self._blocks: list[ContentBlock] = []
        self.run: JoinedText | None = None

    def add(self, content: ContentBlock) -> None:
        """Add a block, or its text to the last one."""
        if isinstance(content, TextContent) and content.annotations is None and content.meta is None:
            if self.run is None:
                self.run = JoinedText()
            self.run.add(content.text)
        else:
            self._end_run()
            self._blocks.append(content)

    def replace(self, content: Iterable[ContentBlock]) -> None:
        """Replace all blocks."""
        self._blocks, self.run = list(content), None

    def read(self) -> tuple[ContentBlock, ...]:
        """The blocks so far."""
        return (*self._blocks, *([] if self.run is None else [TextContent(self.run.read())]))

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        return sum(map(size_of, self._blocks)) + (0 if self.run is None else len(self.run))

    def _end_run(self) -> None:
        if self.run is not None:
            self._blocks.append(TextContent(self.run.read()))
            self.run = None


WEIGHT = 350
"""Bytes that a value takes besides its text."""


def size_of(value: Any) -> int:
    """The approximate size of a value in bytes."""
    try:
        return WEIGHT + len(codec.strict_encode(value))
    except codec.ENCODE_REFUSALS:  # half a surrogate pair, for instance
        return WEIGHT + len(repr(value))


def oldest_beyond(sizes: Sequence[int], room: int) -> int:
    """Return how many of the first sizes must be dropped so that the rest fits into `room`.

    >>> oldest_beyond([5, 4, 3], room=8)
    1
    """
    total, gone = sum(sizes), 0
    while total > room:
        total -= sizes[gone]
        gone += 1
    return gone


# The values in a session's state: messages, tool calls, and a snapshot of everything.


Speaker = Literal["user", "agent", "thought"]
"""The speaker of a message; a thought is the agent's reasoning."""

Status: TypeAlias = Annotated[str, words("pending", "in_progress", "paused", "completed", "failed", "cancelled")]
"""The status of a tool call.

In version 1, `cancelled` is ours, for a call that was unfinished when its turn was cancelled. Agents that speak version
2 report `cancelled` and `paused`, and may use other words.
"""


class Message(msgspec.Struct, frozen=True):
    """A message, as much of it as has arrived."""

    speaker: Speaker
    """Its speaker."""
    content: tuple[ContentBlock, ...]
    """Its blocks; adjacent chunks of plain text are one block."""
    id: updates.MessageId | None = None
    """Its id, from agents that send one."""
    refused: bool = False
    """Whether its turn was refused; the agent then continues the conversation without it."""
    meta: JsonObject | None = None
    """Its `_meta`, from agents that speak version 2."""

    @property
    def text(self) -> str:
        """Its text; images and other blocks are left out."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))


class ToolCallState(msgspec.Struct, frozen=True):
    """A tool call after all of its updates so far."""

    id: updates.ToolCallId
    title: str = ""
    kind: updates.ToolKind = "other"
    status: Status = "pending"
    content: Sequence[ToolCallContent] = ()
    """Its output. An agent that speaks version 2 sends a `updates.Diff` for a change of files."""
    locations: Sequence[ToolCallLocation] = ()
    raw_input: Json = None
    raw_output: Json = None
    name: str | None = None
    meta: JsonObject | None = None
    refused: bool = False
    """Whether its turn was refused, like a message's."""
    capabilities: updates.ToolCallCapabilities | None = None
    """The client's present actions on it, from agents that speak version 2."""

    @property
    def can_cancel(self) -> bool:
        """Whether the agent offers to cancel this tool call by itself."""
        return self.capabilities is not None and self.capabilities.cancel is not None

    @property
    def is_finished(self) -> bool:
        """Whether the call is completed, failed or cancelled."""
        return self.status in ("completed", "failed", "cancelled")

    @property
    def diffs(self) -> list[updates.TextDiff]:
        """The changes of files in its content."""
        return [part for part in self.content if isinstance(part, updates.TextDiff)]

    @property
    def text(self) -> str:
        """The text in its content, joined by newlines; diffs, terminals, images and the like are left out."""
        blocks = [part.content for part in self.content if isinstance(part, updates.Content)]
        return "\n".join(block.text for block in blocks if isinstance(block, TextContent))

    def outcome(self, failure_of: Callable[[str], str | None] = lambda _: None) -> tuple[Status, str]:
        """Return the call's status, and the reason; every display of tool calls uses this.

        A call has failed if a command that is shown in it has, whatever the agent reports. `failure_of` returns the
        ending of a command that failed, by the id of its terminal.
        """
        if self.status not in ("completed", "failed"):
            return self.status, ""
        terminals = (part.terminal_id for part in self.content if isinstance(part, updates.Terminal))
        why = next(filter(None, map(failure_of, terminals)), None)
        return (self.status, "") if why is None else ("failed", why)

    def updated(self, update: ToolCallUpdate | ToolCallContentChunk) -> ToolCallState:
        """Return this tool call after an update: omitted fields stay, and cleared ones are as at the beginning."""
        if isinstance(update, ToolCallContentChunk):
            return msgspec.structs.replace(self, content=[*self.content, update.content])
        kind: Any = update.kind  # also a word that nobody knows
        return ToolCallState(
            self.id,
            self.title if (title := update.title) is UNSET else "" if title is None else title,
            self.kind if kind is UNSET else "other" if kind is None else kind,
            self.status if (status := update.status) is UNSET else "pending" if status is None else status,
            self.content if (content := update.content) is UNSET else () if content is None else content,
            self.locations if (locations := update.locations) is UNSET else () if locations is None else locations,
            self.raw_input if update.raw_input is UNSET else update.raw_input,
            self.raw_output if update.raw_output is UNSET else update.raw_output,
            self.name if update.name is UNSET else update.name,
            self.meta if update.meta is UNSET else patched_meta(self.meta, update.meta),
            self.refused,
            self.capabilities if update.capabilities is UNSET else update.capabilities,
        )


MOST_META = 1_000
"""Members that the `_meta` of a tool call keeps, the newest of all its updates. Each update costs a copy of them."""


def _merged(kept: dict[str, Json] | None, new: dict[str, Json]) -> dict[str, Json]:
    if not kept:
        return new
    merged = {**kept, **new}
    if len(merged) > MOST_META:
        for name in list(merged)[:-MOST_META]:
            del merged[name]
    return merged


def patched_meta(kept: dict[str, Json] | None, patch: dict[str, Json] | UnsetType | None) -> dict[str, Json] | None:
    """Return the `_meta` of something after an upsert: omitted, it stays; `null` clears it; else each key is patched.

    A key with `null` is removed. Any other value replaces the previous one as a whole.
    """
    if patch is UNSET:
        return kept
    if patch is None:
        return None
    removed = [name for name, value in patch.items() if value is None]
    merged = _merged({name: value for name, value in (kept or {}).items() if name not in removed}, patch)
    left = {name: value for name, value in merged.items() if value is not None}
    return left or None


def meta_after(kept: dict[str, Json] | None, update: Upsert) -> dict[str, Json] | None:
    """Return the `_meta` of something after an update, by the rules of the update's version."""
    return update.meta if update.__replaces_meta__ and update.meta is not UNSET else patched_meta(kept, update.meta)


Entry: TypeAlias = Message | ToolCallState
"""An entry of a session's timeline."""

ConfigOption: TypeAlias = updates.SessionConfigSelect | updates.SessionConfigBoolean
"""A config option of a known type."""

Update: TypeAlias = updates.Update | ToolCallUpdate
"""A session update of either version, or a permission request's changes of a tool call."""

Observer: TypeAlias = Callable[[Update | None], object]
"""Called after a change, with the update that made it; None for a change by the client itself."""

ReplacementObserver: TypeAlias = Callable[[Message, Message], object]
"""Called with a message before and after an update has replaced its content."""


class Snapshot(msgspec.Struct, frozen=True):
    """A session's state at one moment; it never changes."""

    timeline: tuple[Entry, ...]
    plan: tuple[PlanEntry, ...]
    plans: dict[PlanId, PlanUpdateContent]
    commands: tuple[updates.AvailableCommand | updates.Skill, ...]
    modes: tuple[updates.SessionMode, ...]
    mode: updates.SessionModeId | None
    models: tuple[updates.ModelInfo, ...]
    model: updates.ModelId | None
    config: tuple[ConfigOption, ...]
    usage: updates.UsageUpdate | None
    title: str | None
    updated_at: str | None
    notices: tuple[updates.Notice, ...]
    unknown: tuple[Unknown, ...]
    forgotten: int = 0
    """How many older entries were dropped from the timeline because of the limit."""
    activity: str | None = None
    """The session's activity, from agents that speak version 2; see `SessionState.activity`."""
    background: tuple[updates.BackgroundWork, ...] | None = None
    """The background work, from agents that speak version 2; see `SessionState.background`."""


class Compaction(GrowingContent):
    """A compaction of the agent's context."""

    __slots__ = ("error", "id", "meta", "status")

    def __init__(self, compaction_id: updates.CompactionId) -> None:
        super().__init__()
        self.id = compaction_id
        self.status: updates.CompactionStatus = "in_progress"
        self.error: str | None = None
        self.meta: JsonObject | None = None

    @property
    def weight(self) -> int:
        """The approximate size in bytes."""
        return WEIGHT + self.size

    @property
    def summary(self) -> tuple[ContentBlock, ...]:
        """The summary that replaces the compacted part, as much of it as has arrived."""
        return self.read()


class SessionCursor(msgspec.Struct, frozen=True):
    """A place in a session's history, beside a message, a tool call or a compaction."""

    id: updates.CursorId
    anchor: updates.CursorAnchor | None
    """The thing beside which it is, and the side; None if the agent has not sent it."""
    can_fork: bool = False
    """Whether the session can be forked here now."""
    meta: JsonObject | None = None

    @property
    def anchor_id(self) -> str | None:
        """The id of the thing beside which it is; None if that is not known."""
        names = ("message_id", "tool_call_id", "compaction_id")
        return next((found for name in names if (found := getattr(self.anchor, name, None)) is not None), None)

    def updated(self, update: updates.CursorUpdate) -> SessionCursor:
        """The cursor after this update; its anchor never changes."""
        can_fork = self.can_fork
        if update.capabilities is not UNSET:
            can_fork = update.capabilities is not None and update.capabilities.fork is not None
        return SessionCursor(self.id, self.anchor or update.anchor, can_fork, patched_meta(self.meta, update.meta))


def choices_of(option: updates.SessionConfigSelect) -> list[updates.SessionConfigSelectOption]:
    """Return the values of a config option, those of all groups together."""
    groups = ([it] if isinstance(it, updates.SessionConfigSelectOption) else it.options for it in option.options)
    return [value for group in groups for value in group]


# A session's subagents, and the messages that sessions send each other, after all of their updates.


class SubagentState(msgspec.Struct, frozen=True):
    """A subagent of a session, after all of its updates so far; None means unknown."""

    session_id: updates.SessionId
    title: str | None = None
    description: str | None = None
    capabilities: updates.SubagentSessionCapabilities | None = None
    state: updates.StateUpdate | None = None
    cwd: str | None = None
    additional_directories: list[str] | None = None
    meta: JsonObject | None = None

    @property
    def background(self) -> list[updates.BackgroundWork] | None:
        """Its background work; None if the agent does not report it."""
        return getattr(self.state, "background", None)

    def updated(self, update: updates.SubagentUpdate) -> SubagentState:
        """Return this subagent after an update: omitted fields stay, and cleared ones become None."""
        return msgspec.structs.replace(self, **{**given(update), "meta": meta_after(self.meta, update)})


class SessionMessageState(GrowingContent):
    """A message from one session to another, after all of its updates so far."""

    __slots__ = ("id", "meta", "recipient_message_id", "recipient_session_id", "sender_message_id", "sender_session_id")

    def __init__(self, message_id: updates.MessageId) -> None:
        super().__init__()
        self.id = message_id
        self.sender_session_id: updates.SessionId | None = None
        self.recipient_session_id: updates.SessionId | None = None
        self.sender_message_id: updates.MessageId | None = None
        self.recipient_message_id: updates.MessageId | None = None
        self.meta: JsonObject | None = None

    @property
    def content(self) -> tuple[ContentBlock, ...]:
        """Its content, as much of it as has arrived."""
        return self.read()

    @property
    def weight(self) -> int:
        """The approximate size in bytes, `_meta` included."""
        return WEIGHT + self.size + (0 if self.meta is None else len(repr(self.meta)))

    def update(self, update: updates.SessionMessage) -> None:
        """Apply an update: omitted fields stay, and cleared ones become None."""
        for name in ("sender_session_id", "recipient_session_id", "sender_message_id", "recipient_message_id"):
            if (value := getattr(update, name)) is not UNSET:
                setattr(self, name, value)
        if update.content is not UNSET:
            self.replace(update.content or ())
        self.meta = meta_after(self.meta, update)


def given(update: Upsert) -> dict[str, Any]:
    """Return the fields that an update contains, including those that it clears."""
    return {name: value for name in update.__struct_fields__ if (value := getattr(update, name)) is not UNSET}
