"""HTTP/2 on the server's side: hypercorn 0.18 with our fixes, which are all in this module and in `listener`.

What hypercorn does, and the class that fixes it:

- A client that stops reading an HTTP/2 stream does not stop the sender, so memory grows: `Buffer`.
- Body bytes that arrive after the response end the connection with an error, or fill the queue of an application that
  has returned and block the connection for ever: `BoundedHttp2`, `Inbox`.
- A response that waits for its connection when the connection breaks waits for ever, with its memory: `BoundedHttp2`.
- Errors of the application are not logged, and errors from a client's bytes go to asyncio's log: `Applications`,
  `Http2Connection`.
- Three kinds of connections stay open too long: one that is closed while its client does not read, one with HTTP/2 by
  prior knowledge and no request, and one that is cut while requests are in progress: `Http2Connection`.
- WebSockets: pings are sent but answers are ignored, and a closed connection stays for one interval. A message over
  the limit is still collected, and is counted in characters. Invalid UTF-8 and malformed frames get no close code.
  Bytes before the handshake's response leave the application waiting for ever, and a malformed handshake leaves its
  connection open. Compression cannot be turned off, so a small frame can become gigabytes: `Socket`.
"""

# hypercorn and h2 are annotated only in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import h2.events
import hypercorn.asyncio.tcp_server
import hypercorn.protocol
from h2.errors import ErrorCodes
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.config import Config
from hypercorn.events import Closed, RawData, Updated
from hypercorn.protocol import h2 as hypercorn_h2
from hypercorn.protocol.events import Body, Data, Event, Request, StreamClosed
from hypercorn.protocol.h2 import H2Protocol, StreamBuffer
from hypercorn.protocol.ws_stream import ASGIWebsocketState, WSStream
from wsproto.connection import ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError

from accord.transports.closing import within

Json = dict[str, Any]

LINGER = 1.0
"""Seconds that a client has to read the last bytes, and to answer a close frame."""

SILENCES = 3
"""Silent intervals after which a WebSocket is closed; a ping is sent in all but the first."""

log = logging.getLogger("accord.http")


class Settings(Config):
    """hypercorn's configuration with a setting of ours."""

    heartbeat: float = 20.0
    """Seconds between two pings on a WebSocket."""


def mend() -> None:
    """Replace hypercorn's classes with ours in its modules, where it looks them up by name.

    This affects every hypercorn server in this process, so ours behave like the originals there.
    """
    for module, name, ours in (
        (hypercorn.asyncio.tcp_server, "TaskGroup", Applications),
        (hypercorn.protocol, "H2Protocol", BoundedHttp2),
        (hypercorn_h2, "WSStream", Socket),
        (hypercorn_h2, "StreamBuffer", Buffer),
    ):
        setattr(module, name, ours)


class Http2Connection(TCPServer):
    """One TCP connection that speaks HTTP/2."""

    _has_ended = False
    """Whether its client has left, so that its idle time must not be measured any more."""

    async def run(self) -> None:
        try:
            await super().run()
        except Exception as error:
            # The client sent something that hypercorn does not expect; other connections are not affected.
            log.info("an HTTP/2 connection was closed: %r", _first(error))

    async def _read_data(self) -> None:
        protocol = self.protocol
        handle = protocol.handle

        async def handled(event: Any) -> None:
            await handle(event)
            # With prior knowledge, hypercorn does not start the idle timer.
            speaks = protocol.protocol
            if isinstance(event, RawData) and isinstance(speaks, H2Protocol) and speaks.idle and not self._is_watched:
                await self.idle_task.restart(self._task_group, self._idle_timeout)

        protocol.handle = handled  # type: ignore[method-assign]
        await super()._read_data()
        self._has_ended = True
        await self.idle_task.stop()

    @property
    def _is_watched(self) -> bool:
        return self.idle_task._handle is not None  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    async def protocol_send(self, event: Any) -> None:
        if self._has_ended and isinstance(event, Updated):
            return  # a request that ends only now would keep the connection for as long as an idle one
        if isinstance(event, RawData) and self.writer.transport.is_closing():
            await self.protocol.handle(Closed())  # the client has left; asyncio would log a warning for each write
            await asyncio.sleep(0)
            return
        await super().protocol_send(event)

    async def _close(self) -> None:
        # Closing waits until all is written, which a client that does not read can delay for ever.
        giving_up = self.loop.call_later(LINGER, self.writer.transport.abort)
        try:
            await super()._close()
        except OSError:
            pass
        finally:
            giving_up.cancel()


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class Applications(TaskGroup):
    """Runs the application, once for each request of a TCP connection."""

    async def spawn_app(
        self, app: Any, config: Config, scope: Any, send: Callable[[Any], Awaitable[None]]
    ) -> Callable[[Any], Awaitable[None]]:
        if not isinstance(config, Settings):  # another hypercorn server in this process
            return await super().spawn_app(app, config, scope, send)
        inbox = Inbox(config.max_app_queue_size)
        self.spawn(_run, app, scope, inbox, send)
        return inbox.put


async def _run(app: Any, scope: Any, inbox: Inbox, send: Callable[[Any], Awaitable[None]]) -> None:
    try:
        await app(scope, inbox.get, send)
    except Exception:
        log.exception("serving a request failed")
    finally:
        inbox.close()
        await send(None)


class Inbox:
    """Events that wait for an application; dropped when it has returned."""

    def __init__(self, most: int) -> None:
        self._events: deque[Json] = deque()
        self._most = most
        self._room = asyncio.Event()
        self._filled = asyncio.Event()
        self._is_over = False

    async def put(self, event: Json) -> None:
        while len(self._events) >= self._most and not self._is_over:
            self._room.clear()
            await self._room.wait()
        if not self._is_over:
            self._events.append(event)
            self._filled.set()

    async def get(self) -> Json:
        while not self._events:
            self._filled.clear()
            await self._filled.wait()
        event = self._events.popleft()
        self._room.set()
        return event

    def close(self) -> None:
        """Drop all events from now on: the application has returned."""
        self._is_over = True
        self._events.clear()
        self._room.set()


class BoundedHttp2(H2Protocol):
    """The HTTP/2 protocol of one connection, with bounded buffers."""

    async def handle(self, event: Any) -> None:
        await super().handle(event)
        if isinstance(event, Closed):
            # Tasks that wait for a buffer to become empty would wait for ever.
            for buffer in list(self.stream_buffers.values()):
                await buffer.close()

    async def _handle_events(self, events: list[h2.events.Event]) -> None:
        for event in events:
            if isinstance(event, h2.events.DataReceived) and event.stream_id not in self.streams:
                # The request was answered before all of its body had come.
                self.connection.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
            elif isinstance(event, h2.events.RequestReceived) and not _can_be_read(event):
                self.connection.reset_stream(event.stream_id, ErrorCodes.PROTOCOL_ERROR)
            else:
                await super()._handle_events([event])
        await self._flush()


def _can_be_read(request: h2.events.RequestReceived) -> bool:
    named = {bytes(name): bytes(value) for name, value in request.headers or ()}
    return all(named.get(name, b"").isascii() and named.get(name) for name in (b":method", b":path"))


class Buffer(StreamBuffer):
    """The send buffer of an HTTP/2 stream.

    hypercorn's own wakes the sender after every attempt to write, even if nothing was written because the flow-control
    window is closed, so each attempt lets in another message. This one wakes the sender only when there is room.
    """

    async def push(self, data: bytes) -> None:
        # Append before waiting: the sending task is woken earlier and does not check again.
        if self._complete:
            raise hypercorn_h2.BufferCompleteError
        self.buffer.extend(data)
        await self._is_empty.clear()
        while len(self.buffer) >= hypercorn_h2.BUFFER_HIGH_WATER and not self._complete:
            await self._paused.clear()
            await self._paused.wait()

    async def pop(self, max_length: int) -> bytes:
        length = min(len(self.buffer), max_length)
        data = bytes(self.buffer[:length])
        del self.buffer[:length]
        if len(self.buffer) < hypercorn_h2.BUFFER_LOW_WATER:
            await self._paused.set()
        if not self.buffer:
            await self._is_empty.set()
        return data


class Socket(WSStream):
    """One WebSocket over HTTP/2."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._parts: list[Any] = []
        self._size = 0
        self._was_heard = False
        self._is_handling = False
        self._has_closed = False
        """Whether we sent a close frame first."""
        self._ended: Json = {"type": "websocket.disconnect", "code": int(CloseReason.ABNORMAL_CLOSURE)}
        self._over = asyncio.Event()

    async def handle(self, event: Event) -> None:
        if isinstance(event, StreamClosed):
            await self._is_closed()
            return
        if isinstance(event, Body | Data) and not self.closed and not self.handshake.accepted:
            await self._send_error_response(400)  # a client must wait for the handshake's response
            await self.send(StreamClosed(stream_id=self.stream_id))
            return
        self._was_heard = self._is_handling = True
        try:
            await super().handle(event)
        finally:
            self._is_handling = False
        if isinstance(event, Request) and self.closed:  # it was not a valid handshake
            await self.send(StreamClosed(stream_id=self.stream_id))

    async def _is_closed(self) -> None:
        if not self.closed:
            self.closed = True
            self._over.set()
            if self.app_put is not None:
                await self.app_put(self._ended)

    async def app_send(self, message: Any) -> None:
        if message is None and self.state == ASGIWebsocketState.CLOSED:
            await within(LINGER, self._over.wait())  # for the other side's close
        await super().app_send(message)

    async def _accept(self, message: Any) -> None:
        self.handshake.extensions = None  # compression is the only one
        await super()._accept(message)
        if isinstance(self.config, Settings):
            self.task_group.spawn(self._watch, self.config.heartbeat)

    # Received frames

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            if isinstance(event, CloseConnection):
                await self._close_came(event)
            elif self._has_closed:
                continue
            elif isinstance(event, TextMessage | BytesMessage):
                await self._part_came(event)
            elif isinstance(event, Ping):
                await self._send_wsproto_event(event.response())

    async def _part_came(self, part: TextMessage | BytesMessage) -> None:
        self._size += len(part.data.encode() if isinstance(part, TextMessage) else part.data)
        if self._size > self.config.websocket_max_message_size:
            await self._close(CloseReason.MESSAGE_TOO_BIG, "the message is too big")
            return
        self._parts.append(part.data)
        if part.message_finished:
            parts, self._parts, self._size = self._parts, [], 0
            whole = {"text": "".join(parts)} if isinstance(part, TextMessage) else {"bytes": b"".join(parts)}
            await self._put({"type": "websocket.receive", **whole})

    async def _put(self, event: Json) -> None:
        if self.app_put is not None:
            await self.app_put(event)

    async def _close_came(self, event: CloseConnection) -> None:
        if self.connection.state is ConnectionState.OPEN:  # a malformed frame, or invalid UTF-8
            await self._close(CloseReason(event.code), event.reason or "")
            return
        self._ended["code"] = int(event.code or CloseReason.NO_STATUS_RCVD)
        if self.connection.state is ConnectionState.REMOTE_CLOSING:
            await self._send_wsproto_event(event.response())
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def _close(self, code: CloseReason, reason: str) -> None:
        """Close after an error of the client, which has `LINGER` seconds to read the close frame."""
        self._has_closed = True
        self._parts.clear()
        self._ended |= {"code": int(code), "reason": reason}
        await self._send_wsproto_event(CloseConnection(code=code, reason=reason))
        await self._put(self._ended)
        self.task_group.spawn(self._linger)

    async def _linger(self) -> None:
        if not await within(LINGER, self._over.wait()):
            await self.send(StreamClosed(stream_id=self.stream_id))

    # Keep-alive

    async def _watch(self, every: float) -> None:
        silent = 0
        while silent < SILENCES:
            self._was_heard = False
            # A ping can wait behind unread output; it must not stop the counting.
            ping = asyncio.ensure_future(self._send_wsproto_event(Ping())) if silent else None
            is_over = await within(every, self._over.wait())
            if ping is not None:
                ping.cancel()
            if is_over:
                return
            # While the application takes nothing, nothing is read, so a pong would not be seen.
            silent = 0 if self._was_heard or self._is_handling else silent + 1
        log.info("a WebSocket client answered no ping: its connection is closed")
        self._ended["reason"] = "the client answered no ping"
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def _send_wsproto_event(self, event: Any) -> None:
        try:
            data = self.connection.send(event)
        except LocalProtocolError:
            return
        await self.send(Data(stream_id=self.stream_id, data=data))
