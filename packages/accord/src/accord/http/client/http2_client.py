"""HTTP/2 as a client: many exchanges at a time on one connection. `H2Connection` knows the protocol.

One task reads and passes events to the exchanges. Received data counts against the window of its stream until it is
taken, so a reader that stops makes the server stop, and the other streams continue.

A server that ends its connections gracefully (GOAWAY) accepts no more requests on this one. The pool opens another for
them; open exchanges here, such as an event stream, continue to their end, and then the connection is closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence

from accord._internal.tasks import LightEvent
from accord.h2.h2_connection import (
    Chore,
    ConnectionFailed,
    DataReceived,
    Event,
    GoAwayReceived,
    H2Connection,
    HeadReceived,
    StreamReset,
    WindowChanged,
)
from accord.h2.h2_frames import Code
from accord.http.client.client_socket import Broken, ClientSocket, Response
from accord.http.headers import LAST_EVENT_ID, MESSAGE

STREAM_WINDOW = 1024 * 1024
CONNECTION_WINDOW = 2**31 - 1
"""Bytes that may arrive unread on one stream, and on all together. Only the first is a bound: a stream that is not read
must not stop the others."""

ONCE = frozenset({MESSAGE, LAST_EVENT_ID})
"""Headers whose value differs each time. In the table of HPACK they would displace those that repeat."""


class _Exchange:
    """One request, and what has arrived of its response."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.chunks: deque[tuple[bytes, int]] = deque()
        self.over = False
        self.error: Broken | None = None
        self.changed = LightEvent()

    async def wait(self) -> None:
        self.changed.clear()
        await self.changed.wait()

    def fail(self, error: Broken) -> None:
        self.error = self.error or error
        self.changed.set()


class Http2Client:
    """An HTTP/2 connection and the requests in progress on it."""

    def __init__(self, socket: ClientSocket) -> None:
        self._socket = socket
        self._http = H2Connection(
            is_client=True, stream_window=STREAM_WINDOW, connection_window=CONNECTION_WINDOW, changing=ONCE
        )
        self._exchanges: dict[int, _Exchange] = {}
        self._room = LightEvent()
        self._ended: Broken | None = None
        self._goodbye: Broken | None = None
        """Why the server accepts no more requests on this connection, if it sent a reason."""
        self._reading = asyncio.create_task(self._read(), name="accord http/2")

    @property
    def is_open(self) -> bool:
        """Whether the connection is open, if only for the requests in progress."""
        return self._ended is None and self._socket.is_open

    @property
    def is_draining(self) -> bool:
        """Whether the server accepts no more requests, and only ends those in progress."""
        return self._goodbye is not None

    @property
    def has_room(self) -> bool:
        """Whether another request can be sent now."""
        return self._http.can_open

    async def request(self, headers: Sequence[tuple[str, str]], body: bytes) -> Response:
        """Send a request and wait for the headers of its response; raises Broken."""
        number, exchange = await self._begin(headers, ends=not body)
        try:
            await self._send(number, exchange, body)
            while exchange.status is None:
                self._check(exchange)
                await exchange.wait()
        except BaseException:
            self._drop(number)
            raise
        return Response(exchange.status, exchange.headers, self._chunks(number, exchange), lambda: self._drop(number))

    async def _begin(self, headers: Sequence[tuple[str, str]], *, ends: bool) -> tuple[int, _Exchange]:
        while True:
            if (ended := self._ended or self._goodbye) is not None:
                raise Broken(str(ended), was_sent=False)
            if self.has_room:
                break
            self._room.clear()
            await self._room.wait()
        number = self._http.open(headers, ends=ends, is_head=headers[0] == (":method", "HEAD"))
        exchange = self._exchanges[number] = _Exchange()
        return number, exchange

    async def _send(self, number: int, exchange: _Exchange, body: bytes) -> None:
        rest = memoryview(body)
        while True:
            room = min(self._http.room(number), len(rest)) if rest else 0
            if room > 0:
                self._http.send_data(number, bytes(rest[:room]), ends=room == len(rest))
                rest = rest[room:]
            await self._flush()  # the first part of the body goes with the header, in one system call
            if rest and room <= 0:
                await exchange.wait()
            if not rest or exchange.over or exchange.status is not None:
                return  # answered before the body was sent, probably with a refusal; a reset may follow
            self._check(exchange)

    def _check(self, exchange: _Exchange) -> None:
        if exchange.error is not None:
            raise Broken(str(exchange.error), was_sent=exchange.error.was_sent)
        if exchange.over and exchange.status is None:
            raise Broken("the server closed the stream before it answered")

    async def _chunks(self, number: int, exchange: _Exchange) -> AsyncGenerator[bytes]:
        while True:
            if exchange.chunks:
                chunk, counted = exchange.chunks.popleft()
                await self._acknowledge(number, counted)
                yield chunk
            elif exchange.over:
                return
            else:
                self._check(exchange)
                await exchange.wait()

    async def _acknowledge(self, number: int, counted: int) -> None:
        if counted and self._ended is None:
            self._http.acknowledge(number, counted)
            await self._flush()

    def _drop(self, number: int) -> None:
        """Forget this request; its stream is reset if it is still open."""
        exchange = self._exchanges.pop(number, None)
        if exchange is None or self._ended is not None:
            return
        if not exchange.over and exchange.error is None:
            self._http.reset(number, Code.CANCEL)
            self._socket.put(self._http.output())
        self._room.set()
        self._close_if_drained()

    def _close_if_drained(self) -> None:
        if self._goodbye is not None and not self._exchanges:
            self._end(self._goodbye)
            self._socket.close()

    async def _flush(self) -> None:
        if data := self._http.output():
            await self._socket.write(data)

    async def _read(self) -> None:
        try:
            await self._flush()
            while data := await self._socket.read():
                for event in self._http.receive(data):
                    self._handle(event)
                await self._flush()
                if self._ended is not None:
                    return
            self._end(self._goodbye or Broken("the server closed the connection"))
        except Broken as broken:
            self._end(broken)
        finally:
            self._end(Broken("the connection was closed"))
            self._socket.close()

    def _handle(self, event: Event) -> None:
        match event:
            case DataReceived():
                if (exchange := self._exchanges.get(event.stream)) is not None:
                    if event.counted:
                        exchange.chunks.append((event.data, event.counted))
                    self._note(exchange, is_over=event.ends)
            case HeadReceived():
                if (exchange := self._exchanges.get(event.stream)) is not None:
                    exchange.status = event.head.status
                    exchange.headers = [
                        (name.decode(), value.decode("utf-8", "replace")) for name, value in event.head.fields
                    ]
                    self._note(exchange, is_over=event.ends)
            case StreamReset():
                if (exchange := self._exchanges.get(event.stream)) is not None:
                    reason = event.detail or f"the server reset the stream ({event.code})"
                    exchange.fail(Broken(reason, was_sent=event.code != Code.REFUSED_STREAM))
                self._room.set()
            case WindowChanged():
                self._room.set()
                for waiting in self._exchanges.values():
                    waiting.changed.set()
            case GoAwayReceived():
                reason = f" (code {event.code})" if event.code else ""
                self._goodbye = Broken(f"the server is closing the connection{reason}")
                self._room.set()
                self._close_if_drained()
            case ConnectionFailed():
                self._end(Broken(f"invalid HTTP/2 from the server: {event.detail}"))
            case Chore():
                pass

    def _note(self, exchange: _Exchange, *, is_over: bool) -> None:
        if is_over:
            exchange.over = True
            self._room.set()
        exchange.changed.set()

    def _end(self, broken: Broken) -> None:
        if self._ended is None:
            self._ended = broken
            self._room.set()
            for exchange in self._exchanges.values():
                if not exchange.over:
                    exchange.fail(broken)

    def close(self) -> None:
        """Close the connection; requests in progress fail."""
        self._end(Broken("the connection was closed"))
        self._reading.cancel()
        self._socket.close()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, for a second at most."""
        await asyncio.wait([self._reading])
        await self._socket.wait_closed()
