"""The connection of an observer: which of its messages reach the agent, and in which form. PURE.

An observer's token may only watch. `RIGHTS` has a row for every method that an agent handles, in both versions of the
protocol; a method without a row, such as one of an extension or of a later version, is the owner's. The agent gets what
was parsed here, encoded again: another parser could find another meaning in the bytes of the client.

| right | what happens |
|---|---|
| `REQUEST` | the agent gets a request |
| `NOTIFY` | the agent gets a notification |
| `WATCH` | the agent gets a request with the id, the folder and the replay, as one to watch |
| `WATCH`, but the agent has not said that sessions can be watched | error: it would open the session |
| `LEAVE` | the agent gets a request for a session that this connection watches |
| `OWNER`, and all else | a request is answered with error -32600 and the reason `watching`; a notification is dropped |

The agent gets an error for an answer to one of its questions, so that it does not wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

from msgspec import Raw

from accord.errors import INVALID_REQUEST
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import Oversized, RequestId
from accord.jsonrpc.wire_messages import Malformed, NotificationFrame, RequestFrame, ResponseFrame, parse
from accord.schema import codec
from accord.schema.capabilities import WATCH
from accord.trace.meaning import body_of, object_in
from accord.transports import Transport
from accord.transports.wrapped_transport import WrappedTransport

INITIALIZE = "initialize"


class Right(Enum):
    """What an observer may do with a method."""

    REQUEST = auto()
    NOTIFY = auto()
    WATCH = auto()
    LEAVE = auto()
    OWNER = auto()


RIGHTS = {
    INITIALIZE: Right.REQUEST,
    "$/cancel_request": Right.NOTIFY,  # its own requests: ids are those of its connection
    "session/list": Right.REQUEST,
    "session/load": Right.WATCH,
    "session/resume": Right.WATCH,
    "session/close": Right.LEAVE,
    **dict.fromkeys(("authenticate", "logout", "auth/login", "auth/logout", "auth/status"), Right.OWNER),
    **dict.fromkeys(("providers/list", "providers/set", "providers/disable"), Right.OWNER),
    **dict.fromkeys(("session/new", "session/options", "session/fork", "session/delete"), Right.OWNER),
    **dict.fromkeys(("session/archive", "session/unarchive", "session/status", "session/set_title"), Right.OWNER),
    **dict.fromkeys(("session/set_mode", "session/set_config_option", "session/set_model"), Right.OWNER),
    **dict.fromkeys(("session/prompt", "session/cancel", "tool_call/cancel", "terminal/cancel"), Right.OWNER),
    **dict.fromkeys(("nes/start", "nes/suggest", "nes/accept", "nes/reject", "nes/close"), Right.OWNER),
    **dict.fromkeys(("document/didOpen", "document/didChange", "document/didClose"), Right.OWNER),
    **dict.fromkeys(("document/didSave", "document/didFocus", "mcp/message"), Right.OWNER),
}
"""The rights to all methods that an agent handles."""

OBSERVER_PARAMS = ("sessionId", "cwd", "replayFrom")
"""The params with which an observer opens a session: it brings no servers, no folders and no prompts for the agent."""

REFUSED = "this token may only watch sessions"
NOT_WATCHED = "this token may only watch sessions, and the sessions of this agent cannot be watched"
NOT_OPEN = "this token may only watch sessions, and this connection does not watch that session"
NO_ANSWER = "an observer answers no questions"


class Verdict(NamedTuple):
    """The decision about an observer's message."""

    passed: bytes | None = None
    """The frame for the agent."""
    answer: bytes | None = None
    """The frame for the observer."""


class ObserverRights:
    """The messages of one connection of an observer."""

    def __init__(self) -> None:
        self._can_watch = False
        """Whether the agent has said that sessions can be watched."""
        self._initializing: set[RequestId] = set()
        self._opening: dict[RequestId, str] = {}
        """The sessions that the agent was asked to let it watch."""
        self._watched: set[str] = set()

    def received(self, frame: bytes) -> Verdict:
        """Judge a message of the observer."""
        match parse(frame):
            case RequestFrame() as call:
                return self._call(call)
            case NotificationFrame(method=method, params=params):
                passes = RIGHTS.get(method) is Right.NOTIFY
                return Verdict(wire_messages.encode_notification(method, _written(params))) if passes else Verdict()
            case ResponseFrame(id=request_id):
                return _unanswered(request_id)
            case Malformed() as malformed:
                return _unanswered(malformed.pending)._replace(answer=malformed.reply())

    def _call(self, call: RequestFrame) -> Verdict:
        params = object_in(call.params)
        session = str(params.get("sessionId"))
        match RIGHTS.get(call.method, Right.OWNER):
            case Right.WATCH if not self._can_watch:
                return _refused(call, NOT_WATCHED)
            case Right.WATCH:
                self._opening[call.id] = session
                return Verdict(wire_messages.encode_request(call.id, call.method, _watching(params)))
            case Right.LEAVE if session not in self._watched:
                return _refused(call, NOT_OPEN)
            case Right.OWNER | Right.NOTIFY:
                return _refused(call, REFUSED)
            case Right.REQUEST | Right.LEAVE:
                pass
        if call.method == INITIALIZE:
            self._initializing.add(call.id)
        return Verdict(wire_messages.encode_request(call.id, call.method, _written(call.params)))

    def sent(self, frame: bytes) -> None:
        """Note the agent's answers to `initialize` and to requests to watch."""
        if not (self._initializing or self._opening):
            return
        answer = parse(frame)
        if not isinstance(answer, ResponseFrame) or answer.id is None:
            return
        watched = self._opening.pop(answer.id, None)
        if watched is not None and answer.error is None:
            self._watched.add(watched)
        if answer.id in self._initializing:
            self._initializing.discard(answer.id)
            if answer.error is None:
                self._can_watch = body_of(object_in(answer.result).get("_meta")).get(WATCH) is True


def _refused(call: RequestFrame, problem: str) -> Verdict:
    return Verdict(answer=wire_messages.encode_error(call.id, INVALID_REQUEST, problem, {"reason": "watching"}))


def _unanswered(request_id: RequestId | None) -> Verdict:
    if request_id is None:
        return Verdict()
    return Verdict(wire_messages.encode_error(request_id, INVALID_REQUEST, NO_ANSWER, {"reason": "watching"}))


def _watching(given: dict[str, Any]) -> bytes:
    kept = {name: given[name] for name in OBSERVER_PARAMS if name in given}
    return codec.encode({**kept, "mcpServers": [], "_meta": {WATCH: True}})


def _written(params: Raw | bytes | None) -> bytes | None:
    return None if params is None else codec.encode(object_in(params))


class ObserverTransport(WrappedTransport):
    """The transport that an agent gets for an observer's connection."""

    def __init__(self, link: Transport) -> None:
        super().__init__(link)
        self._observing = ObserverRights()

    def send(self, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self._observing.sent(frame)
        self._inner.send(frames)

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        for frame in frames:
            if isinstance(frame, Oversized):
                super().received([frame])  # every agent refuses it
                continue
            verdict = self._observing.received(frame)
            if verdict.answer is not None:
                self._inner.send([verdict.answer])
            if verdict.passed is not None:
                super().received([verdict.passed])

    def paused(self) -> None:
        self.hold_reading()  # too much waits for the observer: it sends no more requests that would be refused
        super().paused()

    def resumed(self) -> None:
        self.let_read()
        super().resumed()
