"""The client's connection pool: one HTTP/2 connection if the server speaks it, else several of HTTP/1.1.

Event streams stay open and can use all streams of an HTTP/2 connection; then another connection is opened. So is one
when the server says that it takes no more requests on the last (GOAWAY).

HTTP/2 needs the extra `http2`, and is negotiated within TLS. Without TLS a plain `http` URL means HTTP/1.1, unless the
user says that the server speaks HTTP/2.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from accord.extras import missing_extra
from accord.http.client.http1 import Http1
from accord.http.client.socket import Broken, ClientSocket, Response
from accord.http.http2_extra import has_http2, offered
from accord.transports.server_access import NetworkProxy

if TYPE_CHECKING:
    from accord.http.client.http2 import Http2

OPEN_WITHIN = 30.0
"""Seconds to open a connection."""

PORTS = {"http": 80, "https": 443}


class Requests:
    """The connections to one server.

    `http2` is negotiated if None, never used if False, and used without negotiation on plain `http` if True. Without
    the extra `http2` None means False, and True raises AccordError. `proxy` is on the way to the server.
    """

    def __init__(
        self,
        url: str,
        *,
        tls: ssl.SSLContext | None = None,
        http2: bool | None = None,
        proxy: NetworkProxy | None = None,
    ) -> None:
        if http2 and not has_http2():
            raise missing_extra("http2", "HTTP/2")
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._scheme = parts.scheme
        self._port = parts.port or PORTS[parts.scheme]
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._authority = parts.netloc.rpartition("@")[2]
        self._http2 = http2
        self._proxy = proxy
        self._tls = _with_protocols(tls or ssl.create_default_context(), http2) if parts.scheme == "https" else None
        self._busy: set[Http1] = set()
        """HTTP/1.1 connections in a request; each open event stream is one."""
        self._idle: deque[Http1] = deque()
        """The others, the one that was used last at the end."""
        self._multiplexed: list[Http2] = []
        self._opening = asyncio.Lock()

    @property
    def is_multiplexed(self) -> bool:
        """Whether an HTTP/2 connection is open."""
        return bool(self._multiplexed)

    async def request(self, method: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> Response:
        """Send a request and wait for the headers of its response; raises Broken."""
        connection = await self._connection()
        try:
            return await self._request(connection, method, headers, body)
        except Broken as broken:
            if broken.was_sent or isinstance(connection, Http1) or not connection.is_draining:
                raise
        # RFC 9113, 6.8: the server did not process it, and takes it on another connection.
        return await self._request(await self._connection(), method, headers, body)

    async def _request(
        self, connection: Http1 | Http2, method: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> Response:
        if isinstance(connection, Http1):
            length = [("content-length", str(len(body)))] if body or method == "POST" else []
            return await connection.request(method, self._path, [("host", self._authority), *headers, *length], body)
        target = [
            (":method", method),
            (":scheme", self._scheme),
            (":authority", self._authority),
            (":path", self._path),
        ]
        return await connection.request([*target, *headers], body)

    async def _connection(self) -> Http1 | Http2:
        if (shared := self._usable_http2()) is not None:
            return shared
        if (idle := self._usable_http1()) is not None:
            return idle
        if self._http2 is False or (self._tls is None and not self._http2):
            return self._take(Http1(await self._open(), self._released))
        async with self._opening:  # requests that wait here share the connection that the first opens
            if (shared := self._usable_http2()) is not None:
                return shared
            opened = await self._open()
            if self._tls is None or opened.speaks == "h2":
                from accord.http.client.http2 import Http2

                self._multiplexed.append(shared := Http2(opened))
                return shared
            return self._take(Http1(opened, self._released))

    def _usable_http2(self) -> Http2 | None:
        self._multiplexed = [connection for connection in self._multiplexed if connection.is_open]
        return next((connection for connection in self._multiplexed if connection.has_room), None)

    def _usable_http1(self) -> Http1 | None:
        # What is found stale is closed. So each connection is looked at about once, however many there are.
        while self._idle and not self._idle[0].is_usable:
            self._idle.popleft().close()
        while self._idle:
            if (latest := self._idle.pop()).is_usable:
                return self._take(latest)
            latest.close()
        return None

    def _take(self, connection: Http1) -> Http1:
        connection.busy = True
        self._busy.add(connection)
        return connection

    def _released(self, connection: Http1, *, is_open: bool) -> None:
        if connection in self._busy:
            self._busy.discard(connection)
            if is_open:
                self._idle.append(connection)

    async def _open(self) -> ClientSocket:
        return await ClientSocket.open(self._host, self._port, self._tls, OPEN_WITHIN, self._proxy)

    async def close(self) -> None:
        """Close all connections."""
        connections: list[Http1 | Http2] = [*self._busy, *self._idle, *self._multiplexed]
        for connection in connections:
            connection.close()
        for connection in connections:
            await connection.wait_closed()


def _with_protocols(tls: ssl.SSLContext, http2: bool | None) -> ssl.SSLContext:
    tls.set_alpn_protocols(["http/1.1"] if http2 is False else offered())
    return tls
