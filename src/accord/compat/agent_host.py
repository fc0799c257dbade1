"""`FactoryHost`: makes an agent of the official SDK for each connection of our server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from accord.compat.acp.agent.connection import AgentSideConnection
from accord.http.server.connection import HttpConnection
from accord.http.server.hosting import Host
from accord.transports.base import End, Transport


class FactoryHost(Host):
    """Serves each connection with the agent that a function makes for it."""

    name = "agent"

    def __init__(self, make_agent: Callable[[AgentSideConnection], Any]) -> None:
        self._make_agent = make_agent
        self.connections: dict[str, HttpConnection] = {}
        """The open connections over Streamable HTTP, by their ids."""

    async def serve(self, transport: Transport, owner: str) -> End | None:  # noqa: ARG002  (the interface of a host)
        connection = AgentSideConnection(self._make_agent, transport, listening=False)
        if isinstance(transport, HttpConnection):
            self.connections[transport.id] = transport
        try:
            await connection.listen()
        finally:
            if isinstance(transport, HttpConnection):
                del self.connections[transport.id]
            await asyncio.shield(connection.close())
        return None
