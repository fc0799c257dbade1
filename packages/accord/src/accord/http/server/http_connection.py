"""One Streamable HTTP connection, on the server's side: a `Transport` for the agent, requests for the shell.

    POST ──▶ deliver ──▶ receiver                       the POST waits until the agent takes the message
    send ──▶ Streams ──▶ StreamReader.next ──▶ GET      messages wait until the client reads their stream

A client that does not read slows its agent: past the high-water mark the agent is paused. The connection is closed if
messages wait and none is read for `ServerLimits.stalled` seconds, or if no stream and no request is open for
`ServerLimits.abandoned` seconds. `Responder` sends the response to one of its requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import cast

from msgspec import Raw

from accord._internal.tasks import IdleTimer, LightEvent, within
from accord.errors import DecodeError, ProtocolError
from accord.http.headers import EVENTS, JSON, OPENS_A_SESSION
from accord.http.message_numbers import Once
from accord.http.server.access_log import AccessRecord
from accord.http.server.asgi import Send, header_pairs
from accord.http.server.request_body import RequestBody
from accord.http.server.server_limits import ServerLimits
from accord.http.server.streams import NotReplayable, Stream, Streams
from accord.http.server.unanswered_requests import StreamRoute, UnansweredRequests
from accord.http.server.validation import AnswersBadly, Opens, Posts, Refusal, session_of_posted
from accord.http.sse import ALIVE, announcement, event
from accord.jsonrpc.chunked_decode import peek
from accord.jsonrpc.wire_messages import Malformed, Message, RequestFrame, ResponseFrame, encode_response
from accord.schema import codec, v1
from accord.schema.base import Json
from accord.transports import End, Receiver, Transport

JOIN = 64 * 1024
"""Bytes of messages to join into one write."""


class HttpConnection(Transport):
    """A connection whose client sends POSTs and reads event streams."""

    name = "http"

    def __init__(self, connection_id: str, owner: str = "", limits: ServerLimits | None = None) -> None:
        self.id = connection_id
        self.owner = owner
        self.limits = limits or ServerLimits()
        self.streams = Streams(self.limits.kept)
        self.calls = UnansweredRequests(self.limits.sessions, self.limits.requests)
        self.once = Once()
        """The numbers of POSTs that were taken."""
        self.ended: LightEvent = LightEvent()
        """Set when the connection has ended; messages sent before can still be read."""
        self.end: End | None = None
        self.opened_through = ""
        """The host that has forwarded the `initialize`; empty if its client has sent it here."""
        self.observes = False
        """Whether its client may only watch."""
        self.is_used = False
        """Whether a request has named this connection: its client has got the answer to `initialize`."""
        self.can_load = False
        """Whether the agent declares that sessions can be loaded or resumed."""
        self.client_resumes = False
        """Whether the client resumes a stream that has ended; one that numbers its POSTs does."""
        self._high_water = self.limits.unread
        self._receiver: Receiver | None = None
        self._started = LightEvent()
        self._may_deliver = LightEvent()
        self._may_deliver.set()
        self._full = False
        self._has_room = LightEvent()
        self._has_room.set()
        self._drained = LightEvent()
        self._drained.set()
        self._answered = LightEvent()
        """Set when `initialize` is answered, or the connection has ended."""
        self._answer: bytes | None = None
        """The answer to `initialize`, until it is sent."""
        self._is_initialized = False
        self._readers: dict[str | None, StreamReader] = {}
        self._requests = 0
        self._waiting = 0
        """Bytes of POST bodies that wait for the agent."""
        self._loop = asyncio.get_running_loop()
        self._seen = self._taken = self.now

    @property
    def now(self) -> float:
        """The time of the event loop."""
        return self._loop.time()

    # The agent's side: a transport

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._started.set()

    def send(self, frames: Sequence[bytes]) -> None:
        if self.ended.is_set():
            return
        was_empty = self.streams.waiting_bytes == 0
        for frame in frames:
            message = peek(frame)
            sent = self.calls.sent(message)
            if sent.opens_connection and not self._answered.is_set():
                # Adds an HTTP Transport: `initialize` is answered in the response to its POST.
                self._opened(message, frame)
            else:
                self._put(frame, sent)
        if was_empty:
            self._taken = self.now
        if not self._full and self.unsent > self._high_water and self._receiver is not None:
            self._full = True
            self._has_room.clear()
            self._receiver.paused()

    def _opened(self, message: Message | Malformed, frame: bytes) -> None:
        self.can_load = isinstance(message, ResponseFrame) and _can_load(message)
        self._answer, self._is_initialized = frame, True
        self._answered.set()

    def _put(self, frame: bytes, sent: StreamRoute) -> None:
        stream, is_new = self.streams.put(frame, sent)
        self._drained.clear()
        if (reader := self._readers.get(stream.key)) is not None:
            reader.wake.set()
        elif is_new and stream.key is not None and (reader := self._readers.get(None)) is not None:
            reader.announced.append(stream.key)
            reader.wake.set()

    @property
    def unsent(self) -> int:
        return self.streams.waiting_bytes

    async def flush(self) -> None:
        await self._drained.wait()

    @property
    def client_has_left(self) -> bool:
        """Whether the client has ended the connection, so that waiting messages will not be read."""
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

    def finish(self, end: End, *, going_away: bool = False) -> None:  # noqa: ARG002 - HTTP has no close code
        """End the connection; idempotent."""
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
        self._answered.set()
        if self._receiver is not None:
            self._receiver.ended(end)

    def _drop_unreadable(self) -> None:
        """Drop messages that no reader can fetch: an ended connection accepts no new streams."""
        if self.end is not None and (self.client_has_left or not self._readers):
            self.streams = Streams(self.limits.kept)

    def _too_late(self) -> Refusal:
        if not self._is_initialized:
            return Refusal(502, self.why or "the agent ended before it answered")
        return Refusal(404, self.why or "the connection has ended")

    # The client's side: requests

    async def initialize(self, request: Opens) -> bytes:
        """Deliver this `initialize` and wait for its answer; raises Refusal if the agent ends first."""
        self.calls.received(request.call, None)
        with self._counted():
            (await self._taking(request.body)).received([request.body])
        await self._answered.wait()
        answer, self._answer = self._answer, None
        if answer is None:
            raise self._too_late()
        return answer

    def has_taken(self, posts: Posts) -> bool:
        """Whether this message was accepted before: the client repeats it because our response was lost."""
        return posts.number is not None and self.once.has(posts.number)

    async def deliver(self, posts: Posts) -> None:
        """Hand a message to the agent; waits while the agent accepts none. Raises Refusal.

        Nothing is recorded before the message can be handed over, so a POST that is cancelled leaves no trace.
        """
        session = session_of_posted(posts, self.calls)
        self.client_resumes = self.client_resumes or posts.number is not None
        self._check_waiting(posts.body)
        with self._counted():
            receiver = await self._taking(posts.body)
            if self.has_taken(posts):
                return
            if (refusal := self._refusal_of(posts, session)) is not None:
                await self._has_room.wait()  # a client that reads no refusals gets no more of them
                self._check_open()
            if posts.number is not None and not self.once.take(posts.number):
                return
            self._record(posts, session, is_refused=refusal is not None)
            if refusal is None:
                receiver.received([posts.body])
            else:
                self.send([refusal])

    def _record(self, posts: Posts, session: str | None, *, is_refused: bool) -> None:
        if isinstance(posts.message, RequestFrame):
            self.calls.received(posts.message, session, is_refused=is_refused)
            if session is not None and posts.message.method in OPENS_A_SESSION:
                self.streams.session(session)
        elif isinstance(posts.message, ResponseFrame):
            self.calls.answered(posts.message.id)

    def _refusal_of(self, posts: Posts, session: str | None) -> bytes | None:
        """The error to answer this with, if it would open one session too many. Raises Refusal for other limits."""
        if not isinstance(posts.message, RequestFrame):
            return None
        self._check_streams(session)
        if not self.calls.has_room_for(posts.message):
            raise Refusal(
                429,
                f"{self.calls.unanswered:,} requests of this connection are unanswered, at most "
                f"{self.limits.requests:,} are allowed: try again later",
            )
        return self.calls.refusal(posts.message, session)

    def _check_waiting(self, body: bytes) -> None:
        most = self.limits.waiting
        if not self.takes_now and self._waiting + len(body) > most:
            raise Refusal(429, f"the agent is not reading, and at most {most:,} bytes may wait for it: try again later")

    def _check_streams(self, session: str | None) -> None:
        is_new = session is not None and session not in self.streams.sessions
        if is_new and len(self.streams.sessions) >= self.limits.streams:
            raise Refusal(429, f"too many streams: a connection has at most {self.limits.streams:,}; close a session")

    @property
    def takes_now(self) -> bool:
        """Whether the agent takes a message without waiting."""
        return self._started.is_set() and self._may_deliver.is_set()

    async def deliver_wrong_answer(self, request: AnswersBadly) -> None:
        """Hand over a malformed answer, so that the request it answers fails."""
        self._check_waiting(request.body)
        with self._counted():
            receiver = await self._taking(request.body)
            self.calls.answered(request.answer.pending)
            receiver.received([request.body])

    @contextmanager
    def _counted(self) -> Generator[None]:
        """Count a request of the client for as long as the block lasts: a connection with one is not abandoned."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self._seen = self.now

    async def _taking(self, body: bytes) -> Receiver:
        """Wait until the agent accepts messages; raises Refusal if the connection has ended."""
        if not self.takes_now:
            await self._wait_with(body)
        return self._check_open()

    def _check_open(self) -> Receiver:
        if self.end is not None or self._receiver is None:
            raise self._too_late()
        return self._receiver

    async def _wait_with(self, body: bytes) -> None:
        """Wait until the agent accepts messages."""
        self._waiting += len(body)
        try:
            await self._started.wait()
            while not self._may_deliver.is_set():
                await self._may_deliver.wait()
        finally:
            self._waiting -= len(body)

    def read(self, key: str | None, last: int | None) -> StreamReader:
        """Open a stream, or resume it after the message with the number `last`; raises Refusal."""
        stream = self._stream(key)
        earlier = self._readers.get(key)
        if earlier is not None:
            if last is None:
                raise Refusal(409, "this stream already has a reader; send Last-Event-ID to replace it")
            earlier.leave()  # the client noticed the broken connection before we did
        if last is not None:
            try:
                self.streams.resume(stream, last)
            except NotReplayable as gone:
                raise Refusal(410, str(gone)) from None
        reader = self._readers[key] = StreamReader(self, stream)
        stream.open = True
        if key is None:
            reader.announced += self.streams.sessions
        return reader

    def _stream(self, key: str | None) -> Stream:
        if key is None:
            return self.streams.connection
        if not self.can_stream(key):
            raise Refusal(404, "session not found")
        self._check_streams(key)
        return self.streams.expect(key)

    def can_stream(self, session: str) -> bool:
        """Whether a stream of this session can be opened: it is known, or may be loaded."""
        # Resume Session Flow: a client opens a session's stream, waits for its headers, and then loads the session.
        return session in self.streams.sessions or self.can_load

    def leave(self, reader: StreamReader) -> None:
        """Forget this reader: its GET has ended."""
        if self._readers.get(reader.stream.key) is reader:
            del self._readers[reader.stream.key]
            reader.stream.open = False
            self.streams.forget(reader.stream)
            self._seen = self.now
            self._drop_unreadable()

    def took(self) -> None:
        """Note that a reader has taken messages."""
        self._taken = self.now
        if not self.unsent:
            self._drained.set()
        if self._full and self.unsent <= self._high_water // 4 and self._receiver is not None:
            self._full = False
            self._has_room.set()
            self._receiver.resumed()

    # Unused connections

    def problem(self, now: float) -> str | None:
        """Return why this connection should be closed, or None."""
        if self.unsent and now - self._taken > self.limits.stalled:
            return f"the client read nothing for {self.limits.stalled:g} seconds"
        if not (self._readers or self._requests) and now - self._seen > self.limits.abandoned:
            return f"the client had no stream and sent no request for {self.limits.abandoned:g} seconds"
        return None


class StreamReader:
    """One GET: takes the messages of a stream as events, until either side leaves."""

    __slots__ = (  # noqa: SIM905 - as a list, each name would take a line
        "_has_left _idle_timer _link _must_say_something _silent_since announced stream wake"
    ).split()

    def __init__(self, link: HttpConnection, stream: Stream) -> None:
        self.stream = stream
        self.announced: list[str] = []
        self.wake = LightEvent()
        """Set when there may be something to take, or the stream may be over."""
        self._link = link
        self._has_left = False
        self._silent_since = link.now
        self._idle_timer = IdleTimer(link.limits.keepalive, self._keep_alive)
        self._must_say_something = False

    def leave(self, is_sent: bool = False) -> None:  # noqa: ARG002 - as the server calls it
        """Take no more messages."""
        self._has_left = True
        self._idle_timer.stop()
        self.wake.set()
        self._link.leave(self)

    async def next(self) -> bytes | None:
        """Wait for bytes to write; None when the stream is over.

        After `ServerLimits.keepalive` seconds without a message, it returns a comment. The kernel of a frozen client
        accepts comments for days. So after `ServerLimits.reopen` seconds the stream ends, and a live client opens it
        again.
        """
        while not (self._has_left or self._link.client_has_left):
            self.wake.clear()
            if written := self._ready():
                self._idle_timer.touch()
                self._silent_since = self._link.now
                self._must_say_something = False
                return written
            if self._link.ended.is_set() or self._must_be_opened_again:
                return None
            if self._must_say_something:
                self._must_say_something = False
                return ALIVE
            await self.wake.wait()
        return None

    def _keep_alive(self) -> None:
        self._must_say_something = True
        self.wake.set()

    @property
    def _must_be_opened_again(self) -> bool:
        return self._link.client_resumes and self._link.now - self._silent_since >= self._link.limits.reopen

    def _ready(self) -> bytes:
        parts = [announcement(key) for key in self.announced]
        self.announced.clear()
        taken = self._link.streams.take(self.stream, JOIN)
        if taken:
            self._link.took()
        return b"".join((*parts, *(event(number, frame) for number, frame in taken)))


def _can_load(answer: ResponseFrame) -> bool:
    """Whether this answer to `initialize` declares that sessions can be loaded or resumed."""
    if answer.result is None:
        return False
    try:
        declared = codec.decode(answer.result, v1.InitializeResponse).agent_capabilities
    except ProtocolError:
        return False
    return declared.load_session or declared.session_capabilities.resume is not None


def with_connection_id(message: Message | Malformed, frame: bytes, connection_id: str) -> bytes:
    """Return this answer with the id of its connection in its result; an answer without an object is not changed.

    rfd-streamable-http-websocket-transport, Deviations from MCP Streamable HTTP: the body of the answer holds the
    capabilities and `connectionId`, and the header is sent as well.
    """
    if not isinstance(message, ResponseFrame) or message.id is None or message.result is None:
        return frame
    if not _has_room(message.result):
        return frame
    members = bytes(message.result).strip()[:-1].rstrip()
    comma = b"" if members == b"{" else b","
    return encode_response(message.id, b'%b%b"connectionId":%b}' % (members, comma, codec.encode(connection_id)))


def _has_room(result: Raw) -> bool:
    try:
        said = codec.loads(result)
    except DecodeError:
        return False
    return isinstance(said, dict) and "connectionId" not in cast("dict[str, Json]", said)


log = logging.getLogger("accord.http")


class Responder:
    """Sends one response."""

    __slots__ = ("_send", "is_streaming", "more", "record")

    def __init__(self, record: AccessRecord, send: Send) -> None:
        self.record = record
        self.more: Sequence[tuple[str, str]] = ()
        """Headers for any response."""
        self.is_streaming = False
        """Whether it sends an event stream."""
        self._send = send

    async def respond(
        self,
        status: int,
        body: bytes = b"",
        *headers: tuple[str, str],
        media_type: str = "text/plain",
        before_its_end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Send a whole response; `before_its_end` is awaited when the client can read all of it but its end."""
        sent = [*headers, ("content-length", str(len(body)))]
        if body:
            sent.append(("content-type", media_type))
        self.record.status, self.record.sent = status, len(body)
        await self._start(status, *sent)
        if before_its_end is not None:
            await self._part(body, more=True)
            await before_its_end()
            body = b""
        await self._part(body)

    async def refuse(self, refusal: Refusal, body: RequestBody) -> None:
        """Send a refusal, and discard the rest of the request's body."""
        log.info("%s refused: %s %s", self.record.method, refusal.status, refusal.problem)
        more: list[tuple[str, str]] = []
        if refusal.status == 401:
            more.append(("www-authenticate", "Bearer"))
        if refusal.status == 405:
            more.append(("allow", "POST, GET, DELETE"))
        if refusal.status in (429, 503):
            more.append(("retry-after", str(refusal.retry_after)))
        text, media_type = (refusal.problem.encode(), "text/plain") if refusal.body is None else (refusal.body, JSON)
        unread = None if body.is_over or self.record.method != "POST" else body.pass_over
        await self.respond(refusal.status, text, *more, media_type=media_type, before_its_end=unread)

    async def stream(self, reader: StreamReader, note_end: Callable[[AccessRecord], None]) -> None:
        """Send an event stream until it is over."""
        try:
            # X-Accel-Buffering turns off the buffering of nginx, which would hold the stream until it ends.
            await self.begin_stream(("cache-control", "no-cache"), ("x-accel-buffering", "no"))
            # Many servers send the headers only with the first bytes of the body.
            await self._part(b":\n\n", more=True)
            while (written := await reader.next()) is not None:
                await self.pass_on(written)
            await self.end_stream()
        finally:
            reader.leave()
            note_end(self.record)

    async def begin_stream(self, *headers: tuple[str, str]) -> None:
        """Begin an event stream whose bytes follow by `pass_on`."""
        self.record.status = 200
        await self._start(200, ("content-type", EVENTS), *headers)

    async def pass_on(self, written: bytes) -> None:
        """Send bytes of an event stream; waits while the client does not read."""
        await self._part(written, more=True)
        self.record.sent += len(written)

    async def end_stream(self) -> None:
        """End an event stream."""
        await self._part(b"")

    async def _start(self, status: int, *headers: tuple[str, str]) -> None:
        await self._send(
            {"type": "http.response.start", "status": status, "headers": header_pairs(*headers, *self.more)}
        )

    async def _part(self, body: bytes, *, more: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
