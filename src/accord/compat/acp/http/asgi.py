"""`create_asgi_app`: an ASGI application that serves an agent, for any ASGI server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from accord.compat.acp.http.server import AcpServer, AgentFactory

__all__ = ["AcpAsgiApp", "create_asgi_app"]


class AcpAsgiApp:
    """The ASGI application of an `AcpServer`. It answers at every path, so it can be mounted anywhere."""

    def __init__(self, server: AcpServer) -> None:
        self._server = server

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Answer one request, serve one WebSocket, or follow the life of the ASGI server."""
        await self._server.app_at_any_path(scope, receive, send)


def create_asgi_app(agent_factory: AgentFactory) -> AcpAsgiApp:
    """An ASGI application that serves each connection with the agent that `agent_factory` makes for it."""
    return AcpAsgiApp(AcpServer(agent_factory))
