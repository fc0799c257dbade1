"""Accepts TCP connections and gives each to the protocol that its client speaks.

with TLS: TlsAcceptor ──┐
                        ▼
a connection ──▶ Http1Connection ──┬──▶ the application      HTTP/1.1, our own
                                   ├──▶ Upgrade              a WebSocket, our own
                                   └──▶ Http2Connection      HTTP/2, by ALPN or by its preface (extra `http2`)

end ──▶ accept no more, close idle connections, wait a moment for the rest, then abort all that are left
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Coroutine
from typing import Any

from accord._internal.tasks import Tasks
from accord.http.h1 import RequestHead
from accord.http.server.http1 import Http1Connection
from accord.http.server.limits import ServerLimits
from accord.http.server.supervisor import Served, Supervised
from accord.http.server.tls import BACKLOG, TlsAcceptor
from accord.http.server.websocket import Upgrade

ENDING = 2.0
"""Seconds that each step of `Listener.end` may take."""


class Listener:
    """A listening socket and the connections that were accepted on it."""

    def __init__(self, app: Served, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        self.app = app
        self.is_ending = False
        self._listening = listening
        self._server: asyncio.Server | None = None
        self._acceptor: TlsAcceptor | None = None
        if tls is not None:
            self._acceptor = TlsAcceptor(
                listening,
                tls,
                deadline=app.limits.handshake,
                protocol=lambda: Http1Connection(self),
                has_room=lambda: self._has_room,
            )
        self._tasks = Tasks(asyncio.get_running_loop())
        self._connections: set[Supervised] = set()
        """The connections that speak HTTP."""
        self._sockets: set[asyncio.Transport] = set()
        """The connections that became a WebSocket."""

    @property
    def limits(self) -> ServerLimits:
        """The server's limits."""
        return self.app.limits

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
    def _has_room(self) -> bool:
        return self.open < self.app.limits.sockets

    def takes(self, connection: Supervised) -> bool:
        """Count this connection, unless the server ends or has `ServerLimits.sockets` of them; whether it was."""
        if self._acceptor is not None:
            self._acceptor.made(connection)
        if self.is_ending or not self._has_room:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: Supervised) -> None:
        """Count this connection no longer: it has ended, or became a WebSocket or HTTP/2."""
        self._connections.discard(connection)

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this for a request; `end` waits for it."""
        self._tasks.start(work, "accord http request")

    def upgrade(self, connection: Supervised, transport: asyncio.Transport, head: RequestHead, rest: bytes) -> None:
        """Make this connection a WebSocket, if the application accepts it; `rest` is what follows the request."""
        self.forget(connection)
        self._sockets.add(transport)  # before the task's first step, or the connection would not count until then
        self.start_task(self._counted(transport, Upgrade(transport, head, rest).answer(self.app)))

    async def _counted(self, transport: asyncio.Transport, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._sockets.discard(transport)

    def speak_http2(self, connection: Supervised, transport: asyncio.Transport, data: bytes) -> None:
        """Speak HTTP/2 on this connection; `data` is what has been received of it."""
        from accord.http.server.http2 import Http2Connection

        self.forget(connection)
        speaking = Http2Connection(self)
        self._connections.add(speaking)
        transport.set_protocol(speaking)
        speaking.connection_made(transport)
        if data:
            speaking.data_received(data)

    async def end(self) -> None:
        """Accept no more, and abort the connections that do not end by themselves.

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
