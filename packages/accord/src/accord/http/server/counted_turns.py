"""`CountedTurns`: the running turns of one connection, as its messages show them. PURE.

A turn begins with a prompt. In version 1 it ends with the answer to the prompt. In version 2 that answer only accepts
the prompt, and a `state_update` says when the session is idle. So updates are recognised by their first bytes, and only
those with the letters of a state are parsed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from accord.errors import DecodeError
from accord.http.headers import session_of
from accord.http.server.calls import PROMPT
from accord.http.server.owner_counts import Use
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame, ResponseFrame, parse
from accord.schema.codec import loads
from accord.trace.meaning import body_of

_UPDATE = b'"method":"session/update"'
_HEAD = 120
"""First bytes of a message in which its method is looked for."""
_STATE = b"state_update"


class CountedTurn(NamedTuple):
    """A running turn: the prompt that began it, and what is released when it ends."""

    call: RequestId
    use: Use


class CountedTurns:
    """The running turns of one connection, by their sessions."""

    def __init__(self) -> None:
        self._running: dict[str, CountedTurn] = {}

    def new_turn(self, frame: bytes) -> RequestFrame | None:
        """The prompt in this message of the client, if it begins a turn; a session has one turn at a time."""
        if b"prompt" not in frame and b"\\u" not in frame:  # an escape may spell any letter
            return None
        call = parse(frame)
        if (
            not isinstance(call, RequestFrame)
            or call.method != PROMPT
            or (session_of(call.params) or "") in self._running
        ):
            return None
        return call

    def begin(self, prompt: RequestFrame, use: Use) -> None:
        """Note a turn that was admitted."""
        self._running[session_of(prompt.params) or ""] = CountedTurn(prompt.id, use)

    def ended_by(self, frame: bytes) -> Use | None:
        """What this message of the agent releases: the turn that it ends."""
        if not self._running or (_UPDATE in frame[:_HEAD] and _STATE not in frame):
            return None
        match parse(frame):
            case ResponseFrame() as answer if answer.error is not None or "stopReason" in _members(answer.result):
                session = next((name for name, turn in self._running.items() if turn.call == answer.id), None)
            case NotificationFrame(method="session/update", params=params):
                session = _idle_session(_members(params))
            case _:
                return None
        turn = None if session is None else self._running.pop(session, None)
        return None if turn is None else turn.use

    def end(self) -> list[Use]:
        """The connection has ended: what is released."""
        uses = [turn.use for turn in self._running.values()]
        self._running.clear()
        return uses


def _idle_session(params: dict[str, Any]) -> str | None:
    update = body_of(params.get("update"))
    if update.get("sessionUpdate") == _STATE.decode() and update.get("state") == "idle":
        return str(params.get("sessionId") or "")
    return None


def _members(raw: Any) -> dict[str, Any]:
    try:
        return {} if raw is None else body_of(loads(raw))
    except DecodeError:
        return {}
