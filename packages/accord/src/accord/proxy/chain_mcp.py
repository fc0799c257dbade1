"""MCP servers in a chain: those that a proxy lends, and the bridge to an agent that supports none over ACP.

**What a proxy lends** (`ProxyLending`):

    client ── session/new ──▶ the servers' declarations are added ──▶ handlers of the proxy ──▶ agent
    agent  ── mcp/message, for one of these servers ──▶ is answered here; all others pass on towards the client

The agent reaches the servers over ACP if the rest of the chain supports that, else over the proxy's own bridge.

**The bridge** (`AgentBridge`) is between the last proxy and the agent, in the conductor, and handles only three things:

| passes | becomes |
|---|---|
| the agent's answer to `initialize` | the same, with the capability `acp`, if the agent can be reached over a bridge |
| a request that opens a session | its `acp` servers are described as processes or URLs that lead here (`mcp/bridge`) |
| `mcp/message` from a provider | is taken: the agent never sees it |

The agent's requests to a server are then forwarded to its provider (`mcp/forwarded_server`). The agent's own messages
do not pass through here, so updates cost nothing more. An agent that supports `acp` servers itself needs no bridge.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Raw

from accord._internal.tasks import Tasks
from accord.errors import INVALID_PARAMS, RequestError
from accord.jsonrpc.line_frames import RequestId
from accord.mcp.bridges import Bridges, Way, way_of
from accord.mcp.lent_servers import LentServers
from accord.mcp.mcp_line import CONNECT, DISCONNECT, MESSAGE, LinesToClient, text_of
from accord.mcp.tool_server import ToolServer, tools
from accord.mistakes import wrong_type
from accord.proxy.link import INITIALIZE, Link, Port, version_in
from accord.proxy.switchboard import OwnAnswer, RawNeighbour, Switchboard
from accord.schema import codec, v1
from accord.schema.base import Request
from accord.trace.meaning import body_of, items_of

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

RequestT = TypeVar("RequestT", bound=Request[Any])

OPENING = frozenset(("session/new", "session/load", "session/resume", "session/fork"))
"""The requests that name MCP servers."""

OVER_ACP = frozenset((CONNECT, DISCONNECT, MESSAGE))
"""The methods with which an agent uses a server over ACP."""


class ProxyServers:
    """The servers that a proxy's author lends: functions, which are the tools of one server, and whole servers."""

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
        """Return all servers; the one of the functions has the proxy's name."""
        if self._made is None:
            own = [tools(*self._functions, name=self._name)] if self._functions else []
            self._made = [*own, *self._servers]
        return self._made


def as_tool_server(call: str, server: Any) -> ToolServer:
    """Return the server that an author passed to this call."""
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
        asker = RawNeighbour(board, link.wrapped)
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
        """Store the declarations in the answer to `initialize` of the rest of the chain."""
        fields = body_of(result)
        self._declared = fields.get("agentCapabilities", fields.get("capabilities"))

    # Requests that open a session

    def added(self, params: Raw | None, version: int) -> Raw | None:
        """The params of a request that opens a session, with the servers; raises RequestError if that cannot be."""
        if not self._servers:
            return params
        given = None if params is None else codec.loads(params)
        fields = body_of(given)
        there: Any = fields.get("mcpServers") or []
        if not isinstance(given, dict) or not isinstance(there, list):
            return params
        listed = items_of(there)
        for server in self._servers:
            _check_name(server, listed)
        ours = [self._description(server, version) for server in self._servers]
        return Raw(codec.encode({**fields, "mcpServers": [*listed, *ours]}))

    def with_server(self, request: RequestT, server: ToolServer, version: int) -> RequestT:
        """Return a request that opens a session, with a server of this session only; it exists until the connection
        ends.
        """
        fields = body_of(codec.loads(codec.encode(request)))
        listed = items_of(fields.get("mcpServers"))
        _check_name(server, listed)
        described = self._described_now(server, version)
        made: RequestT = codec.convert({**fields, "mcpServers": [*listed, described]}, type(request))
        return made

    def _description(self, server: ToolServer, version: int) -> Any:
        if server.name not in self._described:
            self._described[server.name] = self._described_now(server, version)
        return self._described[server.name]

    def _described_now(self, server: ToolServer, version: int) -> Any:
        """Return a new description of a server, with its own id or address."""
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

    # Messages of the agent

    def take(self, request_id: RequestId | None, method: str, params: Raw | None) -> bool:
        """Answer a message of the agent's to one of the servers; returns False to pass others on."""
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
    if any(body_of(it).get("name") == server.name for it in listed):
        raise RequestError.invalid_params(
            f"a proxy lends an MCP server {server.name!r} already; give yours another name", path="$.mcpServers"
        )


def as_sent(described: v1.McpServerStdio | v1.McpServerHttp, version: int) -> Any:
    """A description of a bridged server as JSON, in this version of the protocol."""
    if version == 1:
        return codec.loads(codec.encode(described))
    from accord.schema.conversion import to_v2

    return codec.loads(codec.encode(to_v2(described)))


class AgentBridge:
    """The MCP servers of one chain that its agent reaches over a bridge."""

    def __init__(self, board: Switchboard, nearer: Port, tasks: Tasks) -> None:
        self._board = board
        self._nearer = nearer
        """The source of messages for the agent: the last proxy, or the client."""
        self._tasks = tasks
        self._version = 1
        self._way: Way | None = None
        """How the agent reaches servers; None before it has answered `initialize`, and if it cannot."""
        self._answered = False
        self._lines: LinesToClient | None = None
        self._bridges = Bridges(tasks)
        self._described: dict[str, Any] = {}
        """The descriptions that the agent got, by the ids of servers."""

    def close(self) -> None:
        """End the connections over the bridges."""
        self._bridges.close()

    def take(self, request_id: RequestId | None, method: str, params: Raw | None) -> bool:
        """Handle a message on its way to the agent; returns False to pass it unchanged."""
        if method == INITIALIZE and request_id is not None:
            passed = self._board.pass_request(self._nearer, request_id, method, params)
            if passed is not None:
                passed.edit = self._offered
            return True
        if method in OPENING and request_id is not None and params is not None:
            return self._opened(request_id, method, params)
        if method == MESSAGE and self._lines is not None:
            return self._said(request_id, params)
        return False

    # Before a session

    def _offered(self, result: Raw | None) -> Raw | bytes | None:
        """The agent's answer to `initialize`, with the capability that the bridge adds."""
        answer = None if result is None else codec.loads(result)
        if not isinstance(answer, dict):
            return result
        fields = body_of(answer)
        self._version = version_in(result) or 1
        name = "agentCapabilities" if self._version == 1 else "capabilities"
        declared = fields.get(name)
        self._way = way_of(declared, version=self._version, is_here=True)
        self._answered = True
        if self._way in (None, "acp"):
            return result
        path = ("mcpCapabilities", "acp") if self._version == 1 else ("session", "mcp", "acp")
        added: Any = True if self._version == 1 else {}
        return codec.encode({**fields, name: _with(declared, path, added)})

    # A session

    def _opened(self, request_id: RequestId, method: str, params: Raw) -> bool:
        """Describe the servers in the other form; refuse them if there is none."""
        if self._way == "acp" or not self._answered or b'"acp"' not in bytes(params):
            return False
        given = codec.loads(params)
        servers = body_of(given).get("mcpServers")
        if not isinstance(servers, list):
            return False
        listed = [self._reachable(server) for server in items_of(servers)]
        if any(server is None for server in listed):
            problem = "mcpServers: the agent takes no servers over ACP, and there is no bridge to it"
            self._board.refuse(self._nearer.link, request_id, INVALID_PARAMS, f"Invalid params: {problem}")
            return True
        changed = codec.encode({**body_of(given), "mcpServers": listed})
        self._board.pass_request(self._nearer, request_id, method, changed)
        return True

    def _reachable(self, server: Any) -> Any:
        """Return this description in a form that the agent can use; None if there is none."""
        if not isinstance(server, dict):
            return server
        fields = body_of(server)
        server_id = text_of(fields, "serverId", "id")
        if fields.get("type") != "acp" or server_id is None:
            return fields
        if self._way not in ("stdio", "http"):
            return None
        if server_id not in self._described:
            described = self._bridges.describe(self._forwarded(str(fields.get("name")), server_id), self._way)
            self._described[server_id] = as_sent(described, self._version)
        kept = {name: value for name, value in fields.items() if name not in ("type", "serverId", "id", "name")}
        return {**kept, **self._described[server_id], "name": fields.get("name")}

    def _forwarded(self, name: str, server_id: str) -> Any:
        from accord.mcp.forwarded_server import ForwardedServer

        if self._lines is None:
            self._lines = LinesToClient(RawNeighbour(self._board, self._nearer))
        server = v1.McpServerAcp(name, v1.McpServerAcpId(server_id))
        return ForwardedServer(name, functools.partial(self._lines.open, server))

    # Messages of providers

    def _said(self, request_id: RequestId | None, params: Raw | None) -> bool:
        assert self._lines is not None
        value = None if params is None else codec.loads(params)
        if request_id is None:
            self._tasks.start(self._lines.notified(value), MESSAGE)
        else:
            OwnAnswer(self._nearer, request_id, MESSAGE, self._lines.asked(value), self._tasks)
        return True


def _with(value: Any, path: tuple[str, ...], added: Any) -> Any:
    """A JSON object with this member added at the end of a path of objects."""
    if not path:
        return added
    fields = body_of(value)
    return {**fields, path[0]: _with(fields.get(path[0]), path[1:], added)}
