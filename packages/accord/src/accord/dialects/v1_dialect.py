"""The dialect of version 1: the lossy one. The answer to a prompt reports how its turn ended.

Most updates are sent unchanged. A tool call is a `tool_call` where it begins and a `tool_call_update` afterwards, and
the plan `main` is the `plan`. Updates that version 1 lacks become the nearest one that it has, in replays as well:

| in the vocabulary | in version 1 |
|---|---|
| a kind of tool that version 1 lacks, unless an agent's own (`_name`) | `other` |
| usage without a cost, which version 2 leaves as it was | no cost |
| what runs in the background of a subagent | left out |
| the statuses `paused`, `cancelled`, and unknown ones | `in_progress`, `failed`, `in_progress` |
| a field of a tool call that is cleared | its default; a title, a name and raw values stay as they were |
| what the client can do with a tool call | left out |
| a diff whose patch does not have the whole texts | its patch as text |
| the plan `main` that is removed | the plan without steps |
| a cancelled step of a plan; an unknown status of one; an unknown priority | `completed`; `pending`; `medium` |
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast, get_args

from msgspec import UNSET

from accord.dialects import ENDED, Dialect, folded_fields
from accord.errors import ConversionError
from accord.printable import fenced
from accord.schema import v1
from accord.schema.base import Unknown, unknown_members, with_unknown_members
from accord.schema.capabilities import updates_of, updates_that_need
from accord.schema.shared_updates import MAIN_PLAN
from accord.session import Message, SessionState, ToolCallState, updates
from accord.session.replay_scan import FoldedRecord, Key

REMEMBERED = 10_000
"""Tool calls of a session that the client is known to have; a change of an older one that has a title begins
it again.
"""


@functools.cache
def _own_updates() -> frozenset[type[Any]]:
    """The updates that version 1 has."""
    return updates_of(v1.SessionNotification)


@functools.cache
def sendable() -> frozenset[type[Any]]:
    """Return the classes of updates that can be sent unchanged."""
    known = _own_updates() - {v1.ToolCall, v1.ToolCallProgress}
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
        self._known: dict[str, None] = {}
        """The tool calls that the client knows, the newest of them."""
        self._content: dict[str, list[Any]] = {}
        """The content of each unfinished tool call, because every change contains all of it."""

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
        if kind in _own_updates():
            return (update,)
        if (own := own_update(update)) is not None:
            return (own,)
        from accord.schema.conversion import all_to_v1  # loads the types of version 2, which the author has loaded

        return all_to_v1(update)

    def _tool_call(self, update: updates.ToolCallProgress) -> Sequence[Any]:
        """Begin a tool call that the client does not know, if it has a title; also one whose update is complete."""
        tool_call_id, said = update.tool_call_id, tool_call_fields(update)
        if update.status in ENDED or (update.content is not UNSET and not update.content):
            self._content.pop(tool_call_id, None)
        elif update.content:
            self._content[tool_call_id] = list(update.content)
        is_known = tool_call_id in self._known
        if is_known and len(said) == 1 and said["meta"] is None:  # version 1 cannot express it
            return ()
        if not is_known:
            self._known[tool_call_id] = None
            if len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]
        made: Any
        if update.title and (not is_known or _says_all(update)):
            made = v1.ToolCall(tool_call_id, **said)
        else:
            made = v1.ToolCallProgress(tool_call_id, **said)
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
    """Convert an item of a tool call's content."""
    if isinstance(item, _AS_THEY_ARE):
        return [item]
    from accord.schema.conversion import all_to_v1  # loads the types of version 2

    try:
        return all_to_v1(item)
    except ConversionError:
        return [updates.Content.of(fenced("\n".join(item.summary) if item.patch is None else item.patch.text))]


def _says_all(update: updates.ToolCallUpdate) -> bool:
    return all(getattr(update, name) is not UNSET for name in (*_FIELDS, "meta"))


def plan(update: updates.PlanUpdate) -> v1.Plan | v1.PlanUpdate:
    """Convert a plan; the plan `main` has no id."""
    content = update.plan
    if not isinstance(content, updates.PlanItems):
        return v1.PlanUpdate(cast("Any", content), meta=update.meta)
    if content.plan_id == updates.MAIN_PLAN:
        return v1.Plan(steps(content.entries), meta=update.meta)
    return v1.PlanUpdate(v1.PlanItems(content.plan_id, steps(content.entries), meta=content.meta), meta=update.meta)


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


# The other updates for which version 1 has its own classes. PURE.

_OWN: dict[type, Any] = {
    updates.SessionInfoUpdate: v1.SessionInfoUpdate,
    updates.UsageUpdate: v1.UsageUpdate,
    updates.CompactionUpdate: v1.CompactionUpdate,
    updates.SubagentUpdate: v1.SubagentUpdate,
    updates.SessionMessage: v1.SessionMessage,
}


def own_update(update: Any) -> Any | None:
    """Return the update of version 1 for one of the vocabulary, or of version 2; None for others."""
    if isinstance(update, updates.AvailableCommandsUpdate):
        return v1.AvailableCommandsUpdate(commands(update.available_commands), meta=update.meta)
    if isinstance(update, updates.ConfigOptionUpdate):
        return v1.ConfigOptionUpdate(options_in_v1(update.config_options), meta=update.meta)
    own = next((own for kind, own in _OWN.items() if isinstance(update, kind)), None)
    if own is None:
        return None
    said = {name: value for name in own.__struct_fields__ if (value := getattr(update, name)) is not UNSET}
    if own is v1.SubagentUpdate and "state" in said:
        said["state"] = subagent_state(said["state"])
    if own is v1.CompactionUpdate:
        said["status"] = said.get("status") or "in_progress"
    return own(**said)


def subagent_state(state: Any) -> Any:
    """Return a subagent's state, without its background work."""
    kind: Any = next((it for it in _STATES if isinstance(state, it)), None)
    return state if kind is None else kind(**{name: getattr(state, name) for name in kind.__struct_fields__})


_STATES = (v1.RunningStateUpdate, v1.IdleStateUpdate, v1.RequiresActionStateUpdate, v1.UnknownStateUpdate)


def commands(offered: Iterable[Any]) -> list[v1.AvailableCommand]:
    """The commands among these; version 1 has no skills."""
    return [
        v1.AvailableCommand(it.name, it.description, _input(it.input), meta=it.meta)
        for it in offered
        if isinstance(it, updates.Command)
    ]


def _input(given: Any) -> v1.UnstructuredCommandInput | None:
    return v1.UnstructuredCommandInput(given.hint, meta=given.meta) if hasattr(given, "hint") else None


def options_in_v1(offered: Iterable[Any]) -> list[v1.SessionConfigOption]:
    """Convert config options; those of unknown types are not changed."""
    return [_option(it) for it in offered]


def _option(option: Any) -> v1.SessionConfigOption:
    if isinstance(option, v1.SessionConfigSelect | v1.SessionConfigBoolean | Unknown):
        return option
    fields = {name: getattr(option, name) for name in option.__struct_fields__}
    if isinstance(option, updates.SessionConfigBoolean):
        return v1.SessionConfigBoolean(**fields)
    fields["options"] = [
        v1.SessionConfigSelectGroup(it.group_id, it.name, it.options, meta=it.meta)
        if isinstance(it, updates.SessionConfigSelectGroup)
        else it
        for it in option.options
    ]
    return v1.SessionConfigSelect(**fields)


# Replays a record to a client that speaks version 1.
#
# Each message comes as one chunk for each of its blocks, each tool call as one `tool_call`. What version 1 cannot say
# is said in other words, as the table above lists them, or left out:
#
# | in the record | in version 1 |
# |---|---|
# | a message without content; `_meta` of a message; icons of a link | left out |
# | a terminal of the agent in a tool call | its command, its output and its end as text |
# | a terminal that no tool call shows; what runs in the background | left out |
# | several plans, for a client without the capability `plan` | the plan that was updated last |
# | a config option of a type that version 1 lacks | left out |


_CHUNKS = {"user": v1.UserMessageChunk, "agent": v1.AgentMessageChunk, "thought": v1.AgentThoughtChunk}


def message(whole: Message, content: Sequence[v1.ContentBlock], *, first: bool) -> Iterator[Any]:  # noqa: ARG001
    """Return chunks with this content, which is all of a message or part of it."""
    for block in content:
        yield _CHUNKS[whole.speaker](block, whole.id)


def whole_message(whole: Message) -> Iterator[Any]:
    """Return a message that is sent at once."""
    return message(whole, whole.content, first=True)


def tool_call(call: ToolCallState, state: SessionState) -> v1.ToolCall:
    """Return a tool call in its present state."""
    return v1.ToolCall(
        call.id,
        call.title,
        cast("Any", tool_kind(call.kind)),
        cast("Any", STATUSES.get(call.status, "in_progress")),
        [fitting for item in call.content for fitting in _item(item, state)],
        cast("Any", list(call.locations)),
        call.raw_input,
        call.raw_output,
        call.name,
        meta=call.meta,
    )


def _item(item: Any, state: SessionState) -> list[Any]:
    if isinstance(item, updates.Terminal) and item.terminal_id in state.terminals:
        return [updates.Content.of(_terminal(state, item.terminal_id))]
    return tool_content(item)


def _terminal(state: SessionState, terminal_id: v1.TerminalId) -> str:
    terminal = state.terminals[terminal_id]
    shown = [f"$ {terminal.command}"] if terminal.command else []
    shown.append(terminal.text.removesuffix("\n"))
    if (end := terminal.exit_status) is not None:
        if end.signal is not None:
            shown.append(f"(ended by {end.signal})")
        elif end.exit_code is not None:
            shown.append(f"(exit code {end.exit_code})")
    return fenced("\n".join(filter(None, shown)))


# Other things with an id


_UPDATES = {
    "compaction": v1.CompactionUpdate,
    "subagent": v1.SubagentUpdate,
    "session_message": v1.SessionMessage,
}


def thing(key: Key, state: SessionState) -> list[Any]:
    """Return another thing that has an id."""
    if (kind := _UPDATES.get(key[0])) is None:
        return []  # a terminal: the tool calls that show it have its text
    fields = folded_fields(key, state, kind)
    if kind is v1.SubagentUpdate:
        fields["state"] = subagent_state(fields["state"])
    for name in {"summary", "content"} & fields.keys():
        fields[name] = fields[name] or None
    return [kind(**{name: _or_unset(value) for name, value in fields.items()})]


def _or_unset(value: Any) -> Any:
    return UNSET if value is None else value


# The session


def plan_without_ids(record: FoldedRecord) -> v1.Plan | None:
    """Return the plan for a client whose plans have no ids; None if there is none, or it is replayed anyway."""
    if record.state.plan_id in (None, MAIN_PLAN):
        return None
    return v1.Plan(steps(record.state.plan))


def ending(record: FoldedRecord) -> Iterator[Any]:
    """Return the updates for the whole session: plans, settings, usage, title."""
    yield from map(plan, record.plans.values())
    yield from _settings(record)


def closing(calls: Sequence[v1.ToolCallId], terminals: Sequence[v1.TerminalId]) -> list[Any]:  # noqa: ARG001
    """Return updates that close these tool calls and terminals, which a crash has left open."""
    return [v1.ToolCallProgress(call_id, status="failed") for call_id in calls]


def _settings(record: FoldedRecord) -> Iterator[Any]:
    state = record.state
    if (config := record.latest.get("config_option_update")) is not None:
        yield own_update(config)
    if (mode := record.latest.get("current_mode_update")) is not None:
        yield mode
    if state.usage is not None:
        yield own_update(state.usage)
    if state.title is not None or state.updated_at is not None or state.meta is not None:
        yield v1.SessionInfoUpdate(_or_unset(state.title), _or_unset(state.updated_at), meta=_or_unset(state.meta))
