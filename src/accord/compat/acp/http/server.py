"""`AcpServer`: serves an agent of its own to each client, over Streamable HTTP and WebSocket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from accord.compat.acp.http.protocol import (
    CONNECTION_ID_HEADER,
    CONTENT_TYPE_JSON,
    CONTENT_TYPE_SSE,
    SESSION_ID_HEADER,
)
from accord.compat.asgi_requests import Exchange, body_of
from accord.schema import codec

if TYPE_CHECKING:
    from accord.compat.acp.agent.connection import AgentSideConnection
    from accord.http.server.app import App

__all__ = ["AcpServer", "AgentFactory", "PostResult"]

AgentFactory = Callable[["AgentSideConnection"], Any]
"""Makes the agent of one connection."""


@dataclass
class PostResult:
    """What to answer to a request: the status, the body as plain values, and headers."""

    status: int
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])


class AcpServer:
    """Connections of clients, each with the agent that `agent_factory` makes for it.

    `accord.compat.acp.http.asgi.AcpAsgiApp` serves it in an ASGI server. A program with a web framework of its own
    calls `handle_post`, `open_stream` and `handle_delete` with what it has read from a request.
    """

    def __init__(self, agent_factory: AgentFactory) -> None:
        from accord.compat.agent_host import FactoryHost  # importing this module needs no part of the server
        from accord.http.server.app import app

        self._host = FactoryHost(agent_factory)
        self.app: App = app(self._host)
        """The application of ours that answers the requests."""

    async def handle_post(
        self, message: Any, *, content_type: str | None, connection_id: str | None, session_id: str | None
    ) -> PostResult:
        """What to answer to a POST with this message, which is plain JSON; the agent gets the message."""
        if isinstance(message, list):
            return _refusal(501, "a batch of messages is not supported: send one in each POST")
        headers = {"Content-Type": content_type or "", "Accept": f"{CONTENT_TYPE_JSON}, {CONTENT_TYPE_SSE}"}
        return await self._answer("POST", headers, connection_id, session_id, msgspec.json.encode(message))

    async def handle_delete(self, *, connection_id: str | None) -> PostResult:
        """What to answer to a DELETE, which ends this connection."""
        return await self._answer("DELETE", {}, connection_id, None)

    def validate_stream(self, *, connection_id: str | None, session_id: str | None) -> PostResult | None:
        """The refusal of a GET for this stream; None if `open_stream` would open it."""
        if not connection_id:
            return _refusal(400, f"missing header {CONNECTION_ID_HEADER}")
        connection = self._host.connections.get(connection_id) if self.app.has(connection_id) else None
        if connection is None:
            return _refusal(404, "no such connection")
        if session_id and not connection.can_stream(session_id):
            return _refusal(404, "session not found")
        return None

    async def open_stream(self, *, connection_id: str, session_id: str | None) -> AsyncGenerator[bytes]:
        """The body of the answer to a GET: the events of a session, or of the connection. A refused one is empty."""
        exchange = Exchange("GET", _identified({"Accept": CONTENT_TYPE_SSE}, connection_id, session_id))
        pieces = body_of(exchange, self.app_at_any_path)
        try:
            async for piece in pieces:
                if exchange.status == 200:
                    yield piece
        finally:
            await pieces.aclose()

    async def close(self) -> None:
        """End all connections and their agents."""
        await self.app.close()

    async def app_at_any_path(self, scope: Any, receive: Any, send: Any) -> None:
        """The application, wherever it is mounted."""
        if scope["type"] in ("http", "websocket"):
            scope = {"headers": [], **scope, "root_path": "", "path": self.app.path}
        await self.app(scope, receive, send)

    async def _answer(
        self,
        method: str,
        headers: dict[str, str],
        connection_id: str | None,
        session_id: str | None,
        body: bytes = b"",
    ) -> PostResult:
        exchange = Exchange(method, _identified(headers, connection_id, session_id), body)
        answered = b"".join([piece async for piece in body_of(exchange, self.app_at_any_path)])
        if exchange.headers.get("Content-Type") == CONTENT_TYPE_JSON:
            return PostResult(exchange.status, codec.loads(answered), exchange.headers)
        problem = {"error": answered.decode()} if answered else None
        return PostResult(exchange.status, problem, exchange.headers)


def _identified(headers: dict[str, str], connection_id: str | None, session_id: str | None) -> dict[str, str]:
    given = {CONNECTION_ID_HEADER: connection_id, SESSION_ID_HEADER: session_id}
    return headers | {name: value for name, value in given.items() if value}


def _refusal(status: int, problem: str) -> PostResult:
    return PostResult(status, {"error": problem})
