"""Accepts TCP connections and passes each to the protocol that its client speaks.

with TLS: TlsAcceptor ──┐
                        ▼
a connection ──▶ Http1Connection ──┬──▶ the application      HTTP/1.1, our own
                                   ├──▶ Upgrade              a WebSocket, our own
                                   └──▶ Http2Connection      HTTP/2, by ALPN or by its preface (extra `http2`)

end ──▶ accept no more, close idle connections, wait a moment for the rest, then abort all that are left

TLS connections are counted and limited from the moment they are accepted. asyncio's own server gives each accepted
connection a TLS object and a buffer of 256 KiB, and notifies the application only when the handshake is done. A client
that begins no handshake is then invisible and takes 300 KiB.

The rule: a connection whose handshake is not done is *pending*. It counts towards `ServerLimits.sockets`, has
`ServerLimits.handshake` seconds, and is no more than a socket until its first byte arrives. When the limit is reached,
the oldest pending connection is closed in favour of the new one, so that idle sockets do not keep honest clients out.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import socket
import ssl
from asyncio.sslproto import SSLProtocol

from accord._internal.tasks import Tasks
from accord.http.h1 import RequestHead
from accord.http.server.asgi import Application
from accord.http.server.http1_server import Http1Connection
from accord.http.server.server_limits import ServerLimits
from accord.http.server.tcp_connection import ConnectionServer, TcpConnection
from accord.http.server.websocket_server import Upgrade

BACKLOG = 1024
"""Connections that the system keeps for us until they are accepted."""

RETRY = 1.0
"""Seconds until the next attempt to accept, when the system is out of descriptors or memory."""

log = logging.getLogger("accord.http")


# `SSLProtocol` and `max_size` have public names, the same from Python 3.11 to 3.14, though asyncio's reference does
# not describe them. The documented ways (`start_tls`, `ssl=`) make this protocol with 256 KiB a connection. If a
# later Python renames `max_size`, connections work as before and take that memory; the test of their memory then
# fails.
class TlsProtocol(SSLProtocol):
    """asyncio's TLS protocol with a buffer of two TLS records instead of 256 KiB for each connection."""

    max_size = 2 * (16 * 1024 + 256)  # RFC 8446, 5.2: a record has at most 2^14 + 256 bytes


class TlsAcceptor:
    """Accepts connections on the socket of a listener and does their TLS handshakes."""

    def __init__(self, listener: Listener, listening: socket.socket, tls: ssl.SSLContext) -> None:
        self._listener = listener
        self._listening = listening
        self._tls = tls
        self._deadline = listener.limits.handshake
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks(self._loop)
        self._pending: dict[socket.socket, asyncio.Task[None]] = {}
        """The connections with an unfinished handshake, oldest first, and the task of each."""
        self._sockets: dict[object, socket.socket] = {}
        """The sockets of connections in a handshake, by the protocol that each will have."""

    @property
    def pending(self) -> int:
        """How many connections have an unfinished handshake."""
        return len(self._pending)

    def start(self) -> None:
        """Begin to accept."""
        self._listening.listen(BACKLOG)
        self._accepting = asyncio.create_task(self._accept(), name="accord http: accept TLS connections")

    def made(self, connection: object) -> None:
        """Note that the handshake of this connection is done, so that it is no longer pending."""
        if (accepted := self._sockets.pop(connection, None)) is not None:
            self._pending.pop(accepted, None)

    async def close(self) -> None:
        """Accept no more, and close all pending connections."""
        self._accepting.cancel()
        await asyncio.wait([self._accepting])
        self._listening.close()
        await self._tasks.end(self._deadline)
        for left in self._pending:  # accepted, but cancelled before the task's first step
            left.close()

    async def _accept(self) -> None:
        while True:
            try:
                accepted, _ = await self._loop.sock_accept(self._listening)
            except ConnectionError:
                continue  # the client disconnected before it was accepted
            except OSError as error:
                log.warning("cannot accept a connection: %s; trying again in %g s", error.strerror, RETRY)
                await asyncio.sleep(RETRY)
                continue
            if self._make_room():
                self._pending[accepted] = self._tasks.start(self._open(accepted), "accord http: TLS handshake")
            else:
                accepted.close()
            await asyncio.sleep(0)  # a flood of connections must not stop everything else

    def _make_room(self) -> bool:
        if not self._listener.has_room and self._pending:
            self._pending.pop(next(iter(self._pending))).cancel()
        return self._listener.has_room

    async def _open(self, accepted: socket.socket) -> None:
        try:
            async with asyncio.timeout(self._deadline):
                await self._first_byte(accepted)
                await self._handshake(accepted)
        except TimeoutError:
            log.info("a TLS handshake took longer than %g seconds: its connection is closed", self._deadline)
        except OSError as error:  # an SSLError is one
            log.info("a TLS handshake failed: %s", error.strerror or error)
        finally:
            self._pending.pop(accepted, None)

    async def _first_byte(self, accepted: socket.socket) -> None:
        arrived = self._loop.create_future()
        try:
            self._loop.add_reader(accepted, _resolve, arrived)
        except NotImplementedError:  # Windows: only the deadline and the limit apply
            return
        try:
            await arrived
        except BaseException:
            self._loop.remove_reader(accepted)
            accepted.close()
            raise
        self._loop.remove_reader(accepted)

    async def _handshake(self, accepted: socket.socket) -> None:
        connection = Http1Connection(self._listener)
        self._sockets[connection] = accepted
        try:
            if isinstance(self._loop, asyncio.BaseEventLoop):
                await self._handshake_of_asyncio(accepted, connection)
            else:  # uvloop's TLS buffer takes no memory until it is used
                await self._loop.connect_accepted_socket(
                    lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=self._deadline
                )
        finally:
            self._sockets.pop(connection, None)

    async def _handshake_of_asyncio(self, accepted: socket.socket, connection: asyncio.BaseProtocol) -> None:
        done = self._loop.create_future()
        transport, _ = await self._loop.connect_accepted_socket(
            lambda: TlsProtocol(
                self._loop,
                connection,
                self._tls,
                done,
                server_side=True,
                ssl_handshake_timeout=math.ceil(self._deadline),
            ),
            accepted,
        )
        try:
            await done
        except BaseException:
            transport.abort()
            raise


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


ENDING = 2.0
"""Seconds that each step of `Listener.end` may take."""


class Listener(ConnectionServer):
    """A listening socket and the connections that were accepted on it."""

    def __init__(
        self, app: Application, limits: ServerLimits, listening: socket.socket, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(app, limits)
        self._listening = listening
        self._server: asyncio.Server | None = None
        self._acceptor = None if tls is None else TlsAcceptor(self, listening, tls)
        self._sockets: set[asyncio.Transport] = set()
        """The connections that became a WebSocket."""

    async def start(self) -> None:
        """Begin to accept connections."""
        if self._acceptor is not None:
            self._acceptor.start()
        else:
            self._server = await asyncio.get_running_loop().create_server(
                lambda: Http1Connection(self), sock=self._listening, backlog=BACKLOG
            )

    @property
    def open(self) -> int:
        """How many TCP connections are open, those in a TLS handshake included."""
        pending = 0 if self._acceptor is None else self._acceptor.pending
        return pending + len(self._connections) + len(self._sockets)

    @property
    def has_room(self) -> bool:
        """Whether one more connection may be open, pending ones included."""
        return self.open < self.limits.sockets

    def takes(self, connection: TcpConnection) -> bool:
        if self._acceptor is not None:
            self._acceptor.made(connection)
        if self.is_ending or not self.has_room:
            return False
        self._connections.add(connection)
        return True

    def upgrade(self, connection: TcpConnection, transport: asyncio.Transport, head: RequestHead, rest: bytes) -> None:
        self.forget(connection)
        self._sockets.add(transport)  # before the task's first step, or the connection would not count until then
        on_lost = functools.partial(self._sockets.discard, transport)
        self.start_task(Upgrade(transport, head, rest, on_lost).answer(self.app))

    def speak_http2(self, connection: TcpConnection, transport: asyncio.Transport, data: bytes) -> None:
        from accord.http.server.http2_server import Http2Connection

        self.forget(connection)
        speaking = Http2Connection(self)
        self._connections.add(speaking)
        transport.set_protocol(speaking)
        speaking.connection_made(transport)
        if data:
            speaking.data_received(data)

    async def end(self) -> None:
        """Accept no more, and abort the connections that do not end on their own.

        The application must have ended its streams before.
        """
        self.is_ending = True
        if self._server is not None:
            self._server.close()
        if self._acceptor is not None:
            await self._acceptor.close()
        for connection in list(self._connections):
            connection.end()
        if self._tasks.running:
            await asyncio.wait(set(self._tasks.running), timeout=ENDING)
        for connection in list(self._connections):
            connection.abort()
        for transport in list(self._sockets):
            transport.abort()
        if self._tasks.running:
            await asyncio.wait(set(self._tasks.running), timeout=ENDING)
        await self._tasks.end(ENDING)
