"""`AgentBridge`: lets an agent that takes no MCP servers over ACP use those of the components before it.

It stands between the last proxy and the agent, in the conductor, and looks at three things only:

| passes | becomes |
|---|---|
| the agent's answer to `initialize` | the same, with the capability `acp`, if the agent can be reached over a bridge |
| a request that opens a session | its `acp` servers are described as processes or URLs that lead here (`mcp/bridge`) |
| `mcp/message` from a provider | is taken: the agent never sees it |

What the agent then asks of a server is forwarded to its provider (`mcp/bridge/forwarded`). Nothing that the agent sends
passes through here, so updates cost nothing more. An agent that takes `acp` servers itself is left alone.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

from msgspec import Raw

from accord.errors import INVALID_PARAMS
from accord.jsonrpc.frames import RequestId
from accord.mcp.bridge.ways import Bridges, Way, way_of
from accord.mcp.over_acp.forms import MESSAGE, text_of
from accord.proxy.envelopes import INITIALIZE
from accord.proxy.lending import OPENING, as_sent
from accord.proxy.link import Port
from accord.proxy.opening import version_in
from accord.proxy.own_calls import Asker, OwnAnswer
from accord.proxy.switchboard import Switchboard
from accord.schema import codec, v1
from accord.tasks import Tasks

if TYPE_CHECKING:
    from accord.mcp.over_acp.lines_to_client import LinesToClient


class AgentBridge:
    """The MCP servers of one chain that its agent reaches over a bridge."""

    def __init__(self, board: Switchboard, nearer: Port, tasks: Tasks) -> None:
        self._board = board
        self._nearer = nearer
        """Where messages for the agent come from: the last proxy, or the client."""
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
        """End what goes over the bridges."""
        self._bridges.close()

    def take(self, request_id: RequestId | None, method: str, params: Raw | None) -> bool:
        """Look at a message on its way to the agent; False lets it pass as it came."""
        if method == INITIALIZE and request_id is not None:
            passed = self._board.pass_call(self._nearer, request_id, method, params)
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
        fields = cast("dict[str, Any]", answer)
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
        """Describe the servers in another way; refuse them if there is none."""
        if self._way == "acp" or not self._answered or b'"acp"' not in bytes(params):
            return False
        given = codec.loads(params)
        servers = cast("dict[str, Any]", given).get("mcpServers") if isinstance(given, dict) else None
        if not isinstance(servers, list):
            return False
        listed = [self._reachable(server) for server in cast("list[Any]", servers)]
        if any(server is None for server in listed):
            problem = "mcpServers: the agent takes no servers over ACP, and there is no bridge to it"
            self._board.refuse(self._nearer.link, request_id, INVALID_PARAMS, f"Invalid params: {problem}")
            return True
        changed = codec.encode({**cast("dict[str, Any]", given), "mcpServers": listed})
        self._board.pass_call(self._nearer, request_id, method, changed)
        return True

    def _reachable(self, server: Any) -> Any:
        """This description as the agent can use it; None if it cannot."""
        if not isinstance(server, dict):
            return server
        fields = cast("dict[str, Any]", server)
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
        from accord.mcp.bridge.forwarded import ForwardedServer
        from accord.mcp.over_acp.lines_to_client import LinesToClient

        if self._lines is None:
            self._lines = LinesToClient(Asker(self._board, self._nearer))
        server = v1.McpServerAcp(name, v1.McpServerAcpId(server_id))
        return ForwardedServer(name, functools.partial(self._lines.open, server))

    # What providers send

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
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return {**fields, path[0]: _with(fields.get(path[0]), path[1:], added)}
