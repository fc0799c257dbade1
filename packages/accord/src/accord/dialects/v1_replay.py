"""Replays a record to a client that speaks version 1.

Each message comes as one chunk for each of its blocks, each tool call as one `tool_call`. What version 1 cannot say is
said in other words, or left out:

| in the record | in version 1 |
|---|---|
| a message without content; `_meta` of a message; icons of a link | left out |
| the statuses `paused`, `cancelled`, and unknown ones | `in_progress`, `failed`, `in_progress` |
| a kind of tool that version 1 lacks | `other` |
| a diff whose patch does not have the whole texts | its patch as text |
| a terminal of the agent in a tool call | its command, its output and its end as text |
| a terminal that no tool call shows; the capabilities of tool calls; what runs in the background | left out |
| several plans, for a client without the capability `plan` | the plan that was updated last |
| a cancelled step of a plan; an unknown status of one | `completed`; `pending` |
| a config option of a type that version 1 lacks | left out |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast, get_args

from msgspec import UNSET

from accord.errors import ConversionError
from accord.printable import fenced
from accord.schema import v1
from accord.schema.base import Unknown
from accord.schema.shared_updates import MAIN_PLAN, PlanItems
from accord.session import Compaction, Message, SessionMessageState, SessionState, SubagentState, ToolCallState
from accord.session.replay_scan import FoldedRecord, Key

_CHUNKS = {"user": v1.UserMessageChunk, "agent": v1.AgentMessageChunk, "thought": v1.AgentThoughtChunk}
_KINDS = frozenset(get_args(v1.ToolKind))
_STATUSES = {word: word for word in get_args(v1.ToolCallStatus)} | {"cancelled": "failed"}
_STEP_STATUSES = {word: word for word in get_args(v1.PlanEntryStatus)} | {"cancelled": "completed"}
_PRIORITIES = frozenset(get_args(v1.PlanEntryPriority))


def message(told: Message, content: Sequence[v1.ContentBlock], *, first: bool) -> Iterator[Any]:  # noqa: ARG001
    """Chunks with this content, which is all of a message or part of it."""
    for block in content:
        yield _CHUNKS[told.speaker](block, told.id)


def whole_message(told: Message) -> Iterator[Any]:
    """A message that is told at once."""
    return message(told, told.content, first=True)


def tool_call(call: ToolCallState, state: SessionState) -> v1.ToolCall:
    """A tool call as it is now."""
    return v1.ToolCall(
        call.id,
        call.title,
        call.kind if call.kind in _KINDS else "other",
        cast("Any", _STATUSES.get(call.status, "in_progress")),
        [fitting for item in call.content for fitting in _item(item, state)],
        cast("Any", list(call.locations)),
        call.raw_input,
        call.raw_output,
        call.name,
        meta=call.meta,
    )


def _item(item: Any, state: SessionState) -> list[v1.ToolCallContent]:
    match item:
        case v1.Terminal(terminal_id=terminal_id) if terminal_id in state.terminals:
            return [v1.Content.of(_terminal(state, terminal_id))]
        case v1.Content() | v1.Diff() | v1.Terminal() | v1.SessionReference() | Unknown():
            return [item]
        case changed:
            return _diff(changed)


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


def _diff(diff: Any) -> list[v1.ToolCallContent]:
    from accord.schema.conversion import all_to_v1

    try:
        return all_to_v1(diff)
    except ConversionError:
        return [v1.Content.of(fenced("\n".join(diff.summary) if diff.patch is None else diff.patch.text))]


# What else has an id


def thing(key: Key, state: SessionState) -> list[Any]:
    """Something else that has an id."""
    kind, name = key
    if kind == "compaction":
        return [_compaction(state.compactions[v1.CompactionId(name)])]
    if kind == "subagent":
        return [_subagent(state.subagents[v1.SessionId(name)])]
    if kind == "session_message":
        return [_session_message(state.session_messages[v1.MessageId(name)])]
    return []  # a terminal: the tool calls that show it have its text


def _given(value: Any) -> Any:
    return UNSET if value is None else value


def _compaction(it: Compaction) -> v1.CompactionUpdate:
    summary = list(it.summary) or UNSET
    return v1.CompactionUpdate(it.id, it.status, summary, _given(it.error), meta=_given(it.meta))


def _subagent(it: SubagentState) -> v1.SubagentUpdate:
    return v1.SubagentUpdate(
        it.session_id,
        _given(it.title),
        _given(it.description),
        _given(it.capabilities),
        _given(it.state),
        _given(it.cwd),
        _given(it.additional_directories),
        meta=_given(it.meta),
    )


def _session_message(it: SessionMessageState) -> v1.SessionMessage:
    return v1.SessionMessage(
        it.id,
        _given(it.sender_session_id),
        _given(it.recipient_session_id),
        _given(it.sender_message_id),
        _given(it.recipient_message_id),
        list(it.content) or UNSET,
        meta=_given(it.meta),
    )


# The session


def _plans(record: FoldedRecord) -> Iterator[Any]:
    """The plans; the main plan has no id in version 1."""
    for update in record.plans.values():
        if isinstance(update.plan, PlanItems) and update.plan.plan_id == MAIN_PLAN:
            yield v1.Plan([_step(step) for step in update.plan.entries], meta=update.meta)
        else:
            yield v1.PlanUpdate(_plan(update.plan), meta=update.meta)


def plan_without_ids(record: FoldedRecord) -> v1.Plan | None:
    """The plan for a client that has no plans with ids; None if there is none, or it is replayed anyway."""
    if record.state.plan_id in (None, MAIN_PLAN):
        return None
    return v1.Plan([_step(step) for step in record.state.plan])


def _plan(plan: Any) -> v1.PlanUpdateContent:
    if not isinstance(plan, PlanItems):
        return plan  # type: ignore[no-any-return]
    return v1.PlanItems(plan.plan_id, [_step(step) for step in plan.entries], meta=plan.meta)


def _step(step: Any) -> v1.PlanEntry:
    return v1.PlanEntry(
        step.content,
        step.priority if step.priority in _PRIORITIES else "medium",
        cast("Any", _STEP_STATUSES.get(step.status, "pending")),
        meta=step.meta,
    )


def ending(record: FoldedRecord) -> Iterator[Any]:
    """What holds for the whole session: plans, settings, usage, title."""
    yield from _plans(record)
    yield from _settings(record)


def closing(calls: Sequence[v1.ToolCallId], terminals: Sequence[v1.TerminalId]) -> list[Any]:  # noqa: ARG001
    """Updates that close these tool calls and terminals: a crash has left them open."""
    return [v1.ToolCallProgress(call_id, status="failed") for call_id in calls]


def _settings(record: FoldedRecord) -> Iterator[Any]:
    state = record.state
    if (config := record.latest.get("config_option_update")) is not None:
        yield config if isinstance(config, v1.ConfigOptionUpdate) else _config(state)
    if (mode := record.latest.get("current_mode_update")) is not None:
        yield mode
    if state.usage is not None:
        yield state.usage
    if state.title is not None or state.updated_at is not None or state.meta is not None:
        yield v1.SessionInfoUpdate(_given(state.title), _given(state.updated_at), meta=_given(state.meta))


def _config(state: SessionState) -> v1.ConfigOptionUpdate:
    return v1.ConfigOptionUpdate([*state.config, *state.unknown_config])
