"""The MCP servers that a proxy lends: `Lent` is what its author added, `ProxyLending` serves one connection.

    client ── session/new ──▶ the servers' declarations are added ──▶ handlers of the proxy ──▶ agent
    agent  ── mcp/message, for one of these servers ──▶ is answered here; all others pass on towards the client

The agent reaches the servers over ACP if the rest of the chain takes that, else over a bridge of the proxy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Raw

from accord.arguments import wrong_type
from accord.errors import RequestError
from accord.jsonrpc.frames import RequestId
from accord.mcp.bridge.ways import Bridges, way_of
from accord.mcp.over_acp.forms import CONNECT, DISCONNECT, MESSAGE
from accord.mcp.over_acp.lent_servers import LentServers
from accord.mcp.over_acp.tool_server import ToolServer, tools
from accord.proxy.link import Link
from accord.proxy.own_calls import Asker, OwnAnswer
from accord.proxy.switchboard import Switchboard
from accord.schema import codec, v1
from accord.schema.base import Request
from accord.tasks import Tasks

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

RequestT = TypeVar("RequestT", bound=Request[Any])

OPENING = frozenset(("session/new", "session/load", "session/resume", "session/fork"))
"""The requests that name MCP servers."""

OVER_ACP = frozenset((CONNECT, DISCONNECT, MESSAGE))
"""The methods with which an agent uses a server over ACP."""


class Lent:
    """What the author of a proxy lends: functions, which are the tools of one server, and whole servers."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._functions: list[Callable[..., Any]] = []
        self._servers: list[ToolServer] = []
        self._made: list[ToolServer] | None = None

    def add_function(self, function: Callable[..., Any]) -> None:
        tools(function)  # a function that cannot be a tool fails where it is written, not with the first connection
        self._functions.append(function)
        self._made = None

    def add_server(self, server: ToolServer | Server[Any] | MCPServer) -> None:
        given = as_tool_server("proxy.add_server()", server)
        if any(given.name == other.name for other in self._servers):
            raise ValueError(f"this proxy lends an MCP server {given.name!r} already; give this one another name")
        self._servers.append(given)
        self._made = None

    def servers(self) -> list[ToolServer]:
        """All servers; the one of the functions has the proxy's name."""
        if self._made is None:
            own = [tools(*self._functions, name=self._name)] if self._functions else []
            self._made = [*own, *self._servers]
        return self._made


def as_tool_server(call: str, server: Any) -> ToolServer:
    """The server that an author gave to this call."""
    if isinstance(server, ToolServer):
        return server
    try:
        return tools(server)
    except TypeError:
        raise wrong_type(call, "an MCP server, such as accord.tools(...) or MCPServer", server) from None


class ProxyLending:
    """The servers of a proxy on one connection."""

    def __init__(self, servers: list[ToolServer], board: Switchboard, link: Link, tasks: Tasks) -> None:
        self._servers = servers
        self._link = link
        self._tasks = tasks
        asker = Asker(board, link.wrapped)
        self._over_acp = LentServers(lambda: asker, tasks)
        self._bridges = Bridges(tasks)
        self._declared: Any = None
        """The capabilities of the rest of the chain, as JSON."""
        self._described: dict[str, Any] = {}
        """The descriptions of servers, by their names: all sessions of the connection share them."""

    def close(self) -> None:
        """End all use of the servers."""
        self._over_acp.end_connections()
        self._bridges.close()

    def learn(self, result: Any) -> None:
        """Keep what the rest of the chain declared in its answer to `initialize`."""
        fields = cast("dict[str, Any]", result) if isinstance(result, dict) else {}
        self._declared = fields.get("agentCapabilities", fields.get("capabilities"))

    # Requests that open a session

    def added(self, params: Raw | None, version: int) -> Raw | None:
        """The params of a request that opens a session, with the servers; raises RequestError if that cannot be."""
        if not self._servers:
            return params
        given = None if params is None else codec.loads(params)
        if not isinstance(given, dict):
            return params
        fields = cast("dict[str, Any]", given)
        there: Any = fields.get("mcpServers") or []
        if not isinstance(there, list):
            return params
        listed = cast("list[Any]", there)
        for server in self._servers:
            _check_name(server, listed)
        ours = [self._description(server, version) for server in self._servers]
        return Raw(codec.encode({**fields, "mcpServers": [*listed, *ours]}))

    def with_server(self, request: RequestT, server: ToolServer, version: int) -> RequestT:
        """A request that opens a session, with a server of this session only; it is there until the connection ends."""
        fields = cast("dict[str, Any]", codec.loads(codec.encode(request)))
        listed = cast("list[Any]", fields.get("mcpServers") or [])
        _check_name(server, listed)
        described = self._described_now(server, version)
        made: RequestT = codec.convert({**fields, "mcpServers": [*listed, described]}, type(request))
        return made

    def _description(self, server: ToolServer, version: int) -> Any:
        if server.name not in self._described:
            self._described[server.name] = self._described_now(server, version)
        return self._described[server.name]

    def _described_now(self, server: ToolServer, version: int) -> Any:
        """A new description of a server, with an id or a place of its own."""
        way = way_of(self._declared, version=version, is_here=server.is_bridged)
        if way is None:
            raise RequestError.invalid_params(
                f"the agent cannot reach the MCP server {server.name!r} of a proxy: it takes no servers over ACP"
            )
        if way == "acp":
            declared = server.declared()
            self._over_acp.add(declared.server_id, server)
            return codec.loads(codec.encode(declared))
        return as_sent(self._bridges.describe(server, way), version)

    # What the agent sends

    def take(self, request_id: RequestId | None, method: str, params: Raw | None) -> bool:
        """Answer a message of the agent's to one of the servers; False lets others pass."""
        if method not in OVER_ACP:
            return False
        value = None if params is None else codec.loads(params)
        if not self._over_acp.owns(value):
            return False
        if request_id is None:
            self._tasks.start(self._over_acp.notified(value), method)
        else:
            OwnAnswer(self._link.wrapped, request_id, method, self._over_acp.asked(method, value), self._tasks)
        return True


def _check_name(server: ToolServer, listed: list[Any]) -> None:
    """Raise RequestError if a request lists a server of this name already."""
    if any(isinstance(it, dict) and cast("dict[str, Any]", it).get("name") == server.name for it in listed):
        raise RequestError.invalid_params(
            f"a proxy lends an MCP server {server.name!r} already; give yours another name", path="$.mcpServers"
        )


def as_sent(described: v1.McpServerStdio | v1.McpServerHttp, version: int) -> Any:
    """A description of a bridged server as JSON, in this version of the protocol."""
    if version == 1:
        return codec.loads(codec.encode(described))
    from accord.schema.conversion import to_v2

    return codec.loads(codec.encode(to_v2(described)))
