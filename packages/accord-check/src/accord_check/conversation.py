"""`Conversation`: the present understanding of a trace: requests with their answers, sessions and turns. PURE.

    event ──▶ Frame ──▶ Exchange (a request, later with its answer) | Told (a notification) | nothing
                              └─▶ sessions, the running turn of each, capabilities, the version

It stores only what more than one check needs. It reads frames itself, because the engine's parser forgives faults that
must be judged here. Nothing in it judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from accord.schema import codec
from accord.schema.methods import Method, methods
from accord_check.checks import Side

UNREADABLE: Any = object()
"""The value of a frame that is not JSON."""

MISSING: Any = object()
"""Represents a missing member, where null has another meaning."""


@dataclass(slots=True, eq=False)
class Frame:
    """One frame on the wire."""

    number: int
    """The number of its event in the trace, from 1."""
    time: float
    by: Side
    data: bytes
    value: Any
    """The JSON value; `UNREADABLE` if it is not JSON."""

    @property
    def members(self) -> dict[str, Any]:
        """Return the members of the message; empty if it is no object."""
        return object_of(self.value)


@dataclass(slots=True, eq=False)
class Message:
    """A notification, or the asking half of a request."""

    frame: Frame
    method: str
    params: dict[str, Any]
    row: Method | None
    """The method in the protocol's table; None for a method that is not in it."""

    @property
    def by(self) -> Side:
        return self.frame.by

    @property
    def session_id(self) -> str | None:
        """The session that the message names."""
        found = self.params.get("sessionId")
        return found if isinstance(found, str) else None


@dataclass(slots=True, eq=False)
class Exchange(Message):
    """A request with its answer."""

    id: Any
    answered: Frame | None = None
    result: Any = MISSING
    error: Any = MISSING
    same_id: Exchange | None = None
    """An earlier request of this id that had no answer yet."""
    is_doubtful: bool = False
    """Whether its answer may be that of another request, because two open ones had this id."""

    @property
    def succeeded(self) -> bool:
        return self.answered is not None and self.result is not MISSING and self.error is MISSING

    @property
    def fields(self) -> dict[str, Any]:
        """Return the members of the result; empty if it is no object."""
        return object_of(self.result)


@dataclass(slots=True, eq=False)
class Update:
    """A session update of the agent."""

    frame: Frame
    session_id: str
    kind: str
    fields: dict[str, Any]
    session: SessionSeen | None
    """None for a session that no answer has opened yet."""

    @property
    def is_replayed(self) -> bool:
        """Whether it came while its session is loaded or resumed."""
        return self.session is not None and self.session.replay is not None


@dataclass(slots=True, eq=False)
class SessionSeen:
    """A session, as far as the trace shows it."""

    id: str
    opened: Exchange
    """The request whose answer opened it, or is about to."""
    turns: list[Exchange] = field(default_factory=list[Exchange])
    """Prompts without an answer yet, oldest first."""
    replay: Exchange | None = None
    """The request that loads or resumes it, until its answer."""
    cancelled: Frame | None = None
    """The `session/cancel` of the running turn."""
    read_at_cancel: int = 0
    """The number of the latest request that the client had certainly read when it cancelled."""
    is_closed: bool = False
    is_deleted: bool = False


class Conversation:
    """The conversation as far as the trace has shown it."""

    def __init__(self) -> None:
        self.version = 1
        self.initialize: Exchange | None = None
        self.open: dict[Side, dict[tuple[type, Any], Exchange]] = {"agent": {}, "client": {}}
        """The requests of each side that have no answer yet."""
        self.sessions: dict[str, SessionSeen] = {}
        self.recorder: Side = "client"
        """The side at which the trace was recorded. A frame of it may cross one of the other side on its way."""
        self._read_by_client = 0
        """The number of the latest request of the agent that the client has answered, and so has read."""
        self._declared: dict[Side, dict[str, Any]] = {"agent": {}, "client": {}}

    def declares(self, side: Side, path: str) -> bool:
        """Whether a side declared this capability, by its path on the wire: `fs.readTextFile`."""
        value: Any = self._declared[side]
        for step in path.split("."):
            value = cast("dict[str, Any]", value).get(step) if isinstance(value, dict) else None
        return value is not None and value is not False

    @property
    def is_initialized(self) -> bool:
        return self.initialize is not None and self.initialize.succeeded

    def row(self, method: str, *, is_request: bool) -> Method | None:
        table = methods(self.version)
        return table.request(method) if is_request else table.notification(method)

    def asked(self, frame: Frame) -> Exchange:
        """A request, before its answer."""
        members = frame.members
        method = members["method"]
        exchange = Exchange(
            frame, method, object_of(members.get("params")), self.row(method, is_request=True), members["id"]
        )
        if frame.by == "client" and method == "initialize":
            self._begins(exchange)
        exchange.same_id = self.open[frame.by].get(key_of(exchange.id))
        if exchange.same_id is not None:
            exchange.is_doubtful = exchange.same_id.is_doubtful = True
        self.open[frame.by][key_of(exchange.id)] = exchange
        self._follow_request(exchange)
        return exchange

    def answered(self, frame: Frame) -> Exchange | None:
        """Return the request that this answers, with its answer; None if no request with this id is open."""
        members = frame.members
        asker: Side = "client" if frame.by == "agent" else "agent"
        exchange = self.open[asker].pop(key_of(members.get("id")), None)
        if exchange is None:
            return None
        if exchange.same_id is not None:
            self.open[asker][key_of(exchange.id)] = exchange.same_id
        if asker == "agent":
            self._read_by_client = max(self._read_by_client, exchange.frame.number)
        exchange.answered = frame
        if exchange.is_doubtful:
            return exchange
        exchange.result = members.get("result", MISSING)
        # A null beside the other member is a serialiser's way to omit it.
        exchange.error = MISSING if members.get("error") is None else members["error"]
        if exchange is self.initialize and exchange.succeeded:
            self._is_agreed(exchange)
        return exchange

    def notified(self, frame: Frame) -> Message:
        """A notification."""
        members = frame.members
        method = members["method"]
        message = Message(frame, method, object_of(members.get("params")), self.row(method, is_request=False))
        if (
            method == "session/cancel"
            and frame.by == "client"
            and (session := self.session_of(message)) is not None
            and session.turns
        ):
            session.cancelled, session.read_at_cancel = frame, self._read_by_client
        return message

    def is_read_before_cancel(self, asked: Frame, session: SessionSeen, race: float) -> bool:
        """Whether the client had read a request of the agent when it sent `session/cancel`.

        If the agent recorded the trace, the request may have crossed the cancel on its way. It has not if the client
        answered a later request before it cancelled, or if `race` seconds lie between the two.
        """
        if session.cancelled is None or asked.number > session.cancelled.number:
            return False
        is_early = session.cancelled.time - asked.time >= race
        return self.recorder == "client" or is_early or session.read_at_cancel > asked.number

    def update(self, message: Message) -> Update | None:
        """Return the session update in a notification; None if there is none."""
        fields, session_id = object_of(message.params.get("update")), message.session_id
        kind = fields.get("sessionUpdate")
        if message.method != "session/update" or message.by != "agent" or session_id is None:
            return None
        return (
            Update(message.frame, session_id, kind, fields, self.session_of(message)) if isinstance(kind, str) else None
        )

    def session_of(self, message: Message) -> SessionSeen | None:
        return self.sessions.get(message.session_id or "")

    def settle(self, exchange: Exchange) -> None:
        """Take an answer into account, after it was judged."""
        session = self.session_of(exchange)
        match exchange.method:
            case "session/new" | "session/fork" if isinstance(made := exchange.fields.get("sessionId"), str):
                self.sessions[made] = SessionSeen(made, exchange)
            case "session/load" | "session/resume" if session is not None:
                session.replay = None
                if not exchange.succeeded and session.opened is exchange:
                    del self.sessions[session.id]
            case "session/prompt" if session is not None and exchange in session.turns:
                session.turns.remove(exchange)
                session.cancelled = session.cancelled if session.turns else None
            case "session/close" | "session/delete" if session is not None and exchange.succeeded:
                session.is_closed = True
                session.is_deleted = exchange.method == "session/delete"
            case _:
                pass

    def _follow_request(self, exchange: Exchange) -> None:
        session_id = exchange.session_id
        if exchange.by != "client" or session_id is None:
            return
        if exchange.method in ("session/load", "session/resume"):
            opened = self.sessions.setdefault(session_id, SessionSeen(session_id, exchange))
            opened.replay, opened.is_closed, opened.turns = exchange, False, []
        elif exchange.method == "session/prompt" and (session := self.sessions.get(session_id)) is not None:
            session.turns.append(exchange)

    def _begins(self, exchange: Exchange) -> None:
        first = self.initialize
        if first is None or (first.answered is not None and not first.succeeded):
            self.initialize = exchange
        asked = exchange.params.get("protocolVersion")
        if self.initialize is exchange and asked == 2:
            self.version = 2
            exchange.row = self.row("initialize", is_request=True)
        # A client that offers both versions declares in both forms.
        self._declared["client"] = object_of(exchange.params.get("clientCapabilities")) | object_of(
            exchange.params.get("capabilities")
        )

    def _is_agreed(self, exchange: Exchange) -> None:
        agreed = exchange.fields.get("protocolVersion")
        if agreed in (1, 2):
            self.version = cast("int", agreed)
            exchange.row = self.row("initialize", is_request=True)
        self._declared["agent"] = object_of(exchange.fields.get("agentCapabilities")) | object_of(
            exchange.fields.get("capabilities")
        )


def read(number: int, time: float, by: Side, data: bytes) -> Frame:
    """A frame with its value."""
    try:
        value = codec.loads(data)
    except ValueError:
        value = UNREADABLE
    return Frame(number, time, by, data, value)


def key_of(request_id: Any) -> tuple[type, Any]:
    """An id as a key: `"1"` and 1 and True are different, and 1.0 is 1."""
    if isinstance(request_id, float) and request_id.is_integer():
        return int, int(request_id)
    hashable = request_id if isinstance(request_id, str | int | float | None) else repr(request_id)
    return cast("type", type(request_id)), hashable


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Return the objects in a list; nothing for another value."""
    for item in cast("list[Any]", value) if isinstance(value, list) else []:
        if isinstance(item, dict):
            yield cast("dict[str, Any]", item)


def repeated(values: Sequence[Any]) -> list[str]:
    """Return the repeated values, as sorted texts."""
    return sorted({str(value) for value in values if values.count(value) > 1})


def object_of(value: Any) -> dict[str, Any]:
    """The members of an object; empty for another value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
