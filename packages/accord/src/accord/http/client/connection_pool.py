"""The client's connection pool: one HTTP/2 connection if the server speaks it, else several of HTTP/1.1.

An HTTP/1.1 connection has one request at a time. Event streams stay open and can use all streams of an HTTP/2
connection; then another connection is opened. So is one when the server accepts no more requests on the last (GOAWAY).

HTTP/2 needs the extra `http2`, and is negotiated within TLS. Without TLS a plain `http` URL means HTTP/1.1, unless the
user states that the server speaks HTTP/2.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from accord.http.client.client_socket import Broken, ClientSocket, Response
from accord.http.h1 import Bad, BodyPart, Fields, Item, ResponseHead, ResponseReader, keeps, request_head
from accord.http.headers import has_http2, offered
from accord.installation import missing_extra
from accord.transports.server_access import NetworkProxy, no_answer

if TYPE_CHECKING:
    from accord.http.client.http2_client import Http2Client

IDLE = 3.0
"""Seconds after which an idle connection is not reused. Many servers close idle connections after 5 seconds, and a
request sent at that moment may have been received or not."""


class Http1Client:
    """An HTTP/1.1 connection: sends a request and reads the response before the next request."""

    def __init__(self, socket: ClientSocket, released: Callable[[Http1Client, bool], object]) -> None:
        self._socket = socket
        self._released = released
        """Called when a request is done, with whether the connection is open and idle, or closed."""
        self.busy = False
        self._sent = 0
        """How many requests were sent."""
        self._clock = asyncio.get_running_loop().time
        self._idle_since = self._clock()
        self._keep = True
        self._answered = False
        """Whether the server has answered here, so that it certainly speaks TLS."""
        self._reader = ResponseReader()
        self._items: deque[Item] = deque()
        """Messages from the reader that are not handled yet."""

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent: the last response was read, and the server has no reason to close."""
        is_fresh = self._clock() - self._idle_since < IDLE
        return not (self.busy or self._items) and self._reader.is_between and is_fresh and self._socket.is_quiet

    async def request(self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> Response:
        """Send a request and wait for the headers of its response; raises Broken."""
        self.busy = True
        self._sent += 1
        try:
            head = request_head(method, path, headers)
        except ValueError as error:
            self._done()
            raise Broken(f"invalid request: {error}", was_sent=False) from error
        try:
            self._socket.put(head + body)
            answer = await self._head()
        except Bad as bad:
            self.close()
            raise Broken(f"invalid HTTP response: {bad}") from bad
        except BaseException:
            self.close()
            raise
        # A server that answers before it has received the whole request may not read the rest.
        self._keep = keeps(answer.fields, is_1_1=answer.is_1_1) and not self._socket.unsent
        if not answer.has_body:
            self._done()
            return Response(answer.status, _decoded(answer.fields))
        return Response(answer.status, _decoded(answer.fields), self._chunks(answer), partial(self._leave, self._sent))

    async def _head(self) -> ResponseHead:
        first = b""  # says whether the server speaks TLS
        while not self._items:
            hint = no_answer(first, tls=self._answered or self._socket.is_encrypted)
            if not (data := await self._socket.read()):
                raise Broken(f"the server closed the connection before it answered{hint}")
            first = first or data
            self._items.extend(self._reader.feed(data))
        head = self._items.popleft()
        if isinstance(head, Bad):
            raise Bad(f"{head}{no_answer(first, tls=self._answered or self._socket.is_encrypted)}")
        assert isinstance(head, ResponseHead), head
        self._answered = True
        return head

    async def _chunks(self, head: ResponseHead) -> AsyncGenerator[bytes]:
        is_over = False
        while not is_over:
            if not self._items:
                if data := await self._socket.read():
                    self._items.extend(self._reader.feed(data))
                    continue
                if not head.ends_with_connection:
                    raise Broken("the server closed the connection within a response")
                self._done()
                return
            part = self._items.popleft()
            if isinstance(part, Bad):
                raise Broken(f"invalid HTTP response: {part}") from part
            assert isinstance(part, BodyPart), part
            if is_over := part.is_last:
                self._done()
            if part.data:
                yield part.data

    def _done(self) -> None:
        """Make the connection idle: the response was read."""
        self.busy = False
        self._idle_since = self._clock()
        if self._keep:
            self._released(self, True)
        else:
            self.close()

    def _leave(self, request: int) -> None:
        """Close the connection, unless the response to this request was read; another request may be running then."""
        if self.busy and request == self._sent:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
        self._released(self, False)

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, for a second at most."""
        await asyncio.shield(self._socket.wait_closed())


def _decoded(fields: Fields) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in fields]


OPEN_WITHIN = 30.0
"""Seconds to open a connection."""

PORTS = {"http": 80, "https": 443}


class ConnectionPool:
    """The connections to one server.

    `http2` is negotiated if None, never used if False, and used without negotiation on plain `http` if True. Without
    the extra `http2` None means False, and True raises AccordError. `proxy` is the proxy for the server.
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
        self._busy: set[Http1Client] = set()
        """HTTP/1.1 connections in a request; each open event stream is one."""
        self._idle: deque[Http1Client] = deque()
        """The others, the one that was used last at the end."""
        self._multiplexed: list[Http2Client] = []
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
            if broken.was_sent or isinstance(connection, Http1Client) or not connection.is_draining:
                raise
        # RFC 9113, 6.8: the server did not process it, and accepts it on another connection.
        return await self._request(await self._connection(), method, headers, body)

    async def _request(
        self, connection: Http1Client | Http2Client, method: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> Response:
        if isinstance(connection, Http1Client):
            length = [("content-length", str(len(body)))] if body or method == "POST" else []
            return await connection.request(method, self._path, [("host", self._authority), *headers, *length], body)
        target = [
            (":method", method),
            (":scheme", self._scheme),
            (":authority", self._authority),
            (":path", self._path),
        ]
        return await connection.request([*target, *headers], body)

    async def _connection(self) -> Http1Client | Http2Client:
        if (shared := self._usable_http2()) is not None:
            return shared
        if (idle := self._usable_http1()) is not None:
            return idle
        if self._http2 is False or (self._tls is None and not self._http2):
            return self._take(Http1Client(await self._open(), self._released))
        async with self._opening:  # requests that wait here share the connection that the first opens
            if (shared := self._usable_http2()) is not None:
                return shared
            opened = await self._open()
            if self._tls is None or opened.speaks == "h2":
                from accord.http.client.http2_client import Http2Client

                self._multiplexed.append(shared := Http2Client(opened))
                return shared
            return self._take(Http1Client(opened, self._released))

    def _usable_http2(self) -> Http2Client | None:
        self._multiplexed = [connection for connection in self._multiplexed if connection.is_open]
        return next((connection for connection in self._multiplexed if connection.has_room), None)

    def _usable_http1(self) -> Http1Client | None:
        # Stale connections are closed when found. So each connection is examined about once, however many there are.
        while self._idle and not self._idle[0].is_usable:
            self._idle.popleft().close()
        while self._idle:
            if (latest := self._idle.pop()).is_usable:
                return self._take(latest)
            latest.close()
        return None

    def _take(self, connection: Http1Client) -> Http1Client:
        connection.busy = True
        self._busy.add(connection)
        return connection

    def _released(self, connection: Http1Client, is_open: bool) -> None:
        if connection in self._busy:
            self._busy.discard(connection)
            if is_open:
                self._idle.append(connection)

    async def _open(self) -> ClientSocket:
        return await ClientSocket.open(self._host, self._port, self._tls, OPEN_WITHIN, self._proxy)

    async def close(self) -> None:
        """Close all connections; requests in progress fail."""
        connections: list[Http1Client | Http2Client] = [*self._busy, *self._idle, *self._multiplexed]
        for connection in connections:
            connection.close()
        for connection in connections:
            await connection.wait_closed()


def _with_protocols(tls: ssl.SSLContext, http2: bool | None) -> ssl.SSLContext:
    tls.set_alpn_protocols(["http/1.1"] if http2 is False else offered())
    return tls
