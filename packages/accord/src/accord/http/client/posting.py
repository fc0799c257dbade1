"""The client's queued POSTs, and the JSON-RPC answers for POSTs that were refused.

Posting ──▶ its queue ──▶ waits for `initialize` ──▶ POST ──▶ refused ──▶ instead_of

Messages of one session are posted one at a time, in the order in which they were sent; sessions do not wait for each
other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from accord._internal.light_event import LightEvent
from accord._internal.tasks import Tasks
from accord.errors import INTERNAL_ERROR, INVALID_REQUEST, DecodeError
from accord.jsonrpc.line_frames import RequestId
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


class Opening:
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


class Posting:
    """A frame that waits to be posted, its parsed message, and its `initialize`."""

    __slots__ = ("frame", "is_substitute", "message", "opening", "session")

    def __init__(
        self, frame: bytes, message: Parsed, session: str | None, opening: Opening, *, is_substitute: bool = False
    ) -> None:
        self.frame = frame
        self.message = message
        self.session = session
        self.opening = opening
        self.is_substitute = is_substitute
        """Whether this replaces an answer that was refused."""


class Queues:
    """The messages that wait to be posted: a queue for each session, and one for the rest.

    `post` posts one message. `level` counts the bytes that wait. A queue exists, with its task, while it has messages.
    """

    def __init__(self, post: Callable[[Posting], Awaitable[None]], tasks: Tasks, level: OutputLevel) -> None:
        self._post = post
        self._tasks = tasks
        self._level = level
        self._queues: dict[str | None, deque[Posting]] = {}
        self._is_over = False

    def add(self, key: str | None, posting: Posting) -> None:
        """Append this to the queue with this key."""
        self._level.add(len(posting.frame))
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque([posting])
            self._tasks.start(self._post_all(key, queue), f"accord posts {key or ''}")
        else:
            queue.append(posting)

    def add_next(self, key: str | None, posting: Posting) -> None:
        """Insert this into the queue with this key, after the message that is being posted now."""
        self._level.add(len(posting.frame))
        self._queues[key].insert(1, posting)

    def end(self) -> None:
        """Post no more messages."""
        self._is_over = True

    async def _post_all(self, key: str | None, queue: deque[Posting]) -> None:
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
    """The error that answers a message that cannot be posted; None for one without an answer."""
    if isinstance(message, Malformed):
        return message.reply()
    return (
        encode_error(message.id, INVALID_REQUEST, f"Invalid request: {why}")
        if isinstance(message, RequestFrame)
        else None
    )


def instead_of(message: Parsed, status: int, body: bytes, why: str) -> bytes | None:
    """The error that answers a refused message: for its sender, or, if it was an answer itself, for the server."""
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
    """The id of the request that this `$/cancel_request` cancels, or None."""
    try:
        return codec.decode(
            b"{}" if message.params is None else message.params, v1.CancelRequestNotification
        ).request_id
    except DecodeError:
        return None
