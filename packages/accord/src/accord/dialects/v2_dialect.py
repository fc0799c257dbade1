"""The dialect of version 2.

Tool calls are the only updates that need memory. A tool call gives all of its content each time, as version 1 wants it.
Here the client is sent what was added since, item by item; all of it is sent again only where something that the client
has is gone or has changed, such as text that has grown.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from accord.dialects.dialect import ENDED, Activity, Background, Dialect, End, Kind
from accord.schema import codec, v1, v2
from accord.schema.base import Unknown
from accord.schema.capabilities import updates_of, updates_that_need
from accord.schema.conversion import to_v2
from accord.session import updates

CHUNKS = (v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.UserMessageChunk)


@functools.cache
def sendable() -> frozenset[type[Any]]:
    """Updates that can simply be sent."""
    known = updates_of(v2.UpdateSessionNotification) - {v2.ToolCallProgress}
    return known.difference(updates_that_need(v2.UpdateSessionNotification)) | {Unknown}


class V2Dialect(Dialect):
    """How a session speaks in version 2."""

    version = 2
    replaces_messages = True
    commands_come_with_answers = True

    def __init__(self) -> None:
        self.agent_chunk = v2.AgentMessageChunk
        self.thought_chunk = v2.AgentThoughtChunk
        self.user_chunk = v2.UserMessageChunk
        self.sendable = sendable()
        self._shown: dict[v1.ToolCallId, list[Any]] = {}
        """The content that the client has of each unfinished tool call, as it was given."""
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

    def told(self, tool_call: v1.ToolCallUpdate) -> None:
        """The client has learnt this of a tool call from another message, such as a question."""
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

    def plain_state(self, activity: Activity, stop_reason: str | None) -> bytes:
        return _plain_state(activity, stop_reason)

    def state(
        self, activity: Activity, background: Sequence[Background] | None, end: End | None = None
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
    """What a session does, as the answer to `session/status` has it."""
    return _STATES[activity](background=[background_work(it) for it in background])


@functools.lru_cache(maxsize=64)
def _plain_state(activity: Activity, stop_reason: str | None) -> bytes:
    """The JSON of a state that says nothing else, which is made once."""
    return codec.encode(v2.SessionStateUpdate(activity, stop_reason))


def content_up(item: Any) -> Any:
    """An item of a tool call's content in version 2."""
    return item if item.__class__ in (v2.Content, v2.Terminal) else to_v2(item)


def background_work(work: Background) -> v2.BackgroundWork:
    """This as the client is told of it."""
    if work.kind == "terminal":
        return v2.BackgroundTerminal(v2.TerminalId(work.id))
    return v2.BackgroundToolCall(v2.ToolCallId(work.id))


def _error_data(data: Any) -> Any:
    return None if data is None else codec.convert(codec.plain(data), v2.ErrorData)
