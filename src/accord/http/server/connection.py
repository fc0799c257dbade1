"""One Streamable HTTP connection, on the server's side: a `Transport` for the agent, requests for the shell.

    POST ──▶ deliver ──▶ receiver                  the agent takes it, or the POST waits until it does
    send ──▶ Outbound ──▶ Reader.next ──▶ GET      messages wait until somebody reads their stream

A client that does not read slows its agent: past the high-water mark the agent is paused. The connection ends if
nothing is read for `ServerLimits.stalled` seconds while something waits, or if no stream and no request is open for
`ServerLimits.abandoned` seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from accord.errors import ProtocolError
from accord.http.ordering import Once
from accord.http.server.ledger import Ledger
from accord.http.server.limits import ServerLimits
from accord.http.server.quota import Bytes
from accord.http.server.streams import NotKept, Stream, Streams
from accord.http.server.validation import PostedMessage, Refusal
from accord.http.sse import ALIVE, announcement, event
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Answer, Call, Malformed, parse
from accord.schema import codec, v1
from accord.transports.base import End, Receiver, Transport
from accord.transports.closing import within

JOIN = 64 * 1024
"""Bytes of messages that go into one write."""


class HttpConnection(Transport):
    """A connection whose client posts, and reads event streams."""

    name = "http"

    def __init__(self, connection_id: str, owner: str = "", limits: ServerLimits | None = None) -> None:
        self.id = connection_id
        self.owner = owner
        self.limits = limits or ServerLimits()
        self.outbound = Streams(self.limits.kept, self.limits.requests)
        self.ledger = Ledger(self.limits.sessions, self.limits.requests)
        self.once = Once()
        """Which of the POSTs that have numbers were taken."""
        self.ended: asyncio.Event = asyncio.Event()
        """Set once the connection is over and what was sent on it can still be read."""
        self.end: End | None = None
        self.can_load = False
        """Whether the agent has said that sessions can be loaded or taken up again."""
        self._high_water = self.limits.unread
        self._receiver: Receiver | None = None
        self._started = asyncio.Event()
        self._may_deliver = asyncio.Event()
        self._may_deliver.set()
        self._full = False
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._drained = asyncio.Event()
        self._drained.set()
        self._initializing: RequestId | None = None
        self._initialized: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._readers: dict[str | None, StreamReader] = {}
        self._requests = 0
        self._waiting = Bytes(self.limits.waiting)
        self._loop = asyncio.get_running_loop()
        self._seen = self._taken = self._loop.time()

    # The agent's side: a transport

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._started.set()

    def send(self, frames: Sequence[bytes]) -> None:
        if self.ended.is_set():
            return
        was_empty = self.outbound.waiting_bytes == 0
        for frame in frames:
            self.ledger.said(frame)
            if not self._is_first_answer(frame):
                self._put(frame)
        if was_empty:
            self._taken = self._loop.time()
        if not self._full and self.unsent > self._high_water and self._receiver is not None:
            self._full = True
            self._has_room.clear()
            self._receiver.paused()

    def _put(self, frame: bytes) -> None:
        stream, is_new = self.outbound.put(frame)
        self._drained.clear()
        if (reader := self._readers.get(stream.key)) is not None:
            reader.wake.set()
        elif is_new and stream.key is not None and (reader := self._readers.get(None)) is not None:
            reader.announced.append(stream.key)
            reader.wake.set()

    def _is_first_answer(self, frame: bytes) -> bool:
        # Adds an HTTP Transport: `initialize` is answered in the POST itself.
        if self._initialized.done():
            return False
        message = parse(frame)
        if not (isinstance(message, Answer) and message.id == self._initializing):
            return False
        self.can_load = _can_load(message)
        self._initialized.set_result(frame)
        return True

    @property
    def unsent(self) -> int:
        return self.outbound.waiting_bytes

    async def flush(self) -> None:
        await self._drained.wait()

    @property
    def client_has_left(self) -> bool:
        """Whether the client has ended the connection, so that nobody is to read what waits."""
        return self.end is not None and self.end.reason == "peer_closed"

    def pause_reading(self) -> None:
        self._may_deliver.clear()

    def resume_reading(self) -> None:
        self._may_deliver.set()

    async def close(self, grace: float = 2.0) -> End:
        if not self.ended.is_set():
            await within(grace, self.flush())
        self.finish(End("closed"))
        return self.end or End("closed")

    def finish(self, end: End, *, going_away: bool = False) -> None:  # noqa: ARG002 - there are no two ways to say so
        """The connection is over; idempotent."""
        if self.end is not None:
            return
        self.end = end
        self.ended.set()
        self._has_room.set()
        self._may_deliver.set()
        self._started.set()
        self._drained.set()
        for reader in self._readers.values():
            reader.wake.set()
        self._drop_unreadable()
        if not self._initialized.done():
            self._initialized.cancel()
        if self._receiver is not None:
            self._receiver.ended(end)

    def _drop_unreadable(self) -> None:
        """Keep nothing for readers that cannot come any more: nobody finds a connection that has ended."""
        if self.end is not None and (self.client_has_left or not self._readers):
            self.outbound = Streams(self.limits.kept, self.limits.requests)

    def _too_late(self) -> Refusal:
        if self._initialized.cancelled():
            return Refusal(502, self.why or "the agent ended before it answered")
        return Refusal(404, self.why or "the connection has ended")

    # The client's side: requests

    async def initialize(self, call: Call, body: bytes) -> bytes:
        """Deliver this `initialize`, and wait for its answer; raises Refusal if there will be none."""
        self._initializing = call.id
        with self._counted():
            (await self._taking(body)).received([body])
        try:
            return await asyncio.shield(self._initialized)
        except asyncio.CancelledError:
            if self._initialized.cancelled():
                raise self._too_late() from None
            raise

    async def deliver(self, posted: PostedMessage, body: bytes, number: int | None = None) -> None:
        """Hand a message to the agent; waits while the agent takes none. Raises Refusal.

        Nothing is recorded before the message can be handed over, so a POST that is cancelled leaves nothing.
        """
        self._check_waiting(body)
        with self._counted():
            receiver = await self._taking(body)
            if number is not None and self.once.has(number):
                return
            if (refusal := self._refusal_of(posted)) is not None:
                await self._has_room.wait()  # a client that reads no refusals gets no more of them
                self._check_open()
            if number is not None and not self.once.take(number):
                return
            if isinstance(posted.message, Call):
                self.outbound.asked(posted.message, posted.session)
            elif isinstance(posted.message, Answer):
                self.outbound.answered(posted.message.id)
            if refusal is None:
                receiver.received([body])
            else:
                self.send([refusal])

    def _refusal_of(self, posted: PostedMessage) -> bytes | None:
        """The error to answer this with, if it would open one session too many. Raises Refusal for other limits."""
        if not isinstance(posted.message, Call):
            return None
        self._check_streams(posted.session)
        if self.outbound.unanswered >= self.limits.requests:
            raise Refusal(
                429,
                f"{self.outbound.unanswered:,} requests of this connection wait for their answers, at most "
                f"{self.limits.requests:,} may: send this again later",
            )
        return self.ledger.hear(posted.message)

    def _check_waiting(self, body: bytes) -> None:
        if not (self.takes_now or self._waiting.has_room(len(body))):
            most = self.limits.waiting
            raise Refusal(
                429, f"the agent reads nothing, and at most {most:,} bytes wait for it: send this again later"
            )

    def _check_streams(self, session: str | None) -> None:
        is_new = session is not None and session not in self.outbound.sessions
        if is_new and len(self.outbound.sessions) >= self.limits.streams:
            raise Refusal(429, f"a connection has at most {self.limits.streams:,} streams")

    @property
    def takes_now(self) -> bool:
        """Whether a message would be taken without waiting."""
        return self._started.is_set() and self._may_deliver.is_set()

    async def deliver_wrong_answer(self, answer: Malformed, body: bytes) -> None:
        """Hand over what was meant as an answer: whoever waits for it is to know that it makes no sense."""
        self._check_waiting(body)
        with self._counted():
            receiver = await self._taking(body)
            self.outbound.answered(answer.pending)
            receiver.received([body])

    @contextmanager
    def _counted(self) -> Generator[None]:
        """Count a request of the client for as long as the block lasts: a connection with one is not abandoned."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self._seen = self._loop.time()

    async def _taking(self, body: bytes) -> Receiver:
        """Wait until the agent takes messages; raises Refusal if the connection has ended."""
        if not self.takes_now:
            await self._wait_with(body)
        return self._check_open()

    def _check_open(self) -> Receiver:
        if self.end is not None or self._receiver is None:
            raise self._too_late()
        return self._receiver

    async def _wait_with(self, body: bytes) -> None:
        """Wait until the agent takes messages."""
        self._waiting.add(len(body))
        try:
            await self._started.wait()
            while not self._may_deliver.is_set():
                await self._may_deliver.wait()
        finally:
            self._waiting.remove(len(body))

    def read(self, key: str | None, last: int | None) -> StreamReader:
        """Take up a stream; raises Refusal."""
        stream = self._stream(key)
        earlier = self._readers.get(key)
        if earlier is not None:
            if last is None:
                raise Refusal(409, "this stream has a reader")
            earlier.leave()  # it has noticed that its connection broke before we did
        if last is not None:
            try:
                self.outbound.resume(stream, last)
            except NotKept as gone:
                raise Refusal(410, str(gone)) from None
        reader = self._readers[key] = StreamReader(self, stream)
        stream.open = True
        if key is None:
            reader.announced += self.outbound.sessions
        return reader

    def _stream(self, key: str | None) -> Stream:
        if key is None:
            return self.outbound.connection
        # Resume Session Flow: a session's stream is opened before it is loaded, and clients wait for its headers.
        if key not in self.outbound.sessions and not self.can_load:
            raise Refusal(404, "no such session")
        self._check_streams(key)
        return self.outbound.expect(key)

    def leave(self, reader: StreamReader) -> None:
        if self._readers.get(reader.stream.key) is reader:
            del self._readers[reader.stream.key]
            reader.stream.open = False
            self.outbound.forget(reader.stream)
            self._seen = self._loop.time()
            self._drop_unreadable()

    def took(self) -> None:
        """A reader has taken something."""
        self._taken = self._loop.time()
        if not self.unsent:
            self._drained.set()
        if self._full and self.unsent <= self._high_water // 4 and self._receiver is not None:
            self._full = False
            self._has_room.set()
            self._receiver.resumed()

    # Whether anybody is there

    def problem(self, now: float) -> str | None:
        """Why this connection should be given up, if it should."""
        if self.unsent and now - self._taken > self.limits.stalled:
            return f"nothing was read for {self.limits.stalled:g} seconds"
        if not (self._readers or self._requests) and now - self._seen > self.limits.abandoned:
            return f"nobody was there for {self.limits.abandoned:g} seconds"
        return None


class StreamReader:
    """One GET: takes the messages of a stream, as events, until either side is gone."""

    def __init__(self, link: HttpConnection, stream: Stream) -> None:
        self.stream = stream
        self.announced: list[str] = []
        self.wake = asyncio.Event()
        """Set when there may be something to take, or nothing any more."""
        self._link = link
        self._has_left = False

    def leave(self) -> None:
        """This reader takes no more."""
        self._has_left = True
        self.wake.set()
        self._link.leave(self)

    async def next(self, keepalive: float) -> bytes | None:
        """What to write now; None when the stream is over."""
        while not (self._has_left or self._link.client_has_left):
            self.wake.clear()
            if written := self._ready():
                return written
            if self._link.ended.is_set():
                return None
            if not await within(keepalive, self.wake.wait()):
                return ALIVE
        return None

    def _ready(self) -> bytes:
        parts = [announcement(key) for key in self.announced]
        self.announced.clear()
        taken = self._link.outbound.take(self.stream, JOIN)
        if taken:
            self._link.took()
        return b"".join((*parts, *(event(number, frame) for number, frame in taken)))


def _can_load(answer: Answer) -> bool:
    """Whether this answer to `initialize` says that sessions can be loaded, or taken up in some other way."""
    if answer.result is None:
        return False
    try:
        told = codec.decode(answer.result, v1.InitializeResponse).agent_capabilities
    except ProtocolError:
        return False
    return told.load_session or told.session_capabilities.resume is not None
