"""The client's outgoing messages: the session of each, the queue of its POST, and the answer if it is refused.

    client's message ──▶ ClientRequests.sent ──▶ PostRoute: its session, and its queue
    QueuedPost ──▶ its queue ──▶ waits for `initialize` ──▶ POST ──▶ refused ──▶ instead_of
    server's message ──▶ ClientRequests.received ──▶ SessionNews: a session was closed, or named

Messages of one session are posted one at a time, in the order in which they were sent; sessions do not wait for each
other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from accord._internal.tasks import LightEvent, Tasks
from accord.engine.incoming_requests import session_of
from accord.errors import INTERNAL_ERROR, INVALID_REQUEST, DecodeError
from accord.http.headers import CLOSES_A_SESSION
from accord.jsonrpc.line_frames import Oversized, RequestId
from accord.jsonrpc.wire_messages import (
    Malformed,
    Message,
    NotificationFrame,
    RequestFrame,
    ResponseFrame,
    encode_error,
    parse,
)
from accord.schema import codec, v1
from accord.transports.socket_buffers import OutputLevel

Parsed: TypeAlias = Message | Malformed

INTERNAL_FROM = 500
"""The lowest status that means an error of the server."""


class InitializeGate:
    """One `initialize`, and the messages that wait for its result."""

    def __init__(self) -> None:
        self.succeeded = False
        self.waiting: list[Parsed] = []
        self._is_settled = LightEvent()

    def settle(self, *, succeeded: bool) -> list[Parsed]:
        """Set the result; returns the messages that waited."""
        self.succeeded = succeeded
        self._is_settled.set()
        waiting, self.waiting = self.waiting, []
        return waiting

    def hold(self, message: Parsed) -> None:
        """Note a message that is sent after it."""
        if not self._is_settled.is_set():
            self.waiting.append(message)

    async def has_succeeded(self) -> bool:
        """Wait for the result: whether it opened the connection."""
        await self._is_settled.wait()
        return self.succeeded


@dataclass(slots=True, eq=False)
class QueuedPost:
    """A frame that waits to be posted, its parsed message, and its `initialize`."""

    frame: bytes
    message: Parsed
    session: str | None
    opening: InitializeGate
    is_substitute: bool = False
    """Whether this replaces an answer that was refused."""


class PostQueues:
    """The messages that wait to be posted: a queue for each session, and one for the rest.

    `post` posts one message. `level` counts the waiting bytes. A queue exists, with its task, while it has messages.
    """

    def __init__(self, post: Callable[[QueuedPost], Awaitable[None]], tasks: Tasks, level: OutputLevel) -> None:
        self._post = post
        self._tasks = tasks
        self._level = level
        self._queues: dict[str | None, deque[QueuedPost]] = {}
        self._is_over = False

    def add(self, key: str | None, posting: QueuedPost) -> None:
        """Append this to the queue with this key."""
        self._level.add(len(posting.frame))
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque([posting])
            self._tasks.start(self._post_all(key, queue), f"accord posts {key or ''}")
        else:
            queue.append(posting)

    def add_next(self, key: str | None, posting: QueuedPost) -> None:
        """Insert this into the queue with this key, after the message that is being posted now."""
        self._level.add(len(posting.frame))
        self._queues[key].insert(1, posting)

    def end(self) -> None:
        """Post no more messages."""
        self._is_over = True

    async def _post_all(self, key: str | None, queue: deque[QueuedPost]) -> None:
        while queue and not self._is_over:
            out = queue[0]
            try:
                await self._post(out)
            finally:
                queue.popleft()
                self._level.written(len(out.frame))
        if self._queues.get(key) is queue:
            del self._queues[key]


def opens(message: Parsed) -> bool:
    """Whether this message is `initialize`, which opens a connection."""
    return isinstance(message, RequestFrame) and message.method == "initialize"


def unsent_answer(message: Parsed, why: str) -> bytes | None:
    """Return the error that answers a message that cannot be posted; None for one without an answer."""
    if isinstance(message, Malformed):
        return message.reply()
    return (
        encode_error(message.id, INVALID_REQUEST, f"Invalid request: {why}")
        if isinstance(message, RequestFrame)
        else None
    )


def instead_of(message: Parsed, status: int, body: bytes, why: str) -> bytes | None:
    """Return the error that answers a refused message: for its sender, or, if it was an answer itself, for
    the server.
    """
    if isinstance(message, Malformed) and not message.answerable:
        return None
    if isinstance(message, ResponseFrame):
        return encode_error(message.id, INTERNAL_ERROR, f"the answer could not be sent: {why}")
    asked = message.id if isinstance(message, RequestFrame | Malformed) else None
    given = parse(body)
    if isinstance(given, ResponseFrame) and given.error is not None and given.id == asked:
        return body
    return encode_error(asked, INTERNAL_ERROR if status >= INTERNAL_FROM else INVALID_REQUEST, why)


def cancelled_by(message: NotificationFrame) -> RequestId | None:
    """Return the id of the request that this `$/cancel_request` cancels, or None."""
    try:
        return codec.decode(
            b"{}" if message.params is None else message.params, v1.CancelRequestNotification
        ).request_id
    except DecodeError:
        return None


CANCEL = "$/cancel_request"


class PostRoute(NamedTuple):
    """Where a message of the client belongs."""

    session: str | None = None
    """The session for its header."""
    queue: str | None = None
    """The queue of POSTs: that of its session, or of the request that it cancels."""


class SessionNews(NamedTuple):
    """A change of sessions in a message of the server."""

    named: str | None = None
    closed: str | None = None


NO_NEWS = SessionNews()


class _SentRequest(NamedTuple):
    session: str | None
    closes: bool


class ClientRequests:
    """The unanswered requests of one connection, in both directions."""

    def __init__(self) -> None:
        self._ours: dict[RequestId, _SentRequest] = {}
        self._theirs: dict[RequestId, str | None] = {}

    def sent(self, message: Parsed) -> PostRoute:
        """Note a message of the client; returns where it belongs."""
        match message:
            case RequestFrame():
                session = session_of(message.params)
                self._ours[message.id] = _SentRequest(session, message.method in CLOSES_A_SESSION)
                return PostRoute(session, session)
            case NotificationFrame():
                session = session_of(message.params)
                cancelled = cancelled_by(message) if message.method == CANCEL else None
                asked = None if cancelled is None else self._ours.get(cancelled)
                return PostRoute(session, session if asked is None else asked.session)
            case ResponseFrame() if message.id is not None:
                session = self._theirs.pop(message.id, None)
                return PostRoute(session, session)
            case _:
                return PostRoute()

    def received(self, message: Parsed, stream: str | None) -> SessionNews:
        """Note a message that arrived on the stream of this session; returns the changes of sessions in it."""
        if isinstance(message, RequestFrame):
            self._theirs[message.id] = session_of(message.params) if stream is None else stream
        elif isinstance(message, ResponseFrame) and message.id is not None:
            asked = self._ours.pop(message.id, None)
            if message.error is not None:
                return NO_NEWS
            if asked is not None and asked.closes and asked.session is not None:
                return SessionNews(closed=asked.session)
            return SessionNews(named=session_of(message.result))
        return NO_NEWS

    def received_oversized(self, message: Oversized, stream: str | None) -> None:
        """Note a message that was skipped: a request is refused, and an answer fails its request."""
        if message.id is not None and message.has_method:
            self._theirs[message.id] = stream
        elif message.id is not None:
            self._ours.pop(message.id, None)
