"""HTTP/2 as a client: many exchanges at a time on one connection. h2 knows the protocol.

One task reads and hands events to the exchanges. Received data counts against the window of its stream until it is
taken, so a reader that stops makes the server stop, and the other streams go on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from hpack import NeverIndexedHeaderTuple

from accord.http.client.socket import Broken, ClientSocket, Response
from accord.http.headers import LAST_EVENT_ID, MESSAGE

STREAM_WINDOW = 1024 * 1024
CONNECTION_WINDOW = 2**31 - 1
"""Bytes that may arrive unread on one stream, and on all together. Only the first is a bound: a stream that is not read
must not stop the others."""


# The names are in lower case and checked where they are given, so h2 need not check what we send.
CONFIG = h2.config.H2Configuration(client_side=True, validate_outbound_headers=False, header_encoding="utf-8")

ONCE = frozenset({MESSAGE, LAST_EVENT_ID})
"""Headers whose value is another one each time. In the table of HPACK they would displace those that repeat, and each
search of the table goes through them."""


class _Exchange:
    """One request, and what has arrived of its response."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.chunks: deque[tuple[bytes, int]] = deque()
        self.over = False
        self.error: Broken | None = None
        self.changed = asyncio.Event()

    async def wait(self) -> None:
        self.changed.clear()
        await self.changed.wait()

    def fail(self, error: Broken) -> None:
        self.error = self.error or error
        self.changed.set()


class Http2:
    """An HTTP/2 connection and the requests in progress on it."""

    def __init__(self, socket: ClientSocket) -> None:
        self._socket = socket
        self._http = h2.connection.H2Connection(CONFIG)
        self._exchanges: dict[int, _Exchange] = {}
        self._known: set[str] = set()
        """The names in `ONCE` that were sent."""
        self._room = asyncio.Event()
        self._ended: Broken | None = None
        settings = h2.settings.SettingCodes
        self._http.local_settings = h2.settings.Settings(
            client=True, initial_values={settings.ENABLE_PUSH: 0, settings.INITIAL_WINDOW_SIZE: STREAM_WINDOW}
        )
        self._http.initiate_connection()
        self._http.increment_flow_control_window(CONNECTION_WINDOW - 65_535)
        self._reading = asyncio.create_task(self._read(), name="accord http/2")

    @property
    def is_usable(self) -> bool:
        """Whether requests can be sent on this connection."""
        return self._ended is None and self._socket.is_open

    @property
    def has_room(self) -> bool:
        """Whether another stream can be opened now."""
        return self._http.open_outbound_streams < self._http.remote_settings.max_concurrent_streams

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
            if self._ended is not None:
                raise Broken(str(self._ended), was_sent=False)
            if self.has_room:
                break
            self._room.clear()
            await self._room.wait()
        number = self._http.get_next_available_stream_id()
        exchange = self._exchanges[number] = _Exchange()
        try:
            self._http.send_headers(
                number,
                [field if field[0] not in ONCE else self._once(*field) for field in headers],
                end_stream=ends,
            )
        except h2.exceptions.ProtocolError as error:
            del self._exchanges[number]
            raise Broken(f"invalid request: {error}", was_sent=False) from error
        await self._flush()
        return number, exchange

    def _once(self, name: str, value: str) -> tuple[str, str] | NeverIndexedHeaderTuple:
        """A field whose first value is put into the table, for its name, and no other."""
        if name in self._known:
            return NeverIndexedHeaderTuple(name.encode(), value.encode())
        self._known.add(name)
        return name, value

    async def _send(self, number: int, exchange: _Exchange, body: bytes) -> None:
        rest = memoryview(body)
        while rest:
            if exchange.over or exchange.status is not None:
                return  # answered before the body was sent, probably with a refusal; a reset may follow
            self._check(exchange)
            room = min(self._http.local_flow_control_window(number), self._http.max_outbound_frame_size, len(rest))
            if room <= 0:
                await exchange.wait()
                continue
            self._http.send_data(number, bytes(rest[:room]), end_stream=room == len(rest))
            rest = rest[room:]
            await self._flush()

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
            try:
                self._http.acknowledge_received_data(counted, number)
            except (h2.exceptions.StreamClosedError, h2.exceptions.ProtocolError):
                return
            await self._flush()

    def _drop(self, number: int) -> None:
        """Forget this request; its stream is reset if it is still open."""
        exchange = self._exchanges.pop(number, None)
        if exchange is None or self._ended is not None:
            return
        if not exchange.over and exchange.error is None:
            try:
                self._http.reset_stream(number, h2.errors.ErrorCodes.CANCEL)
            except h2.exceptions.ProtocolError:
                return
            self._socket.put(self._http.data_to_send())
        self._room.set()

    async def _flush(self) -> None:
        if data := self._http.data_to_send():
            await self._socket.write(data)

    async def _read(self) -> None:
        try:
            await self._flush()
            while data := await self._socket.read():
                for event in self._http.receive_data(data):
                    self._handle(event)
                await self._flush()
            self._end(Broken("the server closed the connection"))
        except Broken as broken:
            self._end(broken)
        except h2.exceptions.ProtocolError as error:
            self._end(Broken(f"invalid HTTP/2 from the server: {error}"))
        finally:
            self._end(Broken("the connection was closed"))
            self._socket.close()

    def _handle(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                self._room.set()
                for waiting in self._exchanges.values():
                    waiting.changed.set()
                return
            case h2.events.ConnectionTerminated():
                self._end(Broken("the server is closing the connection"))
                return
            case _:
                pass
        exchange = self._exchanges.get(getattr(event, "stream_id", None) or 0)
        if exchange is None:
            if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                self._http.increment_flow_control_window(event.flow_controlled_length)
            return
        match event:
            case h2.events.ResponseReceived(headers=headers):
                found = [(str(name), str(value)) for name, value in headers or []]
                exchange.status = next(int(value) for name, value in found if name == ":status")
                exchange.headers = [(name, value) for name, value in found if not name.startswith(":")]
            case h2.events.DataReceived(data=data, flow_controlled_length=counted):
                exchange.chunks.append((bytes(data or b""), counted or 0))
            case h2.events.StreamEnded():
                exchange.over = True
                self._room.set()
            case h2.events.StreamReset(error_code=code):
                refused = code == h2.errors.ErrorCodes.REFUSED_STREAM
                exchange.fail(Broken(f"the server reset the stream ({code})", was_sent=not refused))
                self._room.set()
            case _:
                return
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
