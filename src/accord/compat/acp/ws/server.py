"""`handle_asgi_websocket`: serves one WebSocket of an ASGI server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from accord.compat.acp.http.asgi import AcpAsgiApp
from accord.compat.acp.http.server import AcpServer

__all__ = ["handle_asgi_websocket"]


async def handle_asgi_websocket(
    server: AcpServer,
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """Serve the client of this WebSocket with an agent of its own, until either side leaves."""
    await AcpAsgiApp(server)(scope, receive, send)
