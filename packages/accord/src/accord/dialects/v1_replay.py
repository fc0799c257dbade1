"""Replays a record to a client that speaks version 1.

Each message comes as one chunk for each of its blocks, each tool call as one `tool_call`. What version 1 cannot say is
said in other words, as `v1_dialect` lists them, or left out:

| in the record | in version 1 |
|---|---|
| a message without content; `_meta` of a message; icons of a link | left out |
| a terminal of the agent in a tool call | its command, its output and its end as text |
| a terminal that no tool call shows; what runs in the background | left out |
| several plans, for a client without the capability `plan` | the plan that was updated last |
| a config option of a type that version 1 lacks | left out |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec import UNSET

from accord.dialects.v1_dialect import STATUSES, own_update, plan, steps, subagent_state, tool_content, tool_kind
from accord.printable import fenced
from accord.schema import v1
from accord.schema.shared_updates import MAIN_PLAN
from accord.session import Compaction, Message, SessionMessageState, SessionState, SubagentState, ToolCallState, updates
from accord.session.replay_scan import FoldedRecord, Key

_CHUNKS = {"user": v1.UserMessageChunk, "agent": v1.AgentMessageChunk, "thought": v1.AgentThoughtChunk}


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
        _given(subagent_state(it.state)),
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


def plan_without_ids(record: FoldedRecord) -> v1.Plan | None:
    """The plan for a client that has no plans with ids; None if there is none, or it is replayed anyway."""
    if record.state.plan_id in (None, MAIN_PLAN):
        return None
    return v1.Plan(steps(record.state.plan))


def ending(record: FoldedRecord) -> Iterator[Any]:
    """What holds for the whole session: plans, settings, usage, title."""
    yield from map(plan, record.plans.values())
    yield from _settings(record)


def closing(calls: Sequence[v1.ToolCallId], terminals: Sequence[v1.TerminalId]) -> list[Any]:  # noqa: ARG001
    """Updates that close these tool calls and terminals: a crash has left them open."""
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
        yield v1.SessionInfoUpdate(_given(state.title), _given(state.updated_at), meta=_given(state.meta))
