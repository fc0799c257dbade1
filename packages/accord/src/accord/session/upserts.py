"""Folds of updates that only version 2 has: messages as a whole, terminals, states, and patches of settings. PURE.

They are loaded with the first such update.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from accord.errors import ConversionError, DecodeError
from accord.schema import codec, v1, v2
from accord.schema.base import Unknown
from accord.schema.conversion import to_v1
from accord.session.state import SessionState
from accord.session.terminal_state import TerminalState
from accord.session.timeline import Timeline
from accord.session.values import Compaction, SessionMessageState, Speaker, SubagentState, given, patched_meta

# The states of subagents in the classes of version 1, which has the same with fewer words. A word that it lacks stays
# as it came, and an unknown variant stays as well.


_SAME_FIELDS: tuple[tuple[type, type], ...] = (
    (v2.RunningStateUpdate, v1.RunningStateUpdate),
    (v2.RequiresActionStateUpdate, v1.RequiresActionStateUpdate),
    (v2.UnknownStateUpdate, v1.UnknownStateUpdate),
    (v2.IdleStateUpdate, v1.IdleStateUpdate),
)


def _by_fields(target: Any) -> Callable[[Any], Any]:
    names = target.__struct_fields__
    return lambda value: target(**{name: shown(getattr(value, name)) for name in names})


def _error(value: v2.Error) -> v1.Error:
    return v1.Error(value.code, value.message, codec.plain(value.data))


_SHOWN: dict[type, Callable[[Any], Any]] = {
    **{source: _by_fields(target) for source, target in _SAME_FIELDS},
    list: lambda values: [shown(value) for value in values],
    v2.Error: _error,
}


def shown(value: Any) -> Any:
    """This value as the state shows it; a value that has no other class in version 1 stays the same."""
    show = _SHOWN.get(value.__class__)
    return value if show is None else show(value)


# An update creates what it names or changes the fields that it carries: a field left out stays, `null` clears it, a
# value replaces it. Of `_meta` each key is patched by itself. Chunks append. Ids of messages stay valid for the whole
# session, and user messages, agent messages and thoughts have ids of their own.
#
#     class of the update ──▶ IN_TIMELINE: messages, in the order of their first update
#                         ├──▶ FOLDS: terminals and the state of the session
#                         └──▶ MEANT: what the agent offers
#
# Where an update means the same as one of version 1, `MEANT` makes that one, and its fold does the rest.


# Messages

_SPEAKERS: dict[type, Speaker] = {
    v2.UserMessageChunk: "user",
    v2.UserMessage: "user",
    v2.AgentMessageChunk: "agent",
    v2.AgentMessage: "agent",
    v2.AgentThoughtChunk: "thought",
    v2.AgentThought: "thought",
}


def _append(timeline: Timeline, chunk: v2.ContentChunk) -> None:
    content = chunk.content
    if isinstance(content, v2.TextContent) and content.annotations is None and content.meta is None:
        timeline.append_text(_SPEAKERS[chunk.__class__], chunk.message_id, content.text)
    else:
        timeline.growing(_SPEAKERS[chunk.__class__], chunk.message_id).add(content)


def _put_message(timeline: Timeline, update: v2.UserMessage | v2.AgentMessage | v2.AgentThought) -> None:
    message = timeline.message(_SPEAKERS[update.__class__], update.message_id)
    if update.meta is not UNSET:
        message.meta = patched_meta(message.meta, update.meta)
    if update.content is not UNSET:
        timeline.replace(message, update.content or ())


# Terminals


def _patch_terminal(state: SessionState, update: v2.TerminalUpdate) -> None:
    if not _terminal(state, update.terminal_id).update(update):
        _keep(state, update)


def _append_output(state: SessionState, chunk: v2.TerminalOutputChunk) -> None:
    if not _terminal(state, chunk.terminal_id).add(chunk.data):
        _keep(state, chunk)


def _terminal(state: SessionState, terminal_id: v1.TerminalId) -> TerminalState:
    known = state.terminals.get(terminal_id)
    if known is None:
        known = state.terminals[terminal_id] = TerminalState(terminal_id)
    return known


def _keep(state: SessionState, update: v2.TerminalUpdate | v2.TerminalOutputChunk) -> None:
    """Keep an update whose output is not base64 as it came."""
    plain = codec.plain(update)
    state.unknown.append(Unknown(plain["sessionUpdate"], plain))


# The session


def _set_state(state: SessionState, update: v2.SessionStateUpdate) -> None:
    state.activity, state.background = update.state, update.background
    if update.state == "idle" and update.stop_reason is not None:
        state.last_end = update


def _end_replay(state: SessionState, _: v2.ReplayComplete) -> None:
    state.history_length = len(state)


def _set_usage(state: SessionState, update: v2.UsageUpdate) -> None:
    before = None if state.usage is None else state.usage.cost
    state.usage = v1.UsageUpdate(
        update.used, update.size, before if update.cost is UNSET else update.cost, meta=update.meta
    )


def _patch_info(state: SessionState, update: v2.SessionInfoUpdate) -> None:
    if update.title is not UNSET:
        state.title = update.title
    if update.updated_at is not UNSET:
        state.updated_at = update.updated_at
    state.meta = patched_meta(state.meta, update.meta)


def _set_commands(state: SessionState, update: v2.AvailableCommandsUpdate) -> None:
    state.commands = []
    for command in update.available_commands:
        if isinstance(command, v2.Skill):  # version 1 has none
            state.commands.append(command)
        else:
            state.commands += [it for it in _converted([command]) if not isinstance(it, Unknown)]


def _config(update: v2.ConfigOptionUpdate) -> v1.ConfigOptionUpdate:
    return v1.ConfigOptionUpdate(_converted(update.config_options))


def _converted(values: list[Any]) -> list[Any]:
    """These values as version 1 has them, without those that it lacks; unknown ones stay."""
    found: list[Any] = []
    for value in values:
        try:
            found.append(to_v1(value))
        except ConversionError:
            continue
    return found


# Compactions, subagents, messages between sessions


def _patch_compaction(state: SessionState, update: v2.CompactionUpdate) -> None:
    known = _compaction(state, update.compaction_id)
    if update.status is not UNSET:
        known.status = update.status or "in_progress"
    known.meta = patched_meta(known.meta, update.meta)
    if update.error is not UNSET:
        known.error = update.error
    if update.summary is not UNSET:
        known.replace(update.summary or ())


def _append_summary(state: SessionState, chunk: v2.CompactionSummaryChunk) -> None:
    _compaction(state, chunk.compaction_id).add(chunk.content)


def _compaction(state: SessionState, compaction_id: v1.CompactionId) -> Compaction:
    known = state.compactions.get(compaction_id)
    if known is None:
        known = state.compactions[compaction_id] = Compaction(compaction_id)
    return known


def _patch_subagent(state: SessionState, update: v2.SubagentUpdate) -> None:
    known = state.subagents.get(update.session_id) or SubagentState(update.session_id)
    fields = given(update) | {"meta": patched_meta(known.meta, update.meta)}
    if update.state is not UNSET:
        fields["state"] = shown(update.state)
        fields["background"] = getattr(update.state, "background", None)
    state.subagents[update.session_id] = msgspec.structs.replace(known, **fields)


def _patch_session_message(state: SessionState, update: v2.SessionMessage) -> None:
    known = _session_message(state, update.message_id)
    for name in ("sender_session_id", "recipient_session_id", "sender_message_id", "recipient_message_id"):
        if (value := getattr(update, name)) is not UNSET:
            setattr(known, name, value)
    if update.content is not UNSET:
        known.replace(update.content or ())
    known.meta = patched_meta(known.meta, update.meta)


def _append_session_message(state: SessionState, chunk: v2.SessionMessageChunk) -> None:
    _session_message(state, chunk.message_id).add(chunk.content)


def _session_message(state: SessionState, message_id: v1.MessageId) -> SessionMessageState:
    known = state.session_messages.get(message_id)
    if known is None:
        known = state.session_messages[message_id] = SessionMessageState(message_id)
    return known


# The tables

IN_TIMELINE: dict[type, Callable[[Timeline, Any], None]] = {
    v2.UserMessageChunk: _append,
    v2.AgentMessageChunk: _append,
    v2.AgentThoughtChunk: _append,
    v2.UserMessage: _put_message,
    v2.AgentMessage: _put_message,
    v2.AgentThought: _put_message,
}
"""The folds of messages and tool calls."""

FOLDS: dict[type, Callable[[SessionState, Any], None]] = {
    v2.SessionStateUpdate: _set_state,
    v2.ReplayComplete: _end_replay,
    v2.TerminalUpdate: _patch_terminal,
    v2.TerminalOutputChunk: _append_output,
    v2.SessionInfoUpdate: _patch_info,
    v2.AvailableCommandsUpdate: _set_commands,
    v2.UsageUpdate: _set_usage,
    v2.CompactionUpdate: _patch_compaction,
    v2.CompactionSummaryChunk: _append_summary,
    v2.SubagentUpdate: _patch_subagent,
    v2.SessionMessage: _patch_session_message,
    v2.SessionMessageChunk: _append_session_message,
}
"""The folds of everything else. Notices and removed plans have one class in both versions."""

MEANT: dict[type, Callable[[Any], v1.SessionUpdate]] = {
    v2.ConfigOptionUpdate: _config,
}
"""For updates that version 1 has as well: how that one is made."""


# What unknown updates mean

_OF_VERSION_1: dict[str, Any] = {
    "tool_call": v1.ToolCall,
    "plan": v1.Plan,
    "current_mode_update": v1.CurrentModeUpdate,
}
"""Updates of version 1 that agents send in version 2 by mistake, by their tags."""


def meant_by(state: SessionState, update: Unknown) -> v1.SessionUpdate | None:
    """The update of version 1 that a confused agent means; None if it makes no sense in version 1 either.

    A state of the session that Accord does not know is kept, and nothing else is known of it: it is not idle.
    """
    if update.tag == "state_update" and isinstance(word := update.raw.get("state"), str):
        state.activity, state.background = word, _background(update.raw.get("background"))
        return None
    if update.tag not in _OF_VERSION_1:
        return None
    try:
        meant: v1.SessionUpdate = codec.convert(update.raw, _OF_VERSION_1[update.tag])
    except DecodeError:
        return None
    return meant


def _background(raw: Any) -> list[v2.BackgroundWork] | None:
    try:
        return codec.convert(raw, list[v2.BackgroundWork])
    except DecodeError:
        return None
