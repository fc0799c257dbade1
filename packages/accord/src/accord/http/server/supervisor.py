"""What a TCP connection needs from the listener that accepted it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from accord.http.h1 import RequestHead
from accord.http.server.asgi import Application, Receive, Scope, Send
from accord.http.server.limits import ServerLimits


class Served(Protocol):
    """An application that brings the limits of its server."""

    @property
    def limits(self) -> ServerLimits:
        """The server's limits."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Supervisor(Protocol):
    """Counts the connections of a server, runs their requests, and ends them.

    A connection is passed to it as its protocol. `listener` implements this.
    """

    @property
    def app(self) -> Application:
        """The application that answers requests."""
        ...

    @property
    def limits(self) -> ServerLimits:
        """The server's limits."""
        ...

    @property
    def is_ending(self) -> bool:
        """Whether the server is shutting down, so that connections close after their last response."""
        ...

    def takes(self, connection: Supervised) -> bool:
        """Count this connection, unless the server ends or has `ServerLimits.sockets` of them; whether it was."""
        ...

    def forget(self, connection: Supervised) -> None:
        """Count this connection no longer: it has ended."""
        ...

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this for a request; the server's end waits for it."""
        ...

    def speak_http2(self, connection: Supervised, transport: asyncio.Transport, data: bytes) -> None:
        """Speak HTTP/2 on this connection; `data` is what has been received of it."""
        ...

    def upgrade(self, connection: Supervised, transport: asyncio.Transport, head: RequestHead, rest: bytes) -> None:
        """Make this connection a WebSocket, if the application accepts it; `rest` is what follows the request."""
        ...


class Supervised(Protocol):
    """A TCP connection that the server can end."""

    def end(self) -> None:
        """Close the connection once no request is in progress."""
        ...

    def abort(self) -> None:
        """Close the connection at once."""
        ...
