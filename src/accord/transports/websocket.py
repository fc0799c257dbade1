"""A link over a WebSocket, as a client: each message is one text frame (extra `http`).

    transport = WebSocketTransport("wss://agents.example/acp", headers={"Authorization": "Bearer ..."})

One task lives as long as the socket: half of it reads and delivers, half writes what waits in `Outgoing`. A ping now
and then finds out whether somebody is still there. A message past the limit ends the link, as the WebSocket protocol
has it (RFC 6455, 7.4.1: close code 1009): unlike a line, a frame cannot be skipped.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accord.errors import AccordError, ConnectionClosed
from accord.jsonrpc.frames import LIMIT
from accord.transports.base import HIGH_WATER, End, Receiver, Transport
from accord.transports.closing import to_the_end, within
from accord.transports.cookies import Cookies
from accord.transports.outgoing import Outgoing

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

EXTRA_MISSING = "agents behind a URL need more packages: pip install 'accord[http]'"

TOO_BIG, KEEPALIVE_FAILED = 1009, 1011


class WebSocketTransport(Transport):
    """Frames over a WebSocket that this side opens.

    `ping_every` is how many seconds of silence are followed by a ping, and how long its answer may take. `tls` is the
    context for `wss`, where the default one will not do.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        cookies: Cookies | None = None,
        tls: ssl.SSLContext | None = None,
        limit: int = LIMIT,
        high_water: int = HIGH_WATER,
        ping_every: float = 20.0,
        open_within: float = 30.0,
    ) -> None:
        self.name = url
        self._headers = dict(headers or {})
        self._cookies = cookies or Cookies()
        self._tls = tls
        self._limit = limit
        self._high_water = high_water
        self._ping_every = ping_every
        self._open_within = open_within
        self._grace = 2.0
        self._end: End | None = None
        self._life: asyncio.Task[None] | None = None

    async def start(self, receiver: Receiver) -> None:
        self._socket = await self._open()
        self._receiver = receiver
        self._outgoing = Outgoing(self._high_water)
        self._outgoing.start(receiver)
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._wanted_end = asyncio.Event()
        self._life = asyncio.create_task(self._live(), name=self.name)

    async def _open(self) -> ClientConnection:
        try:
            from websockets.asyncio.client import connect
            from websockets.exceptions import InvalidStatus, WebSocketException
        except ImportError:
            raise AccordError(EXTRA_MISSING) from None
        headers = dict(self._headers)
        if self._cookies.header:
            headers["Cookie"] = self._cookies.header
        encrypted: dict[str, Any] = {"ssl": self._tls} if self._tls is not None else {}
        try:
            socket = await connect(
                self.name,
                additional_headers=headers,
                max_size=self._limit,
                compression=None,  # messages are small and links fast: it costs more than it saves, memory above all
                proxy=None,
                ping_interval=self._ping_every,
                ping_timeout=self._ping_every,
                open_timeout=self._open_within,
                close_timeout=2.0,
                **encrypted,
            )
        except InvalidStatus as refused:
            self._cookies.keep(refused.response.headers.get_all("Set-Cookie"))
            status, text = refused.response.status_code, (refused.response.body or b"")[:300]
            detail = f"{self.name}: the server answered {status} {text.decode('utf-8', 'replace')}".rstrip()
            raise ConnectionClosed("broken", detail) from refused
        except (OSError, TimeoutError, WebSocketException, ValueError) as error:
            raise ConnectionClosed("broken", f"{self.name} cannot be reached: {_reason(error)}") from error
        if socket.response is not None:
            self._cookies.keep(socket.response.headers.get_all("Set-Cookie"))
        return socket

    def send(self, frames: Sequence[bytes]) -> None:
        self._outgoing.put(frames)

    @property
    def unsent(self) -> int:
        return self._outgoing.size

    async def flush(self) -> None:
        await self._outgoing.flush()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    async def close(self, grace: float = 2.0) -> End:
        if self._life is not None:
            self._grace = grace
            self._wanted_end.set()
            await to_the_end(self._life)
        return self._end or End("closed")

    async def _live(self) -> None:
        halves = [asyncio.ensure_future(half) for half in (self._wanted_end.wait(), self._read(), self._write())]
        try:
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
            if self._wanted_end.is_set():
                await within(self._grace, self._outgoing.flush())
                await self._hang_up()
                self._finish(End("closed"))
        finally:
            for half in halves:
                half.cancel()
            await asyncio.gather(*halves, return_exceptions=True)
            await self._hang_up()
            self._finish(End("closed") if self._wanted_end.is_set() else self._how_it_ended())

    async def _hang_up(self) -> None:
        if not await within(self._grace, self._socket.close()):
            self._socket.transport.abort()

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed as Closed

        try:
            while True:
                await self._may_read.wait()
                message = await self._socket.recv()
                if isinstance(message, str):  # Bidirectional Messaging: "Binary frames are ignored."
                    self._receiver.received([message.encode()])
        except Closed:
            return

    async def _write(self) -> None:
        from websockets.exceptions import ConnectionClosed as Closed

        try:
            while frames := await self._outgoing.take():
                for frame in frames:
                    await self._socket.send(frame, text=True)
                    self._outgoing.written(len(frame))
        except Closed:
            # What they sent before they went is still to be read.
            await asyncio.Event().wait()

    def _how_it_ended(self) -> End:
        protocol: Any = self._socket.protocol
        code = protocol.close_code
        ours = protocol.close_sent.code if protocol.close_sent is not None else None
        if ours == KEEPALIVE_FAILED:
            return End("unresponsive", f"{self.name} did not answer a ping within {self._ping_every:g} seconds")
        if ours == TOO_BIG:
            return End("broken", f"{self.name} sent a message of more than {self._limit:,} bytes")
        if code in (1000, 1001):
            return End("peer_closed")
        reason = f": {protocol.close_reason}" if protocol.close_reason else ""
        return End("broken", f"{self.name} ended the link with the code {code}{reason}")

    def _finish(self, end: End) -> None:
        if self._end is None:
            self._end = end
            self._outgoing.give_up()
            self._receiver.ended(end)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
