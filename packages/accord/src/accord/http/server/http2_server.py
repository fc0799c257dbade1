"""HTTP/2 connections on the server's side: `H2Connection` knows the protocol, this module moves the bytes.

    bytes ──▶ H2Connection ──▶ Http2Request ──▶ application              many requests at a time
    application ──▶ Http2Request.send ──▶ flow control ──▶ bytes

A response waits in its request until the client's windows and the socket have room; its application waits with it, so
each request holds at most one part of its response. A body counts against the client's window until the application has
taken it. There is no Extended CONNECT (RFC 8441): WebSockets use HTTP/1.1.

Some frames cost work and achieve nothing. An honest client sends a few of them: a ping, a setting, a request that its
user has cancelled. An attacker sends nothing else. So each connection has a bucket, `CHORES`. A frame costs 1, and a
request that is reset before its response begins `REQUEST`, whichever side resets it: its application has run for
nothing.
"""

from __future__ import annotations

import asyncio
import logging
from typing import cast

from accord._internal.tasks import LightEvent
from accord.h2.h2_connection import (
    Chore,
    ConnectionFailed,
    DataReceived,
    Event,
    GoAwayReceived,
    H2Connection,
    HeadReceived,
    StreamClosed,
    StreamReset,
    WindowChanged,
)
from accord.h2.h2_frames import Code
from accord.http.h1 import Fields
from accord.http.server.asgi import scope_of
from accord.http.server.server_limits import SILENT_PINGS, Bucket
from accord.http.server.tcp_connection import AsgiRequest, ConnectionServer, TcpConnection, close_after_reading, date

CHORES = Bucket(rate=100.0, burst=1000)
REQUEST = 10


class Http2Request(AsgiRequest):
    """One request over HTTP/2, and its response until it is written."""

    __slots__ = (  # noqa: SIM905 - as a list, each name would take a line
        "_connection _counted _is_head _written has_begun has_received number waiting waits_since"
    ).split()

    def __init__(self, connection: Http2Connection, number: int, *, is_head: bool, has_body: bool) -> None:
        super().__init__(has_body=has_body)
        self.number = number
        """The number of its stream."""
        self.waiting = bytearray()
        """The part of the response's body that is not written."""
        self.has_begun = False
        """Whether the header of the response is written."""
        self.waits_since = 0.0
        """When the response last made progress."""
        self.has_received = False
        """Whether the client has begun to send a body."""
        self._connection = connection
        self._is_head = is_head
        self._counted = 0
        self._written = LightEvent()

    # The body

    def count(self, counted: int) -> None:
        """Count received bytes, as flow control does, until the application takes them."""
        self._counted += counted
        self.has_received = True

    def _taken(self, size: int) -> None:  # noqa: ARG002
        counted, self._counted = self._counted, 0
        self._connection.acknowledge(self.number, counted)

    # The response

    async def _respond(self, body: bytes, *, more: bool) -> None:
        if not self._is_head:
            self.waiting += body
        self.is_answered = not more
        self.waits_since = asyncio.get_running_loop().time()
        self._connection.write(self)
        if more and self.has_output:
            self._written.clear()
            await self._written.wait()

    @property
    def has_output(self) -> bool:
        """Whether something of the response can be written."""
        return not self._gone and (not self.has_begun or bool(self.waiting) or self.needs_end)

    @property
    def needs_end(self) -> bool:
        """Whether the response is written but for its end."""
        return self.is_answered and not self.waiting and not self.is_sent

    def take_head(self) -> Fields | None:
        """The header of the response if it is not written, as fields."""
        start, self._start = self._start, None  # a stream stays open for hours
        if self.has_begun or start is None:
            return None
        self.has_begun = True
        if self.needs_end:
            self.is_sent = True
        return [(b":status", b"%d" % start["status"]), *start["headers"], (b"date", date())]

    def take(self, size: int) -> bytes:
        """The next bytes of the body, at most `size`."""
        data = bytes(self.waiting[:size])
        del self.waiting[:size]
        self.waits_since = asyncio.get_running_loop().time()
        if not self.waiting:
            self.is_sent = self.is_answered
            self._written.set()
        return data

    def leave(self) -> None:
        super().leave()
        self.waiting.clear()
        self._written.set()


STREAM_WINDOW = 64 * 1024
CONNECTION_WINDOW = 256 * 1024
"""Bytes of bodies that a client may send before applications take them: of one request, and of all together."""

SLICE = 64 * 1024
"""Bytes of one response that are written before others have their turn."""

MOST_UNREAD = 1024 * 1024
"""Bytes that may wait in the socket. Responses stop long before; what remains are answers to the client's frames."""

LOOK_EVERY = 1.0
"""The least number of seconds between two checks of a connection."""

log = logging.getLogger("accord.http")


class Http2Connection(TcpConnection):
    """One TCP connection that speaks HTTP/2."""

    def __init__(self, server: ConnectionServer) -> None:
        super().__init__(server)
        self._http = H2Connection(
            is_client=False,
            stream_window=STREAM_WINDOW,
            connection_window=CONNECTION_WINDOW,
            streams=self._limits.streams,
        )
        self._requests: dict[int, Http2Request] = {}
        """The requests whose response is not complete."""
        self._waiting: dict[int, Http2Request] = {}
        """The requests whose response waits for room, in the order of their turns."""
        self._running = 0
        """How many applications are running. A request that was cancelled can still have one."""
        self._chores_full_at = 0.0
        """When the bucket for `CHORES` is full again."""
        self._has_room = True
        self._may_go_on = False
        """Whether the client has enlarged a window, so that waiting responses may continue."""
        self._idle_since = self._loop.time()
        self._heard = self._loop.time()
        """When the client last sent something, or answered a ping."""
        self._pings = 0
        """Pings since then."""
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._flush()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._is_leaving = True
        self._server.forget(self)
        if self._look is not None:
            self._look.cancel()
        self._drop_all()

    # In

    def data_received(self, data: bytes) -> None:
        if self._is_leaving:
            return
        self._heard, self._pings = self._loop.time(), 0
        for event in self._http.receive(data):
            self._handle(event)
        if self._may_go_on:  # once for all frames of a read: there may be thousands of them
            self._may_go_on = False
            self._go_on()
        self._flush()

    def _handle(self, event: Event) -> None:
        match event:
            case HeadReceived():
                self._begin(event)
            case DataReceived():
                self._got(event)
            case StreamReset():
                self._was_reset(event.stream)
            case WindowChanged():
                self._may_go_on = True
            case Chore():
                self._spend()
            case GoAwayReceived():
                self._leave()
            case ConnectionFailed():
                log.info("an HTTP/2 connection was closed: %s", event.detail)
                self._leave()

    def _spend(self, cost: int = 1) -> None:
        """Count a frame that costs work and achieves nothing; too many of them end the connection."""
        if self._is_leaving:
            return
        now = self._loop.time()
        withdrawal = CHORES.take(self._chores_full_at - now, cost)
        self._chores_full_at = now + withdrawal.full_in
        if withdrawal.taken < cost:
            log.info("an HTTP/2 connection was closed: too many frames without a purpose")
            self._say_goodbye(Code.ENHANCE_YOUR_CALM)

    def _begin(self, event: HeadReceived) -> None:
        if self._is_leaving:
            return
        number, head = event.stream, event.head
        if self._running >= self._limits.streams:
            self._spend()
            self._http.reset(number, Code.REFUSED_STREAM)
            return
        request = Http2Request(self, number, is_head=head.method == b"HEAD", has_body=not event.ends)
        self._requests[number] = request
        self._running += 1
        scope = scope_of("http", "2", head.method, head.target, head.fields, self._transport)
        self._begin_request(request, scope)

    def _got(self, event: DataReceived) -> None:
        number, data, counted = event.stream, event.data, event.counted
        if not data and not event.ends:
            self._spend()
        if (request := self._requests.get(number)) is None:
            self.acknowledge(number, counted)  # its response is complete
            if not event.ends:
                self._http.reset(number, Code.NO_ERROR)
        else:
            request.count(counted)
            request.got(data, is_over=event.ends)

    def acknowledge(self, number: int, counted: int) -> None:
        """Let the client send as much again: these bytes of a body, as flow control counts them, were taken."""
        if counted and not self._is_leaving:
            self._http.acknowledge(number, counted)
            self._flush()

    def _was_reset(self, number: int) -> None:
        self._waiting.pop(number, None)
        if (request := self._requests.pop(number, None)) is None:
            return
        if not request.has_begun:
            # RFC 9113, 10.5: a client that cancels a request just after sending it makes us work and waits for
            # nothing. So does one whose frames make us reset the stream.
            self._spend(REQUEST)
        request.leave()
        self._note_idle()

    def _application_ended(self, request: Http2Request) -> None:
        self._running -= 1
        if not request.is_answered:
            self._drop(request, Code.INTERNAL_ERROR)
        self._note_idle()

    # Out

    def write(self, request: Http2Request) -> None:
        """Write as much of this response as there is room for; the rest waits for its turn."""
        self._waiting.pop(request.number, None)
        try:
            while self._has_room and not self._is_leaving and request.has_output:
                if not self._write_slice(request):
                    break
        except StreamClosed as error:
            log.info("a response over HTTP/2 could not be sent: %s", error)
            self._drop(request, Code.INTERNAL_ERROR)
            return
        if request.is_sent:
            self._complete(request)
        elif request.has_output and not self._is_leaving:
            self._waiting[request.number] = request

    def _write_slice(self, request: Http2Request) -> bool:
        """Write some of a response; False if the client's window is full."""
        number, http = request.number, self._http
        if (head := request.take_head()) is not None:
            http.send_headers(number, head, ends=request.is_sent)
        left = SLICE
        while request.waiting and left > 0:
            size = min(http.room(number), left)
            if size <= 0:
                break
            data = request.take(size)
            http.send_data(number, data, ends=request.is_sent)
            left -= len(data)
        if request.needs_end:
            request.is_sent = True
            http.send_data(number, b"", ends=True)
        self._flush()
        return left <= 0

    def _complete(self, request: Http2Request) -> None:
        self._requests.pop(request.number, None)
        if request.has_received and not request.is_whole and not self._is_leaving:
            # RFC 9113, 8.1: the response is complete, so the client need not send the rest of the body. A client that
            # has sent none of it learns this when it does: its frames until then still belong to an open stream.
            self._http.reset(request.number, Code.NO_ERROR)
            self._flush()
        request.leave()
        self._note_idle()

    def _go_on(self) -> None:
        for request in list(self._waiting.values()):
            if not self._has_room:
                return
            self.write(request)

    def _flush(self) -> None:
        data = self._http.output()
        if (
            not data or self._is_leaving or self._transport.is_closing()
        ):  # uvloop raises for it, and asyncio only counts it
            return
        self._written += len(data)
        self._transport.write(data)
        if self._transport.get_write_buffer_size() > MOST_UNREAD:
            log.info("a client reads none of the answers to its frames: its connection is closed")
            self._transport.abort()

    def pause_writing(self) -> None:
        self._has_room = False

    def resume_writing(self) -> None:
        self._has_room = True
        self._go_on()

    # The end

    def _drop(self, request: Http2Request, code: Code) -> None:
        """End this request without the rest of its response."""
        self._waiting.pop(request.number, None)
        if self._requests.pop(request.number, None) is not None and not self._is_leaving:
            self._http.reset(request.number, code)
            self._flush()
        request.leave()
        self._note_idle()

    def _drop_all(self) -> None:
        requests = list(self._requests.values())
        self._requests.clear()
        self._waiting.clear()
        for request in requests:
            request.leave()

    def _note_idle(self) -> None:
        if self._requests or self._is_leaving:
            return
        self._idle_since = self._loop.time()
        if self._server.is_ending:
            self._say_goodbye(Code.NO_ERROR)

    def _watch(self) -> None:
        """Close the connection if it is idle or stalled, and cancel responses that the client does not take."""
        now = self._loop.time()
        if self._abort_if_stalled(now):
            return
        if self._requests and self._is_silent(now):
            log.info("an HTTP/2 client answered no ping: its connection is closed")
            self._transport.abort()
            return
        for request in list(self._waiting.values()):
            if now - request.waits_since > self._limits.stalled and self._has_room:
                log.info("a response was cancelled: its window was full for %g seconds", self._limits.stalled)
                self._drop(request, Code.CANCEL)
        left = self._idle_since + self._limits.idle - now
        if not self._requests and left <= 0 and not self._is_leaving:
            self._say_goodbye(Code.NO_ERROR)
        soon = min(left if left > 0 else self._limits.idle, self._limits.stalled, self._limits.heartbeat)
        self._look = self._loop.call_later(max(soon, LOOK_EVERY), self._watch)

    def _is_silent(self, now: float) -> bool:
        """Ping a client that has been silent for a while; returns whether it has answered none of the last pings.

        The kernel of a frozen client continues to accept data, so a stream that is never read looks idle.
        """
        if self._is_leaving or now - self._heard < self._limits.heartbeat * (self._pings + 1):
            return False
        if self._pings == SILENT_PINGS:
            return True
        self._pings += 1
        self._http.ping(b"accord\0\0")
        self._flush()
        return False

    def _say_goodbye(self, code: Code) -> None:
        """Send GOAWAY and close."""
        self._http.close(code)
        self._leave()

    def _leave(self) -> None:
        """Send pending output, ignore further input, and close."""
        self._flush()
        self._is_leaving = True
        self._drop_all()
        close_after_reading(self._transport)

    def end(self) -> None:
        """Close the connection if no request is in progress, and otherwise after the last response."""
        if not self._is_leaving:
            self._note_idle()
