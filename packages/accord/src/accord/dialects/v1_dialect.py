"""The dialect of version 1: the lossy one. The answer to a prompt tells how its turn ended.

Most updates go as they are made. A tool call is a `tool_call` where it begins and a `tool_call_update` afterwards, and
the plan `main` is the `plan`. What version 1 has no word for becomes the nearest one; replays say it in the same way:

| in the vocabulary | in version 1 |
|---|---|
| a kind of tool that version 1 lacks, unless an agent's own (`_name`) | `other` |
| the statuses `paused`, `cancelled`, and unknown ones | `in_progress`, `failed`, `in_progress` |
| a field of a tool call that is cleared | its default; a title, a name and raw values stay as they were |
| what the client can do with a tool call | left out |
| a diff whose patch does not have the whole texts | its patch as text |
| the plan `main` that is removed | the plan without steps |
| a cancelled step of a plan; an unknown status of one; an unknown priority | `completed`; `pending`; `medium` |
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, cast, get_args

from msgspec import UNSET

from accord.dialects.dialect import ENDED, Dialect
from accord.errors import ConversionError
from accord.printable import fenced
from accord.schema import v1
from accord.schema.base import Unknown
from accord.schema.capabilities import updates_of, updates_that_need
from accord.schema.unknown_members import unknown_members, with_unknown_members
from accord.session import updates

REMEMBERED = 10_000
"""Tool calls of a session that are known as begun; a change of an older one that has a title begins it anew."""


@functools.cache
def _known() -> frozenset[type[Any]]:
    """The updates that version 1 has."""
    return updates_of(v1.SessionNotification)


@functools.cache
def sendable() -> frozenset[type[Any]]:
    """Updates that can simply be sent."""
    known = _known() - {v1.ToolCall, v1.ToolCallProgress}
    return known.difference(updates_that_need(v1.SessionNotification)) | {Unknown}


class V1Dialect(Dialect):
    """How a session speaks in version 1."""

    version = 1
    replaces_messages = False
    commands_come_with_answers = False

    def __init__(self) -> None:
        self.agent_chunk = v1.AgentMessageChunk
        self.thought_chunk = v1.AgentThoughtChunk
        self.user_chunk = v1.UserMessageChunk
        self.sendable = sendable()
        self._begun: dict[str, None] = {}
        """The tool calls that the client knows, the newest of them."""
        self._content: dict[str, list[Any]] = {}
        """The content of each unfinished tool call, because every change holds all of it."""

    def message(self, message_id: v1.MessageId, blocks: Sequence[v1.ContentBlock]) -> Sequence[Any]:
        return [v1.AgentMessageChunk(block, message_id) for block in blocks]

    def fitted(self, update: Any) -> Sequence[Any]:
        kind = update.__class__
        if kind is updates.ToolCallProgress:
            return self._tool_call(update)
        if kind is updates.ToolCallContentChunk:
            content = [*self._content.get(update.tool_call_id, ()), update.content]
            return self._tool_call(updates.ToolCallProgress(update.tool_call_id, content=content))
        if kind is updates.PlanUpdate:
            return (plan(update),)
        if kind is updates.PlanRemoved and update.plan_id == updates.MAIN_PLAN:
            return (v1.Plan([], meta=update.meta),)
        if kind in _known():
            return (update,)
        from accord.schema.conversion import all_to_v1  # loads the types of version 2, which the author has loaded

        return all_to_v1(update)

    def _tool_call(self, update: updates.ToolCallProgress) -> Sequence[Any]:
        """A tool call that the client does not know begins, if it has a title; so does one that says everything."""
        said = tool_call_fields(update)
        if update.content:
            self._content[update.tool_call_id] = list(update.content)
        if update.status in ENDED or update.content is None:
            self._content.pop(update.tool_call_id, None)
        begins = update.title and (update.tool_call_id not in self._begun or _says_all(update))
        if not begins:
            if len(said) == 1 and said["meta"] is None:
                return ()
            made: Any = v1.ToolCallProgress(update.tool_call_id, **said)
        else:
            self._begun[update.tool_call_id] = None
            if len(self._begun) > REMEMBERED:
                del self._begun[next(iter(self._begun))]
            made = v1.ToolCall(update.tool_call_id, **said)
        if unknown := unknown_members(update):
            made = with_unknown_members(made, unknown)
        return (made,)


V1_ONLY: frozenset[Any] = frozenset((v1.ToolCall, v1.ToolCallProgress, v1.Plan))
"""The updates that only version 1 has."""


# Tool calls and plans in the words of version 1. PURE.

KINDS = frozenset(get_args(v1.ToolKind))
STATUSES = {word: word for word in get_args(v1.ToolCallStatus)} | {"cancelled": "failed"}
_STEP_STATUSES = {word: word for word in get_args(v1.PlanEntryStatus)} | {"cancelled": "completed"}
_PRIORITIES = frozenset(get_args(v1.PlanEntryPriority))
_AS_THEY_ARE = (updates.Content, updates.TextDiff, updates.Terminal, updates.SessionReference, Unknown)
_FIELDS = ("title", "kind", "status", "content", "locations", "raw_input", "raw_output", "name")


def tool_call_fields(update: updates.ToolCallUpdate) -> dict[str, Any]:
    """The fields of `v1.ToolCallUpdate` for this update, but its id."""
    said: dict[str, Any] = {"meta": update.meta or None}
    for name in _FIELDS:
        value: Any = getattr(update, name)
        if value is not UNSET:
            if name == "status":
                value = STATUSES.get(value or "pending", "in_progress")
            elif name == "kind":
                value = tool_kind(value or "other")
            elif name == "content":
                value = [each for item in value or () for each in tool_content(item)]
            elif name == "locations":
                value = value or []
            elif value is None:
                continue
            said[name] = value
    return said


def tool_kind(kind: str) -> str:
    """The kind of a tool."""
    return kind if kind in KINDS or kind.startswith("_") else "other"


def tool_content(item: Any) -> list[Any]:
    """What an item of a tool call's content becomes."""
    if isinstance(item, _AS_THEY_ARE):
        return [item]
    from accord.schema.conversion import all_to_v1  # loads the types of version 2

    try:
        return all_to_v1(item)
    except ConversionError:
        return [updates.Content.of(fenced("\n".join(item.summary) if item.patch is None else item.patch.text))]


def _says_all(update: updates.ToolCallUpdate) -> bool:
    return all(getattr(update, name) is not UNSET for name in _FIELDS)


def plan(update: updates.PlanUpdate) -> v1.Plan | v1.PlanUpdate:
    """A plan; the plan `main` has no id."""
    told = update.plan
    if not isinstance(told, updates.PlanItems):
        return v1.PlanUpdate(cast("Any", told), meta=update.meta)
    if told.plan_id == updates.MAIN_PLAN:
        return v1.Plan(steps(told.entries), meta=update.meta)
    return v1.PlanUpdate(v1.PlanItems(told.plan_id, steps(told.entries), meta=told.meta), meta=update.meta)


def steps(entries: Iterable[updates.PlanEntry]) -> list[v1.PlanEntry]:
    """The steps of a plan."""
    return [
        v1.PlanEntry(
            step.content,
            cast("Any", step.priority if step.priority in _PRIORITIES else "medium"),
            cast("Any", _STEP_STATUSES.get(step.status, "pending")),
            meta=step.meta,
        )
        for step in entries
    ]
