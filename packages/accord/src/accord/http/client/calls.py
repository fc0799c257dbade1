"""The calls of one connection, as its client knows them: the session of each unanswered request. PURE.

client's message ──▶ sent ──▶ Route: its session, and the queue of POSTs in which it waits
server's message ──▶ received ──▶ News: a session was closed, or named
"""

from __future__ import annotations

from typing import NamedTuple

from accord.http.client.posting import Parsed, cancelled_by
from accord.http.headers import session_of
from accord.jsonrpc.line_frames import Oversized, RequestId
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame, ResponseFrame

CLOSES_A_SESSION = frozenset({"session/close", "session/delete"})
CANCEL = "$/cancel_request"


class Route(NamedTuple):
    """Where a message of the client belongs."""

    session: str | None = None
    """The session for its header."""
    queue: str | None = None
    """The queue of POSTs: that of its session, or of the request that it cancels."""


class News(NamedTuple):
    """What a message of the server says about sessions."""

    named: str | None = None
    closed: str | None = None


NO_NEWS = News()


class _Asked(NamedTuple):
    session: str | None
    closes: bool


class ClientCalls:
    """The unanswered requests of one connection, in both directions."""

    def __init__(self) -> None:
        self._ours: dict[RequestId, _Asked] = {}
        self._theirs: dict[RequestId, str | None] = {}

    def sent(self, message: Parsed) -> Route:
        """Note a message of the client, and say where it belongs."""
        match message:
            case RequestFrame():
                session = session_of(message.params)
                self._ours[message.id] = _Asked(session, message.method in CLOSES_A_SESSION)
                return Route(session, session)
            case NotificationFrame():
                session = session_of(message.params)
                cancelled = cancelled_by(message) if message.method == CANCEL else None
                asked = None if cancelled is None else self._ours.get(cancelled)
                return Route(session, session if asked is None else asked.session)
            case ResponseFrame() if message.id is not None:
                session = self._theirs.pop(message.id, None)
                return Route(session, session)
            case _:
                return Route()

    def received(self, message: Parsed, stream: str | None) -> News:
        """Note a message that arrived on the stream of this session, and say what it tells of sessions."""
        if isinstance(message, RequestFrame):
            self._theirs[message.id] = session_of(message.params) if stream is None else stream
        elif isinstance(message, ResponseFrame) and message.id is not None:
            asked = self._ours.pop(message.id, None)
            if message.error is not None:
                return NO_NEWS
            if asked is not None and asked.closes and asked.session is not None:
                return News(closed=asked.session)
            return News(named=session_of(message.result))
        return NO_NEWS

    def received_oversized(self, message: Oversized, stream: str | None) -> None:
        """Note a message that was skipped: a request is refused, and an answer fails its request."""
        if message.id is not None and message.has_method:
            self._theirs[message.id] = stream
        elif message.id is not None:
            self._ours.pop(message.id, None)
