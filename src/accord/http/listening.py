"""Taking TCP connections, and giving each to whoever speaks its protocol.

a connection ──▶ Connection1 ──┬──▶ the application      HTTP/1.1, ours
                               ├──▶ Upgrade              a WebSocket, ours
                               └──▶ hypercorn, mended    HTTP/2, agreed upon within TLS or begun without asking

end ──▶ no more are taken, idle ones are told, the rest has a moment, then all are cut
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Coroutine
from typing import Any

from hypercorn.asyncio.worker_context import WorkerContext

from accord.http.asgi import App
from accord.http.connection1 import Connection1
from accord.http.head import RequestHead
from accord.http.mended import Connection, Settings, mend
from accord.http.upgrade import Upgrade
from accord.tasks import Tasks

HANDSHAKE = 10.0
"""Seconds that TLS may take to be agreed upon."""

ENDING = 2.0
"""Seconds that each step of ending may take."""


class Listener:
    """An open socket, and the connections that have come through it."""

    def __init__(self, app: App, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        self.app = app
        self.is_ending = False
        self._listening = listening
        self._tls = tls
        self._settings = _settings(app)
        self._tasks = Tasks(asyncio.get_running_loop())
        self._connections: set[Connection1] = set()
        """Those that speak HTTP/1.1."""
        self._sockets: set[asyncio.Transport] = set()
        """Those that speak something else by now."""

    @property
    def idle(self) -> float:
        """Seconds that a connection lasts without a request."""
        return self.app.limits.idle

    @property
    def stalled(self) -> float:
        """Seconds that answers may wait without one of them being read."""
        return self.app.limits.stalled

    async def start(self) -> None:
        mend()
        self._context = WorkerContext(None)
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection1(self),
            sock=self._listening,
            backlog=1024,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else HANDSHAKE,
        )

    def takes(self, connection: Connection1) -> bool:
        """Whether one more is taken."""
        if self.is_ending or len(self._connections) + len(self._sockets) >= self.app.limits.sockets:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: Connection1) -> None:
        self._connections.discard(connection)

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.start(work, "accord http request")

    def upgrade(self, connection: Connection1, transport: asyncio.Transport, head: RequestHead, rest: bytes) -> None:
        """This connection becomes a WebSocket, if it may."""
        self.forget(connection)
        self.start_task(self._counted(transport, Upgrade(transport, head, rest).answer(self.app)))

    def hand_over(self, connection: Connection1, transport: asyncio.Transport, data: bytes) -> None:
        """This connection speaks HTTP/2, and has begun with these bytes."""
        self.forget(connection)
        loop = asyncio.get_running_loop()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            app: Any = self.app
            speaking = Connection(app, loop, self._settings, self._context, {}, reader, writer)
            self.start_task(self._counted(transport, speaking.run()))

        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), connected, loop=loop)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if data:
            protocol.data_received(data)

    async def _counted(self, transport: asyncio.Transport, work: Coroutine[Any, Any, None]) -> None:
        self._sockets.add(transport)
        try:
            await work
        finally:
            self._sockets.discard(transport)

    async def end(self) -> None:
        """Take no more, and cut what does not end by itself. The application has ended its streams before."""
        self.is_ending = True
        await self._context.terminated.set()
        self._server.close()
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


def _settings(app: App) -> Settings:
    settings = Settings()
    settings.accesslog = settings.errorlog = None
    settings.keep_alive_max_requests = 2**31
    settings.keep_alive_timeout = app.limits.idle
    settings.h2_max_concurrent_streams = app.limits.streams
    settings.websocket_max_message_size = app.limits.body
    settings.heartbeat = app.limits.heartbeat
    settings.include_server_header = False
    return settings
