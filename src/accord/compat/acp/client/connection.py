"""`ClientSideConnection`: a client's connection, on which its agent is an object with the agent's methods."""

from __future__ import annotations

from typing import Any

from accord.compat.acp.client.router import build_client_router
from accord.compat.acp.interfaces import Agent
from accord.compat.calls import AGENT_CALLS
from accord.compat.side import Side, connected, told, with_calls

__all__ = ["ClientSideConnection"]


@with_calls(AGENT_CALLS, Agent)
class ClientSideConnection(Side):
    """The connection of a client: it has the methods of `Agent`, and the client handles what arrives.

    `to_client` is the client, or a function that makes it from this connection. The answer to a prompt is released
    after the updates that arrived before it were handled.
    """

    def __init__(
        self,
        to_client: Any,
        input_stream: Any,
        output_stream: Any = None,
        *,
        use_unstable_protocol: bool = False,
        **connection_kwargs: Any,
    ) -> None:
        client = connected(to_client, self)
        router = build_client_router(client, use_unstable_protocol=use_unstable_protocol)
        super().__init__(router, input_stream, output_stream, role="client", **connection_kwargs)
        told(client, self)

    async def initialize(
        self, protocol_version: int, client_capabilities: Any = None, client_info: Any = None, **kwargs: Any
    ) -> Any:
        """Open the connection: agree on the version, and tell what the client offers."""
        given = {"protocol_version": protocol_version, "client_info": client_info, **kwargs}
        return await self.call(AGENT_CALLS[0], {**given, "client_capabilities": client_capabilities or {}})

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Begin a session."""
        given = {"cwd": cwd, "additional_directories": additional_directories, "mcp_servers": mcp_servers or []}
        return await self.call(AGENT_CALLS[1], {**given, **kwargs})

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Open a session again; the agent replays it."""
        given = {"cwd": cwd, "session_id": session_id, "additional_directories": additional_directories}
        return await self.call(AGENT_CALLS[2], {**given, "mcp_servers": mcp_servers or [], **kwargs})
