"""The dialect of version 2.

Only tool calls need memory. A tool call gives all of its content each time, as version 1 requires. Here the client is
sent the additions, item by item; all of it is sent again only if something that the client has was removed or has
changed, such as text that has grown.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec import UNSET
from msgspec.structs import replace

from accord.dialects import ENDED, Activity, ActivityEnd, Background, Dialect, Kind, folded_fields
from accord.errors import ConversionError
from accord.schema import codec, v1, v2
from accord.schema.base import Unknown
from accord.schema.capabilities import updates_of, updates_that_need
from accord.schema.conversion import to_v2
from accord.session import Message, SessionState, ToolCallState, updates
from accord.session.replay_scan import FoldedRecord, Key

CHUNKS = (v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.UserMessageChunk)


@functools.cache
def sendable() -> frozenset[type[Any]]:
    """Return the classes of updates that can be sent unchanged."""
    known = updates_of(v2.UpdateSessionNotification) - {v2.ToolCallProgress}
    return known.difference(updates_that_need(v2.UpdateSessionNotification)) | {Unknown}


@functools.lru_cache(maxsize=64)
def _plain_state(activity: Activity, stop_reason: str | None) -> bytes:
    return codec.encode(v2.SessionStateUpdate(activity, stop_reason))


class V2Dialect(Dialect):
    """How a session speaks in version 2."""

    version = 2
    replaces_messages = True
    tells_states = True
    commands_come_with_answers = True

    def __init__(self) -> None:
        self.plain_state = _plain_state
        self.agent_chunk = v2.AgentMessageChunk
        self.thought_chunk = v2.AgentThoughtChunk
        self.user_chunk = v2.UserMessageChunk
        self.sendable = sendable()
        self._shown: dict[v1.ToolCallId, list[Any]] = {}
        """The content that the client has of each unfinished tool call."""
        self._unnamed: tuple[type[Any], v2.MessageId] | None = None
        """The message that chunks without an id belong to."""

    def fitted(self, update: Any) -> Sequence[Any]:
        kind = update.__class__
        if kind in CHUNKS:
            return (to_v2(self._with_id(update)),)
        self._unnamed = None
        if kind is updates.ToolCallProgress:
            return self._tool_call(update)
        if kind is v1.CurrentModeUpdate:
            return ()  # the mode is a config option, whose update is sent as well
        return (to_v2(update),)

    def message(self, message_id: v1.MessageId, blocks: Sequence[v1.ContentBlock]) -> Sequence[Any]:
        return [v2.AgentMessage(v2.MessageId(message_id), list(blocks))]

    def _with_id(self, chunk: Any) -> Any:
        """A chunk with the id of its message, which every message has in version 2."""
        if chunk.message_id is not None:
            self._unnamed = None
            return chunk
        if self._unnamed is None or self._unnamed[0] is not chunk.__class__:
            self._unnamed = (chunk.__class__, v2.MessageId(uuid.uuid4().hex))
        return replace(chunk, message_id=self._unnamed[1])

    # Tool calls

    def _tool_call(self, update: updates.ToolCallProgress) -> Sequence[Any]:
        tool_call_id, given = update.tool_call_id, update.content
        shown = self._shown.pop(tool_call_id, [])
        if update.status not in ENDED:
            self._shown[tool_call_id] = shown if given is UNSET else list(given or ())
        if not given:
            return (update,)
        if not shown or given[: len(shown)] != shown:
            return (replace(update, content=[content_up(it) for it in given]),)
        added = [updates.ToolCallContentChunk(tool_call_id, content_up(it)) for it in given[len(shown) :]]
        patch = replace(update, content=UNSET)
        return added if patch == updates.ToolCallProgress(tool_call_id) else (*added, patch)

    def note_tool_call(self, tool_call: v1.ToolCallUpdate) -> None:
        """Note that the client got these details of a tool call from another message, such as a question."""
        if tool_call.content is not None:
            self._shown[tool_call.tool_call_id] = list(tool_call.content)

    # States

    def terminal_begins(self, id: str, command: str, cwd: str) -> v2.TerminalUpdate:  # noqa: A002
        offered = v2.TerminalCapabilities(v2.TerminalCancelCapabilities())
        return v2.TerminalUpdate(v2.TerminalId(id), command, cwd, capabilities=offered)

    def terminal_output(self, id: str, data: bytes, *, replaces: bool) -> Any:  # noqa: A002
        if replaces:
            return v2.TerminalUpdate(v2.TerminalId(id), output=v2.TerminalOutput.of(data))
        return v2.TerminalOutputChunk.of(v2.TerminalId(id), data)

    def terminal_ended(self, id: str, status: v1.TerminalExitStatus) -> v2.TerminalUpdate:  # noqa: A002
        ended = v2.TerminalExitStatus(status.exit_code, status.signal)
        return v2.TerminalUpdate(v2.TerminalId(id), exit_status=ended, capabilities=None)

    def cancellable(self, kind: Kind, id: str, *, offered: bool) -> Any:  # noqa: A002
        if kind == "terminal":
            terminal = v2.TerminalCapabilities(v2.TerminalCancelCapabilities()) if offered else None
            return v2.TerminalUpdate(v2.TerminalId(id), capabilities=terminal)
        tool_call = v2.ToolCallCapabilities(v2.ToolCallCancelCapabilities()) if offered else None
        return v2.ToolCallProgress(v2.ToolCallId(id), capabilities=tool_call)

    def state(
        self, activity: Activity, background: Sequence[Background] | None, end: ActivityEnd | None = None
    ) -> v2.SessionStateUpdate:
        running = None if background is None else [background_work(it) for it in background]
        if end is None:
            return v2.SessionStateUpdate(activity, background=running)
        error = None
        if end.failure is not None:
            error = v2.Error(end.failure.code, end.failure.message, _error_data(end.failure.data))
        reason = end.stop_reason if error is None else "error"
        return v2.SessionStateUpdate(activity, reason, end.usage, error, running, meta=end.meta or None)


_STATES: dict[Activity, type[v2.RunningStateUpdate | v2.IdleStateUpdate | v2.RequiresActionStateUpdate]] = {
    "running": v2.RunningStateUpdate,
    "idle": v2.IdleStateUpdate,
    "requires_action": v2.RequiresActionStateUpdate,
}


def state_of(activity: Activity, background: Sequence[Background]) -> v2.StateUpdate:
    """Return a session's activity in the form of the answer to `session/status`."""
    return _STATES[activity](background=[background_work(it) for it in background])


def content_up(item: Any) -> Any:
    """An item of a tool call's content in version 2."""
    return item if item.__class__ in (v2.Content, v2.Terminal) else to_v2(item)


def background_work(work: Background) -> v2.BackgroundWork:
    """Return this in the form that is sent to the client."""
    if work.kind == "terminal":
        return v2.BackgroundTerminal(v2.TerminalId(work.id))
    return v2.BackgroundToolCall(v2.ToolCallId(work.id))


def _error_data(data: Any) -> Any:
    return None if data is None else codec.convert(codec.plain(data), v2.ErrorData)


# Replays a record to a client that speaks version 2.
#
# Each message comes whole, each tool call, terminal and compaction as one update, with the ids that they have. The
# client may still hold what it saw before, so a replayed update resets what it is about: fields without a value are
# `null`. What version 2 cannot say is said in other words, or left out:
#
# | in the record | in version 2 |
# |---|---|
# | a message without an id | gets one: `message-` and its place in the conversation |
# | the plan of version 1 | the plan `main` |
# | a terminal that the client of version 1 had | a terminal without output: the record does not have it |
# | a mode that is no config option | left out: the answer to `session/resume` has the option |
# | a diff that deletes a file and adds text | left out |
# | a key of `_meta` with the value `null` | left out: in version 2 it removes the key |
# | values out of bounds, such as a priority above 1 | left out, with what version 2 requires of the rest |


_WHOLE = {"user": v2.UserMessage, "agent": v2.AgentMessage, "thought": v2.AgentThought}
_CHUNKS = {"user": v2.UserMessageChunk, "agent": v2.AgentMessageChunk, "thought": v2.AgentThoughtChunk}


def message(whole: Message, content: Sequence[v1.ContentBlock], *, first: bool) -> Iterator[Any]:
    """Return chunks with this content, which is part of a message; before the first, clear what the client may hold."""
    if first:
        yield _WHOLE[whole.speaker](_id(whole), [], meta=whole.meta)
    for block in content:
        yield _CHUNKS[whole.speaker](block, _id(whole))


def whole_message(whole: Message) -> Iterator[Any]:
    """Return a message that is sent at once."""
    yield _WHOLE[whole.speaker](_id(whole), list(whole.content), meta=whole.meta)


def message_of_user(message_id: str, prompt: Sequence[Any]) -> v2.UserMessage:
    """Return the user's content as one message."""
    return v2.UserMessage(v2.MessageId(message_id), list(prompt))


def _id(whole: Message) -> v2.MessageId:
    assert whole.id is not None
    return whole.id


def tool_call(call: ToolCallState, state: SessionState) -> v2.ToolCallProgress:  # noqa: ARG001
    """Return a tool call in its present state."""
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


# Other things with an id


_UPDATES = {
    "terminal": v2.TerminalUpdate,
    "compaction": v2.CompactionUpdate,
    "subagent": v2.SubagentUpdate,
    "session_message": v2.SessionMessage,
}


def thing(key: Key, state: SessionState) -> list[Any]:
    """Return another thing that has an id."""
    kind = _UPDATES[key[0]]
    fields = folded_fields(key, state, kind)
    if kind is v2.TerminalUpdate:
        fields["output"] = v2.TerminalOutput.of(fields["output"]) if fields["output"] else None
    return [kind(**fields)]


# The session


def ending(record: FoldedRecord) -> Iterator[Any]:
    """Return the updates for the whole session: plans, settings, usage, title."""
    yield from record.plans.values()
    yield from _settings(record)


def closing(calls: Sequence[v1.ToolCallId], terminals: Sequence[v1.TerminalId]) -> list[Any]:
    """Return updates that close these tool calls and terminals, which a crash has left open."""
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
