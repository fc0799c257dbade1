"""The client's transport over a WebSocket: each message is one text frame (extra `http`).

    transport = WebSocketTransport("wss://agents.example/acp", headers={"Authorization": "Bearer ..."})

`websockets` does the handshake; after it, `framed` takes over, which the server shares. Pings detect a server that has
vanished. A message over the limit ends the connection (RFC 6455, 7.4.1: close code 1009).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from accord.errors import ConnectionClosed
from accord.installation import missing_extra
from accord.jsonrpc.line_frames import LIMIT
from accord.redaction import mask_urls
from accord.transports import HIGH_WATER, Receiver
from accord.transports.server_access import (
    Cookies,
    checked_headers,
    network_proxy,
    no_answer,
    not_found,
    open_connection,
    unreachable,
    without_tls,
)
from accord.transports.socket_buffers import SharedBufferProtocol
from accord.transports.websocket_transport import Framed

if TYPE_CHECKING:
    from websockets.client import ClientProtocol


class WebSocketTransport(Framed):
    """A client's transport over a WebSocket.

    `headers` are sent with the handshake. `cookies` keeps the server's cookies. `tls` replaces the default TLS context
    for `wss`. `proxy` is the URL of an HTTP or SOCKS5 proxy; without it the environment may name one, and False
    prevents that. `limit` is the size of a message, `high_water` how many bytes may wait before the sender is paused.
    After `ping_every` seconds of silence a ping is sent, which must be answered within the same time. `open_within` is
    the deadline of the handshake in seconds.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        cookies: Cookies | None = None,
        tls: ssl.SSLContext | None = None,
        proxy: str | bool = True,
        limit: int = LIMIT,
        high_water: int = HIGH_WATER,
        ping_every: float = 20.0,
        open_within: float = 30.0,
    ) -> None:
        super().__init__(limit=limit, is_client=True, ping_every=ping_every, high_water=high_water)
        self.name = mask_urls(url)
        self._url = url
        self._headers = checked_headers(headers)
        self._cookies = Cookies() if cookies is None else cookies
        self._tls = tls
        self._proxy = network_proxy(url, proxy)
        self._open_within = open_within

    async def start(self, receiver: Receiver) -> None:
        self.attach(*await self._open())
        await super().start(receiver)

    async def _open(self) -> tuple[asyncio.Transport, bytes]:
        try:
            from websockets.exceptions import InvalidStatus, WebSocketException
        except ImportError:
            raise missing_extra("http", "connecting to a URL") from None
        try:
            async with asyncio.timeout(self._open_within):
                handshake = await self._handshake()
        except InvalidStatus as refused:
            self._cookies.keep(refused.response.headers.get_all("Set-Cookie"))
            status, text = refused.response.status_code, (refused.response.body or b"")[:300]
            detail = f"{self.name}: the server answered {status} {text.decode('utf-8', 'replace')}".rstrip()
            detail += not_found(self._url, status)
            raise ConnectionClosed("broken", detail) from refused
        except (OSError, TimeoutError, WebSocketException, ValueError) as error:
            raise ConnectionClosed("broken", unreachable(self.name, self._proxy, _explained(error))) from error
        self._cookies.keep(handshake.cookies)
        return handshake.socket, handshake.rest

    async def _handshake(self) -> _Handshake:
        from websockets.client import ClientProtocol
        from websockets.uri import parse_uri

        uri = parse_uri(self._url)
        # No compression: messages are small and links are fast, so it costs more than it saves, above all memory.
        protocol = ClientProtocol(uri, max_size=self._limit)
        request = protocol.connect()
        for name, value in self._headers.items():
            request.headers[name] = value
        if self._cookies.header:
            request.headers["Cookie"] = self._cookies.header
        protocol.send_request(request)
        tls = (self._tls or ssl.create_default_context()) if uri.secure else None
        handshake = await open_connection(lambda: _Handshake(protocol), uri.host, uri.port, tls=tls, proxy=self._proxy)
        try:
            await handshake.done
        except BaseException:
            handshake.socket.abort()
            raise
        return handshake


class _Handshake(SharedBufferProtocol):
    """Does the opening handshake; `done` gets its result, or the error."""

    socket: asyncio.Transport

    def __init__(self, protocol: ClientProtocol) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self.rest = b""
        """Bytes received after the server's response."""
        self.cookies: list[str] = []
        self._protocol = protocol
        self._head = b""
        self._accepted = self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.socket = cast("asyncio.Transport", transport)  # uvloop's transports do not inherit from asyncio.Transport
        self.socket.write(b"".join(self._protocol.data_to_send()))

    def data_received(self, data: bytes) -> None:
        if self._accepted:
            self.rest += data
            return
        if self._refused:
            self._tell(data)
            return
        self._head += data
        end = self._head.find(b"\r\n\r\n") + 4
        if not self._head.startswith(SWITCHING[: len(self._head)]) or len(self._head) > _LONGEST_HEAD:
            self._refused = True
            self._tell(self._head)
        elif end >= 4:
            # Later bytes are frames, which `Framed` reads and not the library.
            self._accepted = True
            self.socket.pause_reading()
            self.rest = self._head[end:]
            self._tell(self._head[:end])

    def _tell(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        hint = no_answer(self._head, tls=self._protocol.uri.secure)
        closed = ConnectionResetError(f"the server closed the connection before it answered{hint}")
        if not hint:  # otherwise the library would only report that this is not HTTP
            self._protocol.receive_eof()
        self._look(exc or closed)

    def _look(self, otherwise: Exception | None = None) -> None:
        if self.done.done():
            return
        error = self._protocol.handshake_exc or otherwise
        if error is not None:
            self.done.set_exception(error)
        elif self._accepted:
            from websockets.http11 import Response

            for answer in self._protocol.events_received():
                if isinstance(answer, Response):
                    self.cookies = answer.headers.get_all("Set-Cookie")
            self.done.set_result(None)


SWITCHING = b"HTTP/1.1 101"

_LONGEST_HEAD = 64 * 1024


def _explained(error: Exception) -> str:
    return without_tls(error) or mask_urls(_reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
