"""Taking TCP connections: hypercorn's own loop waits for clients to leave, or fails on them; this one ends.

start ──▶ accepted ──▶ Connection (hypercorn, mended) ──▶ the application
end ──▶ no more are taken, idle ones are told, the rest has a moment, then all are cut
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Any

from hypercorn.asyncio.worker_context import WorkerContext

from accord.http.asgi import App
from accord.http.mended import Connection, Settings, mend
from accord.transports.closing import within

HANDSHAKE = 10.0
"""Seconds that TLS may take to be agreed upon."""

ENDING = 2.0
"""Seconds that each step of ending may take."""

log = logging.getLogger("accord.http")


class Listener:
    """An open socket, and the connections that have come through it."""

    def __init__(self, app: App, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._app = app
        self._listening = listening
        self._tls = tls
        self._settings = _settings(app)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        mend()
        self._context = WorkerContext(None)
        self._server = await asyncio.start_server(
            self._accepted,
            sock=self._listening,
            backlog=1024,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else HANDSHAKE,
        )

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= self._app.limits.sockets or self._context.terminated.is_set():
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            app: Any = self._app
            loop = asyncio.get_running_loop()
            await Connection(app, loop, self._settings, self._context, {}, reader, writer).run()
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)

    async def end(self) -> None:
        """Take no more, and cut what does not end by itself. The application has ended its streams before."""
        await self._context.terminated.set()
        self._server.close()
        tasks = set(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=ENDING)
        for writer in list(self._writers):
            writer.transport.abort()
        if self._tasks and not await within(ENDING, asyncio.wait(set(self._tasks))):
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(set(self._tasks), timeout=ENDING)


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
