"""The client's transport over Streamable HTTP: sends POSTs and reads event streams (extra `http`).

    send ──▶ ClientRequests ──▶ PostQueues ──▶ POST, one at a time for each session
    GET, one stream for the connection and one for each session ──▶ ClientRequests, Arrivals ──▶ receiver

A session's stream is opened before the first message of that session is posted, or when the server first mentions the
session. A broken stream is resumed after the last message received, if the server numbers its messages. If it does not,
a loss could not be detected, so the connection ends. The end of the connection is reported once, with its reason.

`initialize` opens the connection. A message sent before it is refused here, because there is no connection to post it
on. An `initialize` that is answered with an error opens nothing; another may follow.

An event stream is opened, read, and resumed when it breaks:

open ──▶ refused ──┬──▶ try later (409, 503, ...; 404 for a session that the server does not know yet)
  ▲                └──▶ the connection ends
  │──▶ read ──▶ HttpTransport.arrived
  └── broken, ended, silent
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Mapping, Sequence

from accord._internal.tasks import IdleTimer, LightEvent, Tasks, to_the_end, within
from accord.http.client.client_socket import Broken, Response
from accord.http.client.connection_pool import ConnectionPool
from accord.http.client.post_queue import (
    ClientRequests,
    InitializeGate,
    Parsed,
    PostQueues,
    QueuedPost,
    instead_of,
    opens,
    unsent_answer,
)
from accord.http.headers import (
    CONNECTION_ID,
    EVENTS,
    JSON,
    LAST_EVENT_ID,
    MESSAGE,
    NUMBERED,
    PROTOCOL_VERSION,
    SESSION_ID,
    protocol_version_of,
)
from accord.http.message_numbers import Arrivals
from accord.http.sse import EventReader, ServerSentEvent, TooLong
from accord.jsonrpc.chunked_decode import peek
from accord.jsonrpc.line_frames import LIMIT, Oversized
from accord.jsonrpc.wire_messages import RequestFrame, ResponseFrame, parse
from accord.redaction import mask_urls
from accord.transports import HIGH_WATER, End, Receiver, Transport
from accord.transports.server_access import Cookies, checked_headers, network_proxy, not_found
from accord.transports.socket_buffers import OutputLevel

SILENCE = 45.0
"""Seconds of idle_timer after which a stream counts as broken; our server sends a comment every 15 seconds."""

AWAY = frozenset({502, 503, 504})
"""The statuses with which a server, or a proxy in front of it, refuses temporarily."""

LONGEST_WISH = 5.0
"""The most seconds of a `Retry-After` that are waited for."""

REFUSAL_SHOWN = 300
"""The most characters of a refusal's text to show."""

log = logging.getLogger("accord.http")


class Backoff:
    """Pauses between attempts that grow longer, until `seconds` are over."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._pause = 0.1

    async def another(self, at_least: float = 0.0) -> bool:
        """Pause before another attempt, for this many seconds at least; False if the time is over."""
        pause = max(self._pause * random.uniform(0.5, 1.0), at_least)
        if self._loop.time() + max(self._pause, pause) > self._until:
            return False
        await asyncio.sleep(pause)
        self._pause = min(2 * self._pause, 5.0)
        return True


class EventStream:
    """One event stream, of a session or of the connection (`key` is None)."""

    def __init__(self, transport: HttpTransport, key: str | None) -> None:
        self.task: asyncio.Task[None] | None = None
        self.ready = LightEvent()
        """Set when the stream is open, or the server must learn of the session before it opens one."""
        self.is_read = False
        """Whether it is open and being read."""
        self._transport = transport
        self._key = key
        self._last: str | None = None
        self._was_open = False
        self._may_have_begun = False
        """Whether the server may have sent messages on this stream, with or without our knowledge."""
        self._left = False
        self._is_waiting = False
        """Whether it waits for the server."""

    def leave(self) -> None:
        """Stop reading: the session was closed."""
        self._left = True
        if self.task is not None:
            asyncio.get_running_loop().call_soon(self.task.cancel)

    async def run(self) -> None:
        """Read the stream, and resume it when it breaks, until the session or the connection ends."""
        try:
            patience = Backoff(self._transport.reconnect_within)
            while await self._once():
                if self._progress:
                    patience = Backoff(self._transport.reconnect_within)
                if not await patience.another():
                    self._give_up("did not resume a stream in time")
                    return
        except TooLong:
            self._give_up(f"sent a line of more than {self._transport.limit:,} bytes that is not a message")
        finally:
            self.ready.set()

    async def _once(self) -> bool:
        """Open the stream and read it to its end; returns whether to resume it."""
        self._progress = False
        try:
            response = await self._transport.open_stream(self._key, self._resumes_after())
        except Broken as broken:
            self._may_have_begun |= broken.was_sent
            return self._broke(str(broken))
        # A proxy that answers for an unreachable server cannot know whether the server has begun to send.
        self._may_have_begun |= response.status == 200 or response.status in AWAY
        if response.status != 200:
            return self._was_refused(response.status, await self._body(response))
        try:
            self._was_open = self.is_read = True
            self.ready.set()
            await self._read(response)
        except Broken as broken:
            return self._broke(str(broken))
        except TimeoutError:
            return self._broke(f"the server sent nothing for {SILENCE:g} seconds")
        finally:
            self.is_read = False
            await response.close()
        return self._broke("the server ended the stream")

    def _resumes_after(self) -> str | None:
        if self._transport.numbered:
            return (self._last or "0") if self._may_have_begun else None
        return self._last

    async def _read(self, response: Response) -> None:
        async with asyncio.timeout(None) as deadline:

            def stop_waiting() -> None:
                if self._is_waiting and self._transport.numbered:  # the silence of another server means nothing
                    deadline.reschedule(0)

            idle_timer = IdleTimer(SILENCE, stop_waiting)
            try:
                await self._read_chunks(response, idle_timer)
            finally:
                idle_timer.stop()

    async def _read_chunks(self, response: Response, idle_timer: IdleTimer) -> None:
        events = EventReader(self._transport.limit)
        while True:
            await self._transport.may_read.wait()
            idle_timer.touch()  # the server was not silent while nothing was read
            self._is_waiting = True
            try:
                chunk = await anext(response.chunks)
            except StopAsyncIteration:
                return
            finally:
                self._is_waiting = False
            self._progress = True
            if found := events.feed(chunk):
                self._last = next((event.id for event in reversed(found) if event.id is not None), self._last)
                self._transport.arrived(found, self._key)
                await self._transport.arrivals.room(self._last)

    async def _body(self, response: Response) -> bytes:
        try:
            return await response.body(64 * 1024)
        except Broken:
            return b""

    def _broke(self, why: str) -> bool:
        if self._left or self._transport.is_over:
            return False
        if self._was_open and not self._transport.numbered and self._last is None:
            # The server does not number messages, so a loss between two streams could not be detected.
            self._transport.finish(End("peer_closed", f"{self._transport.name}: a stream ended: {why}"))
            return False
        log.info("a stream of %s ended and is resumed: %s", self._transport.name, why)
        return True

    def _was_refused(self, status: int, body: bytes) -> bool:
        if self._key is not None and status == 404:
            # The server must learn of the session before it opens a stream; or the connection has ended, which the
            # connection's own stream reports.
            self.ready.set()
            return not (self._was_open or self._transport.is_over)
        if status in (409, 429) or status in AWAY:
            return not self._transport.is_over
        if status == 404:
            self._transport.gone(shown(status, body))
        else:
            self._transport.finish(End("broken", f"{self._transport.name}: {shown(status, body)}"))
        return False

    def _give_up(self, why: str) -> None:
        if self._key is not None and not self._was_open:
            log.warning("the server never opened the stream of session %s", self._key)
            return
        self._transport.finish(End("broken", f"{self._transport.name} {why}"))


def wished_pause(response: Response) -> float:
    """The seconds that the server asks to wait before another attempt, within `LONGEST_WISH`."""
    wish = response.header("retry-after") or ""
    # The other form is a date (RFC 9110, 10.2.3); servers that are away for seconds do not use it.
    return min(float(wish), LONGEST_WISH) if wish.isascii() and wish.isdecimal() else 0.0


def shown(status: int, body: bytes) -> str:
    """The text of a refusal, for an error message."""
    text = body.decode("utf-8", "replace").strip()
    message = parse(body)
    if isinstance(message, ResponseFrame) and message.error is not None:
        text = message.error.message
    return f"the server answered {status}{': ' if text else ''}{text[:REFUSAL_SHOWN]}"


STREAMS = 10_000
"""The most sessions that a server may name on one connection. Each has a stream, and a socket over HTTP/1.1."""

LAST_WORDS = 2.0
"""Seconds to read the remaining streams after an unnumbered connection has ended."""


class HttpTransport(Transport):
    """A client's transport over Streamable HTTP.

    `headers` are sent with every request. `cookies` keeps the server's cookies. `tls` replaces the default TLS context.
    `proxy` is the URL of an HTTP or SOCKS5 proxy; without it the environment may name one, and False prevents that.
    With the extra `http2`, HTTP/2 is negotiated within TLS; `http2=False` prevents it, `http2=True` uses it without TLS
    as well. `limit` is the size of a message, `high_water` how many bytes may wait before the sender is paused.
    `reconnect_within` is how many seconds a broken stream is resumed, or a POST repeated.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        cookies: Cookies | None = None,
        tls: ssl.SSLContext | None = None,
        http2: bool | None = None,
        proxy: str | bool = True,
        limit: int = LIMIT,
        high_water: int = HIGH_WATER,
        reconnect_within: float = 30.0,
    ) -> None:
        self.name = mask_urls(url)
        self.reconnect_within = reconnect_within
        """Seconds in which a broken stream is resumed, or a POST repeated."""
        self.limit = limit
        """The most bytes of a message."""
        self.may_read = LightEvent()
        self.may_read.set()
        self._posted = 0
        self._requests = ConnectionPool(url, tls=tls, http2=http2, proxy=network_proxy(url, proxy))
        self._headers = [(name.lower(), value) for name, value in checked_headers(headers).items()]
        self._cookies = Cookies() if cookies is None else cookies
        self._level = OutputLevel(high_water)
        self._calls = ClientRequests()
        self.arrivals = Arrivals(self._is_missing, self.may_read.is_set)
        """Orders the messages of all streams."""
        self._streams: dict[str | None, EventStream] = {}
        self._connection_id: str | None = None
        self._version: str | None = None
        self._opening: InitializeGate | None = None
        self._reading_out: asyncio.Task[None] | None = None
        self._end: End | None = None
        self._closing: asyncio.Task[None] | None = None

    async def start(self, receiver: Receiver) -> None:
        """Begin to work; `initialize` opens the connection."""
        self._receiver = receiver
        self._level.start(receiver)
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks(self._loop)
        self._queues = PostQueues(self._post, self._tasks, self._level)

    @property
    def numbered(self) -> bool:
        """Whether the server numbers its messages, and accepts each numbered POST only once."""
        return self.arrivals.numbered

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended, so that nothing is resumed."""
        return self._end is not None or self._reading_out is not None

    @property
    def unsent(self) -> int:
        """Bytes of messages that wait to be posted."""
        return self._level.size

    async def flush(self) -> None:
        """Wait until all messages are posted."""
        await self._level.flush()

    def pause_reading(self) -> None:
        """Stop reading the event streams."""
        self.may_read.clear()

    def resume_reading(self) -> None:
        """Continue to read the event streams."""
        self.may_read.set()

    # Out

    def send(self, frames: Sequence[bytes]) -> None:
        """Queue these messages to be posted, each in the queue of its session."""
        if self._end is not None:
            return
        for frame in frames:
            message = peek(frame)
            if opens(message) and self._opening is None:
                self._opening = InitializeGate()
            elif opens(message) or self._opening is None:
                self._refuse(
                    message,
                    "`initialize` must be sent only once" if opens(message) else "`initialize` must be sent first",
                )
                continue
            else:
                self._opening.hold(message)
            session, queue = self._calls.sent(message)
            self._queues.add(queue, QueuedPost(frame, message, session, self._opening))

    def _refuse(self, message: Parsed, why: str) -> None:
        if (refusal := unsent_answer(message, why)) is not None:
            self._loop.call_soon(self._receive, [refusal])

    def _receive(self, frames: Sequence[bytes]) -> None:
        if self._end is None:
            self._receiver.received(frames)

    async def _post(self, out: QueuedPost) -> None:
        if not opens(out.message) and not await out.opening.has_succeeded():
            return  # it was already refused
        if out.session is not None:
            await self.stream(out.session).ready.wait()
        try:
            response, body = await self._post_somehow(out)
        except Broken as broken:
            self.finish(End("broken", f"{self.name}: {broken}"))
            return
        if self._end is not None:
            return
        if opens(out.message):
            self._initialized(out, response, body)
        elif response.status not in (200, 202, 204):
            self._refused(out, response.status, body)
        elif body.lstrip().startswith(b"{"):
            self._receiver.received([body])  # some servers answer in the response to the POST

    async def _post_somehow(self, out: QueuedPost) -> tuple[Response, bytes]:
        """Post a message and read the response; repeat it while the server cannot receive it twice.

        A server that numbers accepts a message once, so it is also repeated when a server or a proxy refuses
        temporarily. A request that comes too fast (429) fails at once; a notification or an answer, which cannot fail,
        is repeated. `initialize` is repeated only when the server reports that it was not accepted: there is no room
        now (503).
        """
        headers = [("content-type", JSON), ("accept", f"{JSON}, {EVENTS}"), *self._identity(out.session)]
        if self.numbered:
            self._posted += 1
            headers.append((MESSAGE, str(self._posted)))
        patience = Backoff(self.reconnect_within)
        while True:
            try:
                response = await self._request("POST", headers, out.frame)
                body = await response.body(self.limit)
                if not (self._may_repeat(out, response) and await patience.another(wished_pause(response))):
                    return response, body
            except Broken as broken:
                is_lost = not out.opening.succeeded or (broken.was_sent and not self.numbered)
                if is_lost or not await patience.another():
                    raise

    def _may_repeat(self, out: QueuedPost, response: Response) -> bool:
        if opens(out.message):
            return response.status == 503 and response.header("retry-after") is not None
        return self.numbered and (
            response.status in AWAY or (response.status == 429 and not isinstance(out.message, RequestFrame))
        )

    def _initialized(self, out: QueuedPost, response: Response, body: bytes) -> None:
        message = parse(body)
        is_answer = (
            isinstance(message, ResponseFrame)
            and isinstance(out.message, RequestFrame)
            and message.id == out.message.id
        )
        connection_id = response.header(CONNECTION_ID)
        if isinstance(message, ResponseFrame) and is_answer and response.status == 200 and message.error is not None:
            self._opening = None
            self._receiver.received([body])
            for waiting in out.opening.settle(succeeded=False):
                self._refuse(waiting, "`initialize` failed")
            if connection_id:
                self._tasks.start(self._delete(connection_id), "accord leaves what was not opened")
        elif isinstance(message, ResponseFrame) and is_answer and response.status == 200 and connection_id:
            self._connection_id = connection_id
            self.arrivals.numbered = response.header(NUMBERED) == "connection"
            self._version = protocol_version_of(message.result)
            self.stream(None)
            out.opening.settle(succeeded=True)
            self._receiver.received([body])
        else:
            if is_answer:
                self._receiver.received([body])
            nothing = not_found(self.name, response.status)
            self.finish(End("broken", f"{self.name}: {shown(response.status, body)}{nothing}"))

    def _refused(self, out: QueuedPost, status: int, body: bytes) -> None:
        why = shown(status, body)
        if status in (404, 410):
            self.gone(why)
        elif status in (401, 403) or out.is_substitute:
            self.finish(End("broken", f"{self.name}: {why}"))
        else:
            log.warning("%s refused a message: %s", self.name, why)
            instead = instead_of(out.message, status, body, why)
            if instead is None:
                return
            if isinstance(out.message, ResponseFrame):
                substitute = QueuedPost(instead, parse(instead), out.session, out.opening, is_substitute=True)
                self._queues.add_next(out.session, substitute)
            else:
                self._receiver.received([instead])

    # In

    def stream(self, key: str | None) -> EventStream:
        """Return the stream of this session, or of the connection if `key` is None; opens it if necessary."""
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = EventStream(self, key)
            stream.task = self._tasks.start(stream.run(), f"accord stream {key or ''}")
        return stream

    async def open_stream(self, key: str | None, last: str | None) -> Response:
        """Send the GET for a stream, resuming after the event id `last` if given."""
        headers = [("accept", EVENTS), *self._identity(key)]
        if last is not None:
            headers.append((LAST_EVENT_ID, last))
        return await self._request("GET", headers)

    def arrived(self, events: Sequence[ServerSentEvent], key: str | None) -> None:
        """Handle events from the stream of this session."""
        frames: list[bytes | Oversized] = []
        for event in events:
            if event.session is not None:
                self._named(event.session)
                continue
            self._look_at(event.data, key)
            frames += self.arrivals.add(event.id, event.data)
        self.arrivals.watch()
        if frames and self._end is None:
            self._receiver.received(frames)

    def _look_at(self, frame: bytes | Oversized, key: str | None) -> None:
        if isinstance(frame, Oversized):
            self._calls.received_oversized(frame, key)
            return
        named, closed = self._calls.received(peek(frame), key)
        if closed is not None and (stream := self._streams.pop(closed, None)) is not None:
            stream.leave()
        elif named is not None:
            self._named(named)

    def _named(self, session: str) -> None:
        """Open the stream of a session that the server has named."""
        if session not in self._streams and len(self._streams) > STREAMS:
            self.finish(End("broken", f"{self.name} named more than {STREAMS:,} sessions on one connection"))
        elif self._end is None:
            self.stream(session)

    def _is_missing(self, number: int) -> None:
        self.finish(End("broken", f"{self.name}: message {number} is missing, though later ones have arrived"))

    # Both

    def _identity(self, session: str | None) -> list[tuple[str, str]]:
        headers = list(self._headers)
        if self._connection_id is not None:
            headers.append((CONNECTION_ID, self._connection_id))
        if self._version is not None:
            headers.append((PROTOCOL_VERSION, self._version))
        if session is not None:
            headers.append((SESSION_ID, session))
        return headers

    async def _request(self, method: str, headers: list[tuple[str, str]], body: bytes = b"") -> Response:
        # Requires cookie support on HTTP transports: cookies "MUST be sent on subsequent requests".
        cookies = [("cookie", self._cookies.header)] if self._cookies.header else []
        response = await self._requests.request(method, [*headers, *cookies], body)
        self._cookies.keep(response.all("set-cookie"))
        return response

    def gone(self, why: str) -> None:
        """End the connection that the server no longer knows, after reading its earlier messages."""
        if self._reading_out is None:
            end = End("peer_closed", f"{self.name}: {why}")
            self._reading_out = self._tasks.start(self._read_out(end), "accord reads what was sent before the end")

    async def _read_out(self, end: End) -> None:
        reading = [stream.task for stream in self._streams.values() if stream.task is not None and stream.is_read]
        if reading:
            await asyncio.wait(reading, timeout=None if self.numbered else LAST_WORDS)
        self.finish(end)

    def finish(self, end: End) -> None:
        """End the connection; idempotent."""
        if self._end is None:
            self._end = end
            self._level.give_up()
            self._queues.end()
            self.arrivals.close()
            self._receiver.ended(end)

    async def close(self, grace: float = 2.0) -> End:
        """Post the waiting messages for up to `grace` seconds, end the connection with a DELETE, and return how it
        ended.
        """
        self._closing = self._closing or asyncio.create_task(self._close(grace), name=f"close {self.name}")
        await to_the_end(self._closing)
        return self._end or End("closed")

    async def _close(self, grace: float) -> None:
        if not hasattr(self, "_tasks"):
            return  # never started
        try:
            if self._end is None and self._connection_id is not None:  # else all messages wait for `initialize`
                await within(grace, self._level.flush())
            self.finish(End("closed"))
            if self._connection_id is not None:
                await within(grace, self._delete(self._connection_id))
        finally:
            await self._tasks.end(grace)
            await self._requests.close()

    async def _delete(self, connection_id: str) -> None:
        headers = [*self._headers, (CONNECTION_ID, connection_id)]
        if self._version is not None:
            headers.append((PROTOCOL_VERSION, self._version))
        try:
            response = await self._request("DELETE", headers)
            await response.body(self.limit)
        except Broken as broken:
            log.debug("the connection could not be ended: %s", broken)
