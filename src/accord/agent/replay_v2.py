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

from accord.agent.folded_record import FoldedRecord, Key
from accord.errors import ConversionError, DecodeError
from accord.schema import codec, v1, v2
from accord.schema.base import Unknown
from accord.schema.conversion import to_v2
from accord.state import Compaction, Message, SessionMessageState, SessionState, Subagent, ToolCallState
from accord.state.terminals import TerminalState

_WHOLE = {"user": v2.UserMessage, "agent": v2.AgentMessage, "thought": v2.AgentThought}


def replayed(record: FoldedRecord) -> Iterator[Any]:
    """The updates of version 2 that amount to this record."""
    state = record.state
    for place in record.order:
        if isinstance(place, int):
            [entry] = state.between(place, place + 1)
            yield _message(entry, place) if isinstance(entry, Message) else _tool_call(entry)
        elif isinstance(place, Unknown):
            yield place
        else:
            yield _thing(place, state)
    yield from _plans(record)
    yield from _settings(record)


# The conversation


def _message(message: Message, place: int) -> Any:
    message_id = message.id or v2.MessageId(f"message-{place}")
    return _WHOLE[message.speaker](message_id, blocks(message.content), meta=message.meta)


def block(value: Any) -> v2.ContentBlock | None:
    """This block in version 2; None if it has no valid form there."""
    if isinstance(value, v1.TextContent) and value.annotations is None:
        return v2.TextContent(value.text, meta=value.meta)
    try:
        return codec.convert(codec.plain(value), v2.ContentBlock)
    except DecodeError:
        return None


def blocks(values: Sequence[Any]) -> list[v2.ContentBlock]:
    """These blocks in version 2."""
    return [fitting for value in values if (fitting := block(value)) is not None]


def _tool_call(call: ToolCallState) -> v2.ToolCallProgress:
    places: list[v2.ToolCallLocation] = []
    for place in call.locations:
        line = place.line if place.line is None or place.line >= 1 else None
        places.append(v2.ToolCallLocation(place.path, line, meta=place.meta))
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
        case v1.Content(content=content):
            fitting = block(content)
            return None if fitting is None else v2.Content(fitting, meta=item.meta)
        case v1.Diff():
            try:
                return cast("v2.ToolCallContent", to_v2(item))
            except ConversionError:
                return None
        case _:
            return cast("v2.ToolCallContent", item)


# What else has an id


def _thing(key: Key, state: SessionState) -> Any:
    kind, name = key
    if kind == "terminal":
        return _terminal(state.terminals[v1.TerminalId(name)])
    if kind == "compaction":
        return _compaction(state.compactions[v1.CompactionId(name)])
    if kind == "subagent":
        return _subagent(state.subagents[v1.SessionId(name)])
    return _session_message(state.session_messages[v1.MessageId(name)])


def _terminal(it: TerminalState) -> v2.TerminalUpdate:
    output = v2.TerminalOutput.of(it.output) if it.output else None
    return v2.TerminalUpdate(it.id, it.command, it.cwd, output, it.exit_status, it.size, it.capabilities, meta=it.meta)


def _compaction(it: Compaction) -> v2.CompactionUpdate:
    return v2.CompactionUpdate(it.id, it.status, blocks(it.summary), it.error, meta=it.meta)


def _subagent(it: Subagent) -> v2.SubagentUpdate:
    return v2.SubagentUpdate(
        it.session_id,
        it.title,
        it.description,
        it.capabilities,
        _state(it),
        it.cwd,
        it.additional_directories,
        meta=it.meta,
    )


def _state(it: Subagent) -> v2.StateUpdate | None:
    if it.state is None or isinstance(it.state, Unknown):
        return it.state
    plain = {**codec.plain(it.state), **({} if it.background is None else {"background": codec.plain(it.background)})}
    return codec.convert(plain, v2.StateUpdate)


def _session_message(it: SessionMessageState) -> v2.SessionMessage:
    return v2.SessionMessage(
        it.id,
        it.sender_session_id,
        it.recipient_session_id,
        it.sender_message_id,
        it.recipient_message_id,
        blocks(it.content),
        meta=it.meta,
    )


# The session


def _plans(record: FoldedRecord) -> Iterator[Any]:
    updates = [*record.plans.values()]
    if record.plan is not None:
        updates.insert(len(updates) if record.state.plan_id is None else 0, record.plan)
    for update in updates:
        yield update if isinstance(update, v2.PlanUpdate) else to_v2(update)


def _settings(record: FoldedRecord) -> Iterator[Any]:
    state = record.state
    if (config := record.latest.get("config_option_update")) is not None:
        yield config if isinstance(config, v2.ConfigOptionUpdate) else to_v2(config)
    if (usage := state.usage) is not None:
        yield v2.UsageUpdate(usage.used, usage.size, usage.cost, meta=usage.meta)
    if state.title is not None or state.updated_at is not None or state.meta is not None:
        title, at, meta = (UNSET if it is None else it for it in (state.title, state.updated_at, state.meta))
        yield v2.SessionInfoUpdate(title, at, meta=meta)  # type: ignore[arg-type]
