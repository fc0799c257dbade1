"""One Streamable HTTP connection, on the server's side: a `Transport` for the agent, requests for the shell.

    POST ──▶ deliver ──▶ receiver                  the agent takes it, or the POST waits until it does
    send ──▶ Outbound ──▶ Reader.next ──▶ GET      messages wait until somebody reads their stream

The agent feels a client that does not read: past the high-water mark it is paused. Should nothing be read for
long while something waits (`Limits.stalled`), or nobody be there at all (`Limits.abandoned`), the connection ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from accord.errors import ProtocolError
from accord.http.events import ALIVE, announcement, event
from accord.http.judging import Posted, Refusal
from accord.http.ledger import Ledger
from accord.http.limits import Limits
from accord.http.ordering import Once
from accord.http.outbound import Gone, Outbound, Stream
from accord.http.quota import Bytes
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Answer, Call, Malformed, parse
from accord.schema import codec, v1
from accord.transports.base import End, Receiver, Transport
from accord.transports.closing import within

JOIN = 64 * 1024
"""Bytes of messages that go into one write."""


class HttpLink(Transport):
    """A connection whose client posts, and reads event streams."""

    name = "http"

    def __init__(self, connection_id: str, owner: str = "", limits: Limits | None = None) -> None:
        self.id = connection_id
        self.owner = owner
        self.limits = limits or Limits()
        self.outbound = Outbound(self.limits.kept)
        self.ledger = Ledger(self.limits.sessions)
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
        self._drained = asyncio.Event()
        self._drained.set()
        self._initializing: RequestId | None = None
        self._initialized: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._readers: dict[str | None, Reader] = {}
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
        self._may_deliver.set()
        self._started.set()
        self._drained.set()
        for reader in self._readers.values():
            reader.wake.set()
        if not self._initialized.done():
            self._initialized.cancel()
        if self._receiver is not None:
            self._receiver.ended(end)

    def _too_late(self) -> Refusal:
        if self._initialized.cancelled():
            return Refusal(502, self.why or "the agent ended before it answered")
        return Refusal(404, self.why or "the connection has ended")

    # The client's side: requests

    async def initialize(self, call: Call, body: bytes) -> bytes:
        """Deliver this `initialize`, and wait for its answer; raises Refusal if there will be none."""
        self._initializing = call.id
        await self._hand_over(body)
        try:
            return await asyncio.shield(self._initialized)
        except asyncio.CancelledError:
            if self._initialized.cancelled():
                raise self._too_late() from None
            raise

    async def deliver(self, posted: Posted, body: bytes, number: int | None = None) -> None:
        """Hand a message to the agent; waits while it takes none, and raises Refusal once it is gone."""
        if not (self.takes_now or self._waiting.has_room(len(body))):
            most = self.limits.waiting
            raise Refusal(
                429, f"the agent reads nothing, and at most {most:,} bytes wait for it: send this again later"
            )
        if isinstance(posted.message, Call):
            self._check_streams(posted.session)
            self.outbound.asked(posted.message, posted.session)
            if (refusal := self.ledger.hear(posted.message)) is not None:
                self.send([refusal])
                return
        elif isinstance(posted.message, Answer):
            self.outbound.answered(posted.message.id)
        await self._hand_over(body, number)

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
        self.outbound.answered(answer.pending)
        await self._hand_over(body)

    async def _hand_over(self, body: bytes, number: int | None = None) -> None:
        self._requests += 1
        try:
            if not self.takes_now:
                await self._wait_with(body)
            if self.end is not None or self._receiver is None:
                raise self._too_late()
            # Only now: whoever waited here and was cancelled has not handed anything over.
            if number is None or self.once.take(number):
                self._receiver.received([body])
        finally:
            self._requests -= 1
            self._seen = self._loop.time()

    async def _wait_with(self, body: bytes) -> None:
        """Wait until the agent takes messages."""
        self._waiting.add(len(body))
        try:
            await self._started.wait()
            while not self._may_deliver.is_set():
                await self._may_deliver.wait()
        finally:
            self._waiting.remove(len(body))

    def read(self, key: str | None, last: int | None) -> Reader:
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
            except Gone as gone:
                raise Refusal(410, str(gone)) from None
        reader = self._readers[key] = Reader(self, stream)
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

    def leave(self, reader: Reader) -> None:
        if self._readers.get(reader.stream.key) is reader:
            del self._readers[reader.stream.key]
            reader.stream.open = False
            self.outbound.forget(reader.stream)
            self._seen = self._loop.time()

    def took(self) -> None:
        """A reader has taken something."""
        self._taken = self._loop.time()
        if not self.unsent:
            self._drained.set()
        if self._full and self.unsent <= self._high_water // 4 and self._receiver is not None:
            self._full = False
            self._receiver.resumed()

    # Whether anybody is there

    def problem(self, now: float) -> str | None:
        """Why this connection should be given up, if it should."""
        if self.unsent and now - self._taken > self.limits.stalled:
            return f"nothing was read for {self.limits.stalled:g} seconds"
        if not (self._readers or self._requests) and now - self._seen > self.limits.abandoned:
            return f"nobody was there for {self.limits.abandoned:g} seconds"
        return None


class Reader:
    """One GET: takes the messages of a stream, as events, until either side is gone."""

    def __init__(self, link: HttpLink, stream: Stream) -> None:
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
