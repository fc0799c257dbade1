"""hypercorn 0.18, mended: what it does not do well by itself is seen to here and in `listening`, and nowhere else.

- A reader of an HTTP/2 stream that stopped reading does not stop the sender, and memory grows: `Buffer`.
- A body that comes after its request was answered ends the HTTP/2 connection with an error, or fills the queue of an
  application that has returned and blocks the connection for ever: `BoundedHttp2`, `Inbox`.
- An answer that waits to be written when its HTTP/2 connection breaks waits for ever, and keeps all of it:
  `BoundedHttp2`.
- What the application raises is logged nowhere, what a client's bytes raise ends up in asyncio's log: `Applications`,
  `Http2Connection`.
- A connection that is closed while its client does not read stays, one on which HTTP/2 was assumed may be idle for
  ever, and one that is cut while requests are being answered stays for as long as an idle one: `Http2Connection`.
- It pings WebSockets without minding the answers, and keeps a closed one for as long as the interval. A message past
  the limit goes on being collected, and counts in characters. Text that is none, and frames that are none, are not
  answered with a close code. What comes before the handshake is answered leaves the application waiting for ever, and a
  handshake that is none leaves its connection open. Compression cannot be turned off, so a small frame can become
  gigabytes: `Socket`.
"""

# What hypercorn's annotations leave open is nothing that can be closed here.
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
"""Seconds that a client has to take what was sent last, and to answer a close."""

SILENCES = 3
"""Intervals without a sign of life after which a WebSocket's client is gone; it is pinged in all but the first."""

log = logging.getLogger("accord.http")


class Settings(Config):
    """hypercorn's configuration, and ours."""

    heartbeat: float = 20.0
    """Seconds between two pings on a WebSocket."""


def mend() -> None:
    """Let hypercorn use what is here: it takes each by name from its own modules.

    Somebody else's hypercorn in this process gets it too, so all of it does there what hypercorn's own does.
    """
    for module, name, ours in (
        (hypercorn.asyncio.tcp_server, "TaskGroup", Applications),
        (hypercorn.protocol, "H2Protocol", BoundedHttp2),
        (hypercorn_h2, "WSStream", Socket),
        (hypercorn_h2, "StreamBuffer", Buffer),
    ):
        setattr(module, name, ours)


class Http2Connection(TCPServer):
    """One TCP connection."""

    _has_ended = False
    """Whether its client has left, so that its idle time must not be measured any more."""

    async def run(self) -> None:
        try:
            await super().run()
        except Exception as error:
            # Its client has sent something that hypercorn does not expect. It concerns nobody else.
            log.info("a client's connection was ended: %r", _first(error))

    async def _read_data(self) -> None:
        protocol = self.protocol
        handle = protocol.handle

        async def handled(event: Any) -> None:
            await handle(event)
            # Where HTTP/2 is assumed and not agreed upon, nothing else begins to count.
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
            await self.protocol.handle(Closed())  # nobody is there any more; asyncio would complain of each write
            await asyncio.sleep(0)
            return
        await super().protocol_send(event)

    async def _close(self) -> None:
        # Closing waits until all is written, which a client that does not read can put off for ever.
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
    """The applications of one TCP connection: one for each request."""

    async def spawn_app(
        self, app: Any, config: Config, scope: Any, send: Callable[[Any], Awaitable[None]]
    ) -> Callable[[Any], Awaitable[None]]:
        if not isinstance(config, Settings):  # somebody else's server in this process
            return await super().spawn_app(app, config, scope, send)
        inbox = Inbox(config.max_app_queue_size)
        self.spawn(_run, app, scope, inbox, send)
        return inbox.put


async def _run(app: Any, scope: Any, inbox: Inbox, send: Callable[[Any], Awaitable[None]]) -> None:
    try:
        await app(scope, inbox.get, send)
    except Exception:
        log.exception("a request failed")
    finally:
        inbox.close()
        await send(None)


class Inbox:
    """What waits for an application. Nothing waits for one that has returned."""

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
        """The application has returned."""
        self._is_over = True
        self._events.clear()
        self._room.set()


class BoundedHttp2(H2Protocol):
    """One HTTP/2 connection."""

    async def handle(self, event: Any) -> None:
        await super().handle(event)
        if isinstance(event, Closed):
            # Who waits for a buffer to become empty would wait for ever.
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
    """What an HTTP/2 stream has to send.

    hypercorn's wakes the sender after every attempt to write, also one that wrote nothing because the reader's window
    is closed; so each such attempt lets in another message. This one wakes it when there is room.
    """

    async def push(self, data: bytes) -> None:
        # Added before waiting: who sends is woken before this, and does not look again.
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
    """One WebSocket."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._parts: list[Any] = []
        self._size = 0
        self._was_heard = False
        self._is_handling = False
        self._has_closed = False
        """Whether we have sent a close of our own accord."""
        self._ended: Json = {"type": "websocket.disconnect", "code": int(CloseReason.ABNORMAL_CLOSURE)}
        self._over = asyncio.Event()

    async def handle(self, event: Event) -> None:
        if isinstance(event, StreamClosed):
            await self._is_closed()
            return
        if isinstance(event, Body | Data) and not self.closed and not self.handshake.accepted:
            await self._send_error_response(400)  # nobody may speak before the handshake is answered
            await self.send(StreamClosed(stream_id=self.stream_id))
            return
        self._was_heard = self._is_handling = True
        try:
            await super().handle(event)
        finally:
            self._is_handling = False
        if isinstance(event, Request) and self.closed:  # it was no handshake
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

    # What comes

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
        if self.connection.state is ConnectionState.OPEN:  # what came is no WebSocket's frame, or no text
            await self._close(CloseReason(event.code), event.reason or "")
            return
        self._ended["code"] = int(event.code or CloseReason.NO_STATUS_RCVD)
        if self.connection.state is ConnectionState.REMOTE_CLOSING:
            await self._send_wsproto_event(event.response())
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def _close(self, code: CloseReason, reason: str) -> None:
        """End it for a fault of the other side, which has a moment to take the close before its connection goes."""
        self._has_closed = True
        self._parts.clear()
        self._ended |= {"code": int(code), "reason": reason}
        await self._send_wsproto_event(CloseConnection(code=code, reason=reason))
        await self._put(self._ended)
        self.task_group.spawn(self._linger)

    async def _linger(self) -> None:
        if not await within(LINGER, self._over.wait()):
            await self.send(StreamClosed(stream_id=self.stream_id))

    # Whether anybody is there

    async def _watch(self, every: float) -> None:
        silent = 0
        while silent < SILENCES:
            self._was_heard = False
            # A ping waits behind what the client has not taken, and that must not keep us from counting.
            ping = asyncio.ensure_future(self._send_wsproto_event(Ping())) if silent else None
            is_over = await within(every, self._over.wait())
            if ping is not None:
                ping.cancel()
            if is_over:
                return
            # While the application takes nothing, nothing is read, and an answer would not be seen.
            silent = 0 if self._was_heard or self._is_handling else silent + 1
        log.info("the client of a WebSocket is silent: given up")
        self._ended["reason"] = "it answered no ping"
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def _send_wsproto_event(self, event: Any) -> None:
        try:
            data = self.connection.send(event)
        except LocalProtocolError:
            return
        await self.send(Data(stream_id=self.stream_id, data=data))
