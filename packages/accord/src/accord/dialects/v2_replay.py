"""Replays a record to a client that speaks version 2.

Each message comes whole, each tool call, terminal and compaction as one update, with the ids that they have. The client
may still hold what it saw before, so a replayed update resets what it is about: fields without a value are `null`.
What version 2 cannot say is said in other words, or left out:

| in the record | in version 2 |
|---|---|
| a message without an id | gets one: `message-` and its place in the conversation |
| the plan of version 1 | the plan `main` |
| a terminal that the client of version 1 had | a terminal without output: the record does not have it |
| a mode that is no config option | left out: the answer to `session/resume` has the option |
| a diff that deletes a file and adds text | left out |
| a key of `_meta` with the value `null` | left out: in version 2 it removes the key |
| values out of bounds, such as a priority above 1 | left out, with what version 2 requires of the rest |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec import UNSET

from accord.errors import ConversionError
from accord.schema import v1, v2
from accord.schema.conversion import to_v2
from accord.session import Compaction, Message, SessionMessageState, SessionState, SubagentState, ToolCallState
from accord.session.replay_scan import FoldedRecord, Key
from accord.session.terminal_state import TerminalState

_WHOLE = {"user": v2.UserMessage, "agent": v2.AgentMessage, "thought": v2.AgentThought}
_CHUNKS = {"user": v2.UserMessageChunk, "agent": v2.AgentMessageChunk, "thought": v2.AgentThoughtChunk}


def message(told: Message, content: Sequence[v1.ContentBlock], *, first: bool) -> Iterator[Any]:
    """Chunks with this content, which is part of a message; before the first, what the client may hold is cleared."""
    if first:
        yield _WHOLE[told.speaker](_id(told), [], meta=told.meta)
    for block in content:
        yield _CHUNKS[told.speaker](block, _id(told))


def whole_message(told: Message) -> Iterator[Any]:
    """A message that is told at once."""
    yield _WHOLE[told.speaker](_id(told), list(told.content), meta=told.meta)


def message_of_user(message_id: str, prompt: Sequence[Any]) -> v2.UserMessage:
    """What the user says, as one message."""
    return v2.UserMessage(v2.MessageId(message_id), list(prompt))


def _id(told: Message) -> v2.MessageId:
    assert told.id is not None
    return told.id


def tool_call(call: ToolCallState, state: SessionState) -> v2.ToolCallProgress:  # noqa: ARG001
    """A tool call as it is now."""
    # The first line is line 1.
    places = [v2.ToolCallLocation(it.path, it.line or None, meta=it.meta) for it in call.locations]
    return v2.ToolCallProgress(
        call.id,
        call.title or None,
        call.kind,
        call.status,
        [fitting for item in call.content if (fitting := _item(item)) is not None],
        places,
        call.raw_input,
        call.raw_output,
        call.name,
        call.capabilities,
        meta=call.meta,
    )


def _item(item: Any) -> v2.ToolCallContent | None:
    match item:
        case v1.Diff():
            try:
                return cast("v2.ToolCallContent", to_v2(item))
            except ConversionError:
                return None
        case _:
            return cast("v2.ToolCallContent", item)


# What else has an id


def thing(key: Key, state: SessionState) -> list[Any]:
    """Something else that has an id."""
    kind, name = key
    if kind == "terminal":
        return [_terminal(state.terminals[v1.TerminalId(name)])]
    if kind == "compaction":
        return [_compaction(state.compactions[v1.CompactionId(name)])]
    if kind == "subagent":
        return [_subagent(state.subagents[v1.SessionId(name)])]
    return [_session_message(state.session_messages[v1.MessageId(name)])]


def _terminal(it: TerminalState) -> v2.TerminalUpdate:
    output = v2.TerminalOutput.of(it.output) if it.output else None
    return v2.TerminalUpdate(it.id, it.command, it.cwd, output, it.exit_status, it.size, it.capabilities, meta=it.meta)


def _compaction(it: Compaction) -> v2.CompactionUpdate:
    return v2.CompactionUpdate(it.id, it.status, list(it.summary), it.error, meta=it.meta)


def _subagent(it: SubagentState) -> v2.SubagentUpdate:
    return v2.SubagentUpdate(
        it.session_id,
        it.title,
        it.description,
        it.capabilities,
        cast("Any", it.state),
        it.cwd,
        it.additional_directories,
        meta=it.meta,
    )


def _session_message(it: SessionMessageState) -> v2.SessionMessage:
    return v2.SessionMessage(
        it.id,
        it.sender_session_id,
        it.recipient_session_id,
        it.sender_message_id,
        it.recipient_message_id,
        list(it.content),
        meta=it.meta,
    )


# The session


def ending(record: FoldedRecord) -> Iterator[Any]:
    """What holds for the whole session: plans, settings, usage, title."""
    yield from record.plans.values()
    yield from _settings(record)


def closing(calls: Sequence[v1.ToolCallId], terminals: Sequence[v1.TerminalId]) -> list[Any]:
    """Updates that close these tool calls and terminals: a crash has left them open."""
    failed: list[Any] = [v2.ToolCallProgress(call_id, status="failed", capabilities=None) for call_id in calls]
    ended = v2.TerminalExitStatus()
    return failed + [v2.TerminalUpdate(it, exit_status=ended, capabilities=None) for it in terminals]


def _settings(record: FoldedRecord) -> Iterator[Any]:
    state = record.state
    if (config := record.latest.get("config_option_update")) is not None:
        yield to_v2(config)
    if (usage := state.usage) is not None:
        yield v2.UsageUpdate(usage.used, usage.size, usage.cost, meta=usage.meta)
    if state.title is not None or state.updated_at is not None or state.meta is not None:
        title, at, meta = (UNSET if it is None else it for it in (state.title, state.updated_at, state.meta))
        yield v2.SessionInfoUpdate(title, at, meta=meta)  # type: ignore[arg-type]
