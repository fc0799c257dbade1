"""`MeasuredConversation`: counts what the messages of one connection mean: sessions, turns, waits for users. PURE.

Most messages are updates, which are recognised by their first bytes and not parsed. In version 2 a turn ends with a
`state_update`, so an update that has these letters is parsed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from accord.errors import DecodeError
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame, ResponseFrame, parse
from accord.metrics.server import ServerMetrics
from accord.schema.codec import loads
from accord.trace import IN, TraceEvent
from accord.trace.meaning import body_of

UPDATE = b'"method":"session/update"'
HEAD = 120
"""First bytes of a message in which its method is looked for."""
STATE = b"state_update"

PROMPT = "session/prompt"
ASKING_THE_USER = frozenset({"session/request_permission", "elicitation/create"})
MAKES_A_SESSION = frozenset({"session/new", "session/fork"})
OPENS_A_SESSION = frozenset({"session/load", "session/resume"})
CLOSES_A_SESSION = frozenset({"session/close", "session/delete"})
COUNTED = ASKING_THE_USER | MAKES_A_SESSION | OPENS_A_SESSION | CLOSES_A_SESSION | {PROMPT}
MOST_OPEN = 10_000
"""Open requests that are remembered."""


class Asked(NamedTuple):
    """An open request."""

    method: str
    session: str
    since: float


class MeasuredConversation:
    """An observer of one connection, as the server sees it: `in` is from the client."""

    def __init__(self, metrics: ServerMetrics) -> None:
        self._metrics = metrics
        self._asked: dict[tuple[str, RequestId], Asked] = {}
        self._sessions: set[str] = set()
        self._turns: dict[str, float] = {}
        """When the turn of each session began."""
        metrics.opened.add()
        metrics.connections.add(1)

    def __call__(self, event: TraceEvent) -> None:
        frame = event.frame
        if frame is None:
            return
        (self._metrics.received if event.direction == IN else self._metrics.sent).add(len(frame))
        if UPDATE in frame[:HEAD] and STATE not in frame:
            return
        message = parse(frame)
        if isinstance(message, RequestFrame):
            self._ask(event, message)
        elif isinstance(message, ResponseFrame) and message.id is not None:
            other = "out" if event.direction == IN else IN
            asked = self._asked.pop((other, message.id), None)
            if asked is not None:
                self._settle(asked, message, event.time)
        elif isinstance(message, NotificationFrame) and message.method == "session/update":
            self._note_state(_object(message.params), event.time)

    def close(self, now: float) -> None:
        """The connection has ended, and everything that was open with it."""
        for session in list(self._turns):
            self._end_turn(session, "closed", now)
        for asked in self._asked.values():
            if asked.method in ASKING_THE_USER:
                self._metrics.user_wait.record(now - asked.since, outcome="closed")
        self._metrics.sessions.add(-len(self._sessions))
        self._metrics.connections.add(-1)

    def _ask(self, event: TraceEvent, call: RequestFrame) -> None:
        if call.method not in COUNTED or len(self._asked) >= MOST_OPEN:
            return
        session = _text(_object(call.params).get("sessionId"))
        self._asked[event.direction, call.id] = Asked(call.method, session, event.time)
        if call.method == PROMPT and session not in self._turns:
            self._turns[session] = event.time
            self._metrics.running.add(1)

    def _settle(self, asked: Asked, answer: ResponseFrame, now: float) -> None:
        result, failed = _object(answer.result), answer.error is not None
        if asked.method == PROMPT:
            stop = _text(result.get("stopReason"))
            if failed or stop:  # in version 2 the answer only accepts the prompt
                self._end_turn(asked.session, "error" if failed else stop, now)
        elif asked.method in ASKING_THE_USER:
            self._metrics.user_wait.record(now - asked.since, outcome="error" if failed else "answered")
        elif not failed:
            self._note_session(asked, _text(result.get("sessionId")) or asked.session)

    def _note_session(self, asked: Asked, session: str) -> None:
        before = len(self._sessions)
        if asked.method in CLOSES_A_SESSION:
            self._sessions.discard(asked.session)
        else:
            self._sessions.add(session)
        self._metrics.sessions.add(len(self._sessions) - before)

    def _note_state(self, params: dict[str, Any], now: float) -> None:
        update = body_of(params.get("update"))
        if update.get("sessionUpdate") == STATE.decode() and update.get("state") == "idle":
            self._end_turn(_text(params.get("sessionId")), _text(update.get("stopReason")), now)

    def _end_turn(self, session: str, outcome: str, now: float) -> None:
        began = self._turns.pop(session, None)
        if began is not None:
            self._metrics.end_turn(outcome, now - began)


def _object(raw: Any) -> dict[str, Any]:
    try:
        return {} if raw is None else body_of(loads(raw))
    except DecodeError:
        return {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
