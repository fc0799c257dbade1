"""`Lending`: the MCP servers of this program that one agent may use, and the way in which it reaches them.

An agent that takes servers over ACP reaches them over its connection. Any other agent of this machine reaches them over
a bridge: a small program that it starts, or HTTP (`mcp/bridge/ways`).
"""

from __future__ import annotations

from typing import Protocol, cast

from accord._internal.tasks import Tasks
from accord.arguments import wrong_type
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import CapabilityMissing
from accord.mcp.bridge.ways import Bridges, way_of
from accord.mcp.over_acp.lent_servers import LentServers
from accord.mcp.over_acp.tool_server import ToolServer
from accord.schema import codec, v1


class LendsTo(Protocol):
    """The agent, as far as lending needs it."""

    @property
    def peer(self) -> Peer: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def is_here(self) -> bool: ...
    def handle(self, handlers: Handlers) -> None: ...


class Lending:
    """The servers that are lent to one agent."""

    def __init__(self, agent: LendsTo) -> None:
        self._agent = agent
        self._over_acp: LentServers | None = None
        self._bridges = Bridges(agent.tasks)

    def describe(self, server: ToolServer) -> v1.McpServer:
        """Lend this server, and describe it for the agent; raises CapabilityMissing if the agent cannot reach it."""
        if not isinstance(cast("object", server), ToolServer):
            raise wrong_type("mcp_servers", "descriptions such as v1.McpServerStdio, or accord.tools(...)", server)
        declared = self._agent.peer.capabilities.declared
        version = 1 if declared is None or isinstance(declared, v1.AgentCapabilities) else 2
        found = codec.loads(codec.encode(declared))
        way = way_of(found, version=version, is_here=server.is_bridged and self._agent.is_here)
        if way is None:
            raise CapabilityMissing("mcp_capabilities.acp", f"lending the MCP server {server.name}")
        return self._by_acp(server) if way == "acp" else self._bridges.describe(server, way)

    def _by_acp(self, server: ToolServer) -> v1.McpServer:
        if self._over_acp is None:
            agent = self._agent
            self._over_acp = LentServers(lambda: agent.peer, agent.tasks)
            agent.handle(self._over_acp.handlers())
        declared = server.declared()
        self._over_acp.add(declared.server_id, server)
        return declared

    def end_connections(self) -> None:
        """End what goes over the ACP connection, because that has ended."""
        if self._over_acp is not None:
            self._over_acp.end_connections()

    def close(self) -> None:
        """End everything."""
        self.end_connections()
        self._bridges.close()
