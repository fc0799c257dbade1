"""HTTP/1.1 connections on the server's side: passes requests to an ASGI application.

    bytes ──▶ RequestReader ──▶ Http1Request ──▶ application      one request at a time; later ones wait
    application ──▶ Http1Request.send ──▶ one write for each event

A connection that negotiates HTTP/2, or starts with its preface, becomes an `Http2Connection`. A request for a WebSocket
goes to `ConnectionServer.upgrade`. All buffers are limited: headers, received body, unsent response. While a client
does not read its responses, its next request is not begun; after `ServerLimits.stalled` seconds its connection is
closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import cast

from accord._internal.tasks import LightEvent
from accord.http.h1 import (
    LONGEST,
    Bad,
    BodyPart,
    Fields,
    Item,
    RequestHead,
    RequestReader,
    Upgraded,
    chunk,
    head_bytes,
    keeps,
    status_line,
    values,
    wants_websocket,
)
from accord.http.headers import has_http2
from accord.http.server.asgi import Scope, scope_of
from accord.http.server.tcp_connection import AsgiRequest, ConnectionServer, TcpConnection, close_after_reading, date
from accord.transports.server_access import HANDSHAKE

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The first bytes of a client that speaks HTTP/2 with prior knowledge (RFC 9113, 3.4)."""

WAITING = 32 * 1024
"""Bytes of a request body that may wait for the application before reading stops."""

FIRST = 64 * 1024
"""The most bytes of one read before a body: they are in memory before the application decides about them."""

PORTION = 8 * 1024
"""Bytes that are parsed at a time outside of a body. The reader cannot stop between two pipelined requests, and parsed
headers take up to twenty times the memory of their bytes."""

LOOK_EVERY = 1.0
"""The least number of seconds between two checks of a connection."""

log = logging.getLogger("accord.http")


class Http1Connection(TcpConnection):
    """One connection, until it ends or becomes HTTP/2 or a WebSocket."""

    def __init__(self, server: ConnectionServer) -> None:
        super().__init__(server)
        self._first = True
        self._reader = RequestReader()
        self._rest: bytes = b""
        """Received bytes that are not parsed: the first ones, and those that follow a request in progress."""
        self._items: deque[Item] = deque()
        """Parsed, and waiting for the request in progress."""
        self._has_body_to_come = False
        self._answering: Http1Request | None = None
        """The request that the application is handling."""
        self._room = LightEvent()
        self._room.set()
        self._waits_since = self._loop.time()
        """When waiting for a request began."""
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(
            "asyncio.Transport", transport
        )  # uvloop's transports do not inherit from asyncio.Transport
        if not self._server.takes(self):
            self._is_leaving = True
            transport.abort()
            return
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            self._change_to_http2(b"")
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._forget()
        self._is_leaving = True
        self._items.clear()
        if self._answering is not None:
            self._answering.leave()
        self._room.set()

    def _forget(self) -> None:
        """Stop watching this connection: it has ended or was handed over."""
        self._server.forget(self)
        self._reader.close()
        if self._patience is not None:
            self._patience.cancel()

    def _watch(self) -> None:
        now = self._loop.time()
        left = self._waits_since + self._limits.idle - now
        if self._abort_if_stalled(now):
            return
        if self._answering is None and left <= 0 and self._room.is_set():
            self._transport.close()
        else:
            soon = min(left, self._reads_since + self._limits.stalled - now)
            self._patience = self._loop.call_later(max(soon, LOOK_EVERY), self._watch)

    # In

    def get_buffer(self, sizehint: int) -> memoryview:
        whole = super().get_buffer(sizehint)
        return whole if self._has_body_to_come else whole[:FIRST]

    def data_received(self, data: bytes) -> None:
        if self._is_leaving:
            return
        data = self._rest + data if self._rest else data
        self._rest = b""
        if self._first:
            if data[: len(PREFACE)] == PREFACE[: len(data)]:
                self._rest = data
                if len(data) >= len(PREFACE):
                    self._change_to_http2(data)
                return
            self._first = False
            if data.startswith(HANDSHAKE):
                # Answered at once and in plain text: a TLS client would wait for its whole timeout otherwise.
                self._refuse(Bad("this server does not speak TLS"))
                return
        self._rest = data
        self._advance()

    def _change_to_http2(self, data: bytes) -> None:
        if has_http2():
            self._forget()
            self._is_leaving = True
            self._server.speak_http2(self, self._transport, data)
        else:
            self._refuse(Bad("this server does not speak HTTP/2: it lacks the extra 'http2'", 505))

    def _advance(self) -> None:
        """Handle the received messages, up to a request that must wait."""
        self._take()
        while self._rest and self._takes_more:
            size = max(self._reader.left, PORTION)
            data, self._rest = self._rest[:size], self._rest[size:]
            self._items.extend(self._reader.feed(data))
            self._take()
        if len(self._rest) > LONGEST and not self._is_leaving:
            self._transport.pause_reading()

    @property
    def _takes_more(self) -> bool:
        if self._items or self._is_leaving or self._transport.is_closing():
            return False
        return self._has_body_to_come or not self._must_wait

    @property
    def _must_wait(self) -> bool:
        """Whether the next request waits until the current one is answered and its response read."""
        return self._answering is not None or not self._room.is_set()

    def _take(self) -> None:
        while self._items and not (self._is_leaving or self._transport.is_closing()):
            item = self._items[0]
            if self._must_wait and not (self._has_body_to_come and isinstance(item, BodyPart)):
                if isinstance(item, Bad) and self._has_body_to_come:
                    self._refuse(item)
                return
            self._items.popleft()
            match item:
                case RequestHead():
                    self._handle(item)
                case BodyPart():
                    self._got(item)
                case Bad():
                    self._refuse(item)
                case _:
                    raise AssertionError(f"unexpected {item!r}")

    def _got(self, part: BodyPart) -> None:
        self._has_body_to_come = not part.is_last
        if self._answering is not None and self._answering.got(part.data, is_over=part.is_last) > WAITING:
            self._transport.pause_reading()

    def _handle(self, head: RequestHead) -> None:
        if head.is_1_1 and len(values(head.fields, b"host")) != 1:
            self._refuse(Bad("exactly one Host header is required"))
        elif wants_websocket(head):
            follows = self._items.popleft() if self._items else None
            self._forget()
            self._is_leaving = True
            rest = follows.rest if isinstance(follows, Upgraded) else b""
            self._server.upgrade(self, self._transport, head, rest)
        else:
            self._begin(head)

    def _begin(self, head: RequestHead) -> None:
        self._answering = answering = Http1Request(self, head)
        self._has_body_to_come = head.has_body
        if head.has_body and b"100-continue" in values(head.fields, b"expect"):
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        scope = scope_of_head(head, self._transport, "http")
        self._begin_request(answering, scope)

    def _application_ended(self, request: Http1Request) -> None:
        if not request.is_answered:
            request.leave()
            self._transport.abort()

    def go_on(self) -> None:
        """Resume reading: the application has taken the waiting part of the body."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def answered(self, *, keep: bool) -> None:
        """Finish the current request and begin the next one."""
        self._answering = None
        self._waits_since = self._loop.time()
        if not keep or self._has_body_to_come:
            self._leave()
        elif self._server.is_ending:
            self._transport.close()
        else:
            self._next()

    def _next(self) -> None:
        """Begin the next request; reading resumes if not too much is waiting."""
        if len(self._rest) <= LONGEST:
            self.go_on()
        if self._rest or self._items:
            self._loop.call_soon(self.data_received, b"")

    # Out

    @property
    def whole(self) -> bool:
        """Whether the current request has arrived completely."""
        return not self._has_body_to_come

    def write(self, data: bytes) -> None:
        """Write bytes of a response."""
        if not self._transport.is_closing():  # uvloop raises for it, and asyncio only counts it
            self._written += len(data)
            self._transport.write(data)

    async def room(self) -> None:
        """Wait until there is room for more output, or the client has disconnected."""
        await self._room.wait()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()
        if self._answering is None and not self._is_leaving:
            self._next()

    def _refuse(self, bad: Bad) -> None:
        """Answer malformed bytes with an error, and close."""
        if self._answering is not None:  # a response is being sent, and a second one inside it could not be recognized
            self._transport.close()
            self._answering.leave()
            return
        log.info("a malformed request was refused: %s", bad)
        text = str(bad).encode()
        fields = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text)), (b"connection", b"close")]
        self._transport.write(head_bytes(status_line(bad.status), fields) + text)
        self._leave()

    def _leave(self) -> None:
        """Ignore further input, and close."""
        self._is_leaving = True
        self._has_body_to_come = False
        self.go_on()
        close_after_reading(self._transport)

    def end(self) -> None:
        """Close the connection if no request is in progress."""
        if self._answering is None:
            self._transport.close()


class Http1Request(AsgiRequest):
    """One request over HTTP/1.1, and its response."""

    __slots__ = ("_begun", "_chunks", "_connection", "_in_chunks", "_is_head", "_keep")

    def __init__(self, connection: Http1Connection, head: RequestHead) -> None:
        super().__init__(has_body=head.has_body)
        self._connection = connection
        self._is_head = head.method == b"HEAD"
        self._chunks = head.is_1_1
        self._keep = keeps(head.fields, is_1_1=head.is_1_1)
        self._begun = False
        self._in_chunks = False

    def _taken(self, size: int) -> None:
        if size > WAITING:
            self._connection.go_on()

    async def _respond(self, body: bytes, *, more: bool) -> None:
        data = self._encoded(body, more=more)
        if not more:
            self.is_answered = self.is_sent = True
            self.leave()
        if data:
            self._connection.write(data)
        if not more:
            self._connection.answered(keep=self._keep)
        else:
            await self._connection.room()

    def _encoded(self, body: bytes, *, more: bool) -> bytes:
        head = b""
        if not self._begun:
            self._begun = True
            head = self._head(len(body), more=more)
        if self._is_head:
            return head
        if not self._in_chunks:
            return head + body
        return b"".join((head, chunk(body) if body else b"", b"" if more else b"0\r\n\r\n"))

    def _head(self, size: int, *, more: bool) -> bytes:
        start, self._start = self._start, None  # a stream stays open for hours
        assert start is not None
        fields: Fields = list(start["headers"])
        if not any(name == b"content-length" for name, _ in fields):
            if not more:
                fields.append((b"content-length", b"%d" % size))
            elif self._chunks:
                self._in_chunks = True
                fields.append((b"transfer-encoding", b"chunked"))
            else:
                self._keep = False
        self._keep = self._keep and self._connection.whole
        if not self._keep:
            fields.append((b"connection", b"close"))
        fields.append((b"date", date()))
        return head_bytes(status_line(start["status"]), fields)


def scope_of_head(head: RequestHead, transport: asyncio.Transport, kind: str) -> Scope:
    """The scope of a request over HTTP/1.1; `kind` is `http` or `websocket`."""
    return scope_of(kind, "1.1" if head.is_1_1 else "1.0", head.method, head.target, head.fields, transport)
