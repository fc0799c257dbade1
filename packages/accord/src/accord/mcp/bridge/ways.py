"""The ways in which an agent can reach an MCP server of another component, and the bridges for two of them.

| way | the agent | is described as |
|---|---|---|
| `acp` | takes servers over ACP | itself |
| `stdio` | starts MCP servers as processes, as all agents of version 1 do | the shim, which leads to a socket of ours |
| `http` | takes servers over HTTP, and starts none | a URL on loopback |

Starting a process comes before HTTP: it works with every agent and every revision of MCP.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

from accord._internal.tasks import Tasks
from accord.mcp.bridge.bridge import Bridge
from accord.mcp.bridge.http_bridge import HttpBridge
from accord.mcp.over_acp.tool_server import ToolServer
from accord.schema import v1

Way: TypeAlias = Literal["acp", "stdio", "http"]
"""One way to an MCP server."""


def way_of(declared: Any, *, version: int, is_here: bool) -> Way | None:
    """The way for an agent that declared this (the JSON of its capabilities); None if it cannot be reached.

    >>> way_of({"mcpCapabilities": {"acp": True}}, version=1, is_here=False)
    'acp'
    >>> way_of({"session": {"mcp": {"http": {}}}}, version=2, is_here=True)
    'http'
    """
    offers = _member(declared, "mcpCapabilities") if version == 1 else _member(_member(declared, "session"), "mcp")
    if _offered(offers, "acp"):
        return "acp"
    if not is_here:
        return None  # a process of its machine cannot reach ours
    if version == 1 or _offered(offers, "stdio"):
        return "stdio"
    return "http" if _offered(offers, "http") else None


class Bridges:
    """The two bridges of one connection, each opened when it is first needed."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._by_process: Bridge | None = None
        self._by_http: HttpBridge | None = None

    def describe(self, server: ToolServer, way: Literal["stdio", "http"]) -> v1.McpServerStdio | v1.McpServerHttp:
        """Offer this server over a bridge, and describe it for the agent."""
        if way == "stdio":
            self._by_process = self._by_process or Bridge(self._tasks)
            return self._by_process.add(server)
        self._by_http = self._by_http or HttpBridge(self._tasks)
        return self._by_http.add(server)

    def close(self) -> None:
        """Close the bridges, and end what goes over them."""
        for bridge in (self._by_process, self._by_http):
            if bridge is not None:
                bridge.close()


def _member(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None


def _offered(offers: Any, name: str) -> bool:
    """Whether a capability is offered: true in version 1, an object in version 2."""
    value = _member(offers, name)
    return value is not None and value is not False
