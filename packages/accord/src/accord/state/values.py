"""The values that a session's state consists of: messages, tool calls, and a snapshot of everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from accord.schema import v1
from accord.schema.base import Json, Unknown, words
from accord.state.text import GrowingContent

if TYPE_CHECKING:
    from accord.schema import v2

Speaker = Literal["user", "agent", "thought"]
"""Who a message is from; a thought is what the agent thinks aloud."""

Status: TypeAlias = Annotated[str, words("pending", "in_progress", "paused", "completed", "failed", "cancelled")]
"""The status of a tool call.

In version 1, `cancelled` is ours, for a call that was unfinished when its turn was cancelled. Agents that speak version
2 report `cancelled` and `paused`, and may use other words.
"""


class Message(msgspec.Struct, frozen=True):
    """A message as far as it has come."""

    speaker: Speaker
    """Who it is from."""
    content: tuple[v1.ContentBlock, ...]
    """Its blocks; adjacent chunks of plain text are one block."""
    id: v1.MessageId | None = None
    """Its id, from agents that send one."""
    refused: bool = False
    """Whether its turn was refused; the agent then continues the conversation without it."""
    meta: dict[str, Json] | None = None
    """Its `_meta`, from agents that speak version 2."""

    @property
    def text(self) -> str:
        """Its text; images and other blocks are left out."""
        return "".join(block.text for block in self.content if isinstance(block, v1.TextContent))


class ToolCallState(msgspec.Struct, frozen=True):
    """A tool call after all of its updates so far."""

    id: v1.ToolCallId
    title: str = ""
    kind: v1.ToolKind = "other"
    status: Status = "pending"
    content: Sequence[v1.ToolCallContent | v2.Diff] = ()
    """What it produced. An agent that speaks version 2 sends a `v2.Diff` for a change of files."""
    locations: Sequence[v1.ToolCallLocation] = ()
    raw_input: Json = None
    raw_output: Json = None
    name: str | None = None
    meta: dict[str, Json] | None = None
    refused: bool = False
    """Whether its turn was refused, like a message's."""
    capabilities: v2.ToolCallCapabilities | None = None
    """What the client can do with it now, from agents that speak version 2."""

    @property
    def can_cancel(self) -> bool:
        """Whether the agent offers to cancel this tool call by itself."""
        return self.capabilities is not None and self.capabilities.cancel is not None

    @property
    def is_finished(self) -> bool:
        """Whether the call is completed, failed or cancelled."""
        return self.status in ("completed", "failed", "cancelled")

    @property
    def diffs(self) -> list[v1.Diff]:
        """The changes of files in its content."""
        return [part for part in self.content if isinstance(part, v1.Diff)]

    @property
    def text(self) -> str:
        """The text in its content, joined by newlines; diffs, terminals, images and the like are left out."""
        blocks = [part.content for part in self.content if isinstance(part, v1.Content)]
        return "\n".join(block.text for block in blocks if isinstance(block, v1.TextContent))

    def outcome(self, failure_of: Callable[[str], str | None] = lambda _: None) -> tuple[Status, str]:
        """Return how the call stands, and why: every place that shows tool calls asks here.

        A call has failed if a command that is shown in it has, whatever the agent says. `failure_of` gives the ending
        of a command that failed, by the id of its terminal.
        """
        if self.status not in ("completed", "failed"):
            return self.status, ""
        terminals = (part.terminal_id for part in self.content if isinstance(part, v1.Terminal))
        why = next(filter(None, map(failure_of, terminals)), None)
        return (self.status, "") if why is None else ("failed", why)

    def updated(self, update: v1.ToolCallUpdate | v1.ToolCall) -> ToolCallState:
        """This tool call after an update; fields that the update leaves out stay as they were.

        A call that was unfinished when its turn was cancelled stays `cancelled` unless it completes: an agent of
        version 1 has no such word, and says `failed`.
        """
        is_cancelled = self.status == "cancelled" and update.status != "completed"
        return ToolCallState(
            self.id,
            self.title if update.title is None else update.title,
            update.kind or self.kind,
            self.status if is_cancelled else update.status or self.status,
            self.content if update.content is None else update.content,
            self.locations if update.locations is None else update.locations,
            self.raw_input if update.raw_input is None else update.raw_input,
            self.raw_output if update.raw_output is None else update.raw_output,
            update.name or self.name,
            _merged(self.meta, update.meta) if update.meta else self.meta,
            self.refused,
            self.capabilities,
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
    """The `_meta` of something after an upsert: left out, it stays; `null` clears it; else each key is patched.

    A key with `null` is removed. Any other value replaces the one before as a whole.
    """
    if patch is UNSET:
        return kept
    if patch is None:
        return None
    removed = [name for name, value in patch.items() if value is None]
    merged = _merged({name: value for name, value in (kept or {}).items() if name not in removed}, patch)
    left = {name: value for name, value in merged.items() if value is not None}
    return left or None


Entry: TypeAlias = Message | ToolCallState
"""What stands in a session's timeline."""

ConfigOption: TypeAlias = v1.SessionConfigSelect | v1.SessionConfigBoolean
"""A config option of a known type."""

Update: TypeAlias = "v1.SessionUpdate | v1.ToolCallUpdate | v2.SessionUpdate | v2.ToolCallUpdate"
"""A session update of either version, or what a permission request says of a tool call."""

Observer: TypeAlias = Callable[[v1.SessionUpdate | v1.ToolCallUpdate | None], object]
"""Called after a change, with the update that made it; None for a change that the client itself made.

With an agent that speaks version 2 the update is one of version 2.
"""

ReplacementObserver: TypeAlias = Callable[[Message, Message], object]
"""Called with a message as it was and as it is, after an update has replaced what it said."""


class Snapshot(msgspec.Struct, frozen=True):
    """A session's state at one moment; it never changes."""

    timeline: tuple[Entry, ...]
    plan: tuple[v1.PlanEntry, ...]
    plans: dict[v1.PlanId, v1.PlanUpdateContent]
    commands: tuple[v1.AvailableCommand, ...]
    modes: tuple[v1.SessionMode, ...]
    mode: v1.SessionModeId | None
    models: tuple[v1.ModelInfo, ...]
    model: v1.ModelId | None
    config: tuple[ConfigOption, ...]
    usage: v1.UsageUpdate | None
    title: str | None
    updated_at: str | None
    notices: tuple[v1.Notice, ...]
    unknown: tuple[Unknown, ...]
    forgotten: int = 0
    """How many older entries were dropped from the timeline because of the limit."""
    activity: str | None = None
    """What the session does, from agents that speak version 2; see `SessionState.activity`."""
    background: tuple[v2.BackgroundWork, ...] | None = None
    """What runs in the background, from agents that speak version 2; see `SessionState.background`."""


class Compaction(GrowingContent):
    """A compaction of the agent's context."""

    __slots__ = ("error", "id", "meta", "status")

    def __init__(self, compaction_id: v1.CompactionId) -> None:
        super().__init__()
        self.id = compaction_id
        self.status: v1.CompactionStatus = "in_progress"
        self.error: str | None = None
        self.meta: dict[str, Json] | None = None

    @property
    def summary(self) -> tuple[v1.ContentBlock, ...]:
        """The summary that replaces the compacted part, as far as it has come."""
        return self.read()


def choices_of(option: v1.SessionConfigSelect) -> list[v1.SessionConfigSelectOption]:
    """The values of a config option, those of all groups together."""
    groups = ([it] if isinstance(it, v1.SessionConfigSelectOption) else it.options for it in option.options)
    return [value for group in groups for value in group]
