"""`Observing`: which messages of an observer reach the agent, and in which form. PURE.

An observer's token may only watch. The agent gets what was read here, encoded again: another parser could find another
meaning in the bytes of the client.

| message | what happens |
|---|---|
| `initialize`, logging in and out, `session/list`, `session/close`, `$/cancel_request` | the agent gets it |
| `session/load`, `session/resume` | the agent gets it with the id, the folder and the replay, as a request to watch |
| the same, if the agent has not said that sessions can be watched | error: it would open the session |
| any other request, extensions too | error -32600 with the reason `watching` |
| any other notification | it is dropped |
| the answer to a question of the agent | the agent gets an error, so that it does not wait |
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from msgspec import Raw

from accord.capabilities import WATCH
from accord.errors import INVALID_REQUEST, DecodeError
from accord.jsonrpc import messages
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Answer, Call, Malformed, Tell, parse
from accord.schema import codec

INITIALIZE = "initialize"

PASSED = frozenset({INITIALIZE, "authenticate", "logout", "auth/login", "auth/logout", "session/list", "session/close"})
"""The requests of both versions that an observer may send as they are."""

OPENS = frozenset({"session/load", "session/resume"})

KEPT = ("sessionId", "cwd", "replayFrom")
"""The params with which an observer opens a session: it brings no servers, no folders and no prompts for the agent."""

CANCEL_REQUEST = "$/cancel_request"

REFUSED = "this token may only watch sessions"
NOT_WATCHED = "this token may only watch sessions, and the sessions of this agent cannot be watched"
NO_ANSWER = "an observer answers no questions"


class Verdict(NamedTuple):
    """What becomes of a message of an observer."""

    passed: bytes | None = None
    """What the agent gets."""
    answer: bytes | None = None
    """What the observer gets."""


class Observing:
    """The messages of one connection of an observer."""

    def __init__(self) -> None:
        self._can_watch = False
        """Whether the agent has said that sessions can be watched."""
        self._initializing: set[RequestId] = set()

    def received(self, frame: bytes) -> Verdict:
        """Judge a message of the observer."""
        match parse(frame):
            case Call() as call:
                return self._call(call)
            case Tell(method=method, params=params):
                return Verdict(messages.tell(method, _written(params))) if method == CANCEL_REQUEST else Verdict()
            case Answer(id=request_id):
                return _unanswered(request_id)
            case Malformed() as malformed:
                return _unanswered(malformed.pending)._replace(answer=malformed.reply())

    def _call(self, call: Call) -> Verdict:
        if call.method in OPENS:
            if not self._can_watch:
                return _refused(call, NOT_WATCHED)
            return Verdict(messages.call(call.id, call.method, _watching(call.params)))
        if call.method not in PASSED:
            return _refused(call, REFUSED)
        if call.method == INITIALIZE:
            self._initializing.add(call.id)
        return Verdict(messages.call(call.id, call.method, _written(call.params)))

    def sent(self, frame: bytes) -> None:
        """Take note of what the agent answers to `initialize`."""
        if not self._initializing:
            return
        match parse(frame):
            case Answer(id=request_id) as answer if request_id in self._initializing:
                self._initializing.discard(request_id)
                if answer.error is None:
                    meta = _members(answer.result).get("_meta")
                    self._can_watch = isinstance(meta, dict) and cast("dict[str, Any]", meta).get(WATCH) is True
            case _:
                pass


def _refused(call: Call, problem: str) -> Verdict:
    return Verdict(answer=messages.error_answer(call.id, INVALID_REQUEST, problem, {"reason": "watching"}))


def _unanswered(request_id: RequestId | None) -> Verdict:
    if request_id is None:
        return Verdict()
    return Verdict(messages.error_answer(request_id, INVALID_REQUEST, NO_ANSWER, {"reason": "watching"}))


def _watching(params: Raw | bytes | None) -> bytes:
    given = _members(params)
    kept = {name: given[name] for name in KEPT if name in given}
    return codec.encode({**kept, "mcpServers": [], "_meta": {WATCH: True}})


def _written(params: Raw | bytes | None) -> bytes | None:
    return None if params is None else codec.encode(_members(params))


def _members(raw: Raw | bytes | None) -> dict[str, Any]:
    try:
        value = None if raw is None else codec.loads(raw)
    except DecodeError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
