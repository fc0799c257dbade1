"""Runs the inspector's server on the loopback, for as long as a block lasts (extra `http`)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from accord import AccordError
from accord.extras import missing_extra
from accord_tools.inspector.app import InspectorApp
from accord_tools.inspector.library import Library

HOST = "127.0.0.1"


class Inspector:
    """A running inspector: its `app`, and the `url` of its page, with the token."""

    def __init__(self, app: InspectorApp, port: int) -> None:
        self.app = app
        self.url = f"http://{HOST}:{port}/#{app.token}"


@asynccontextmanager
async def inspecting(library: Library, *, port: int = 0, token: str | None = None) -> AsyncGenerator[Inspector]:
    """Run the inspector for as long as the block lasts. With port 0 the system chooses a free one."""
    try:
        from accord.http.server.listener import Listener
    except ImportError:
        raise missing_extra("http", "the inspector") from None
    app = InspectorApp(library, host=HOST, token=token)
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        raise AccordError(f"cannot listen on {HOST}:{port}: {error.strerror}; choose another 'port'") from error
    listening.setblocking(False)
    listener = Listener(app, listening, None)
    await listener.start()
    try:
        yield Inspector(app, listening.getsockname()[1])
    finally:
        await asyncio.shield(_end(app, listener))


async def _end(app: InspectorApp, listener: object) -> None:
    from accord.http.server.listener import Listener

    assert isinstance(listener, Listener)
    await app.close()
    await listener.end()
