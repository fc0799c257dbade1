"""`Lending`: the MCP servers of this program that one agent may use, and how it reaches them.

An agent that supports servers over ACP reaches them over its connection. Any other agent of this machine reaches them
over a bridge: a small program that it starts, or HTTP (`mcp/bridge/ways`).

Version 2 of the protocol has no requests for files and terminals; an `EditorServer` offers those that the client lends
as tools. The services and their permissions are the same as in version 1: a tool makes a request of version 1, and
calls the service's handler with it. A call over MCP does not identify its session, so each session has a server of its
own.
"""

# The private members of an agent are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from accord.engine.handlers import Handlers
from accord.errors import CapabilityMissing, RequestError
from accord.mcp.bridges import Bridges, way_of
from accord.mcp.lent_servers import LentServers
from accord.mcp.tool_server import ToolServer, tools
from accord.mistakes import wrong_type
from accord.schema import codec, v1
from accord.schema.base import Request
from accord.services.service import ServedSession, Service, handlers_of

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent


class Lending:
    """The servers that are lent to one agent."""

    def __init__(self, agent: RemoteAgent) -> None:
        self._agent = agent
        self._over_acp: LentServers | None = None
        self._bridges = Bridges(agent._tasks)

    def describe(self, server: ToolServer) -> v1.McpServer:
        """Lend this server, and describe it for the agent; raises CapabilityMissing if the agent cannot reach it."""
        if not isinstance(cast("object", server), ToolServer):
            raise wrong_type("mcp_servers", "descriptions such as v1.McpServerStdio, or accord.tools(...)", server)
        declared = self._agent.peer.capabilities.declared
        version = 1 if declared is None or isinstance(declared, v1.AgentCapabilities) else 2
        found = codec.loads(codec.encode(declared))
        way = way_of(found, version=version, is_here=server.is_bridged and self._agent._target.is_here)
        if way is None:
            raise CapabilityMissing("mcp_capabilities.acp", f"lending the MCP server {server.name}")
        return self._by_acp(server) if way == "acp" else self._bridges.describe(server, way)

    def _by_acp(self, server: ToolServer) -> v1.McpServer:
        if self._over_acp is None:
            agent: RemoteAgent = weakref.proxy(self._agent)  # the connection holds the handlers (see `remote_agent`)
            self._over_acp = LentServers(lambda: agent.peer, agent._tasks)
            agent._handle(self._over_acp.handlers())
        declared = server.declared()
        self._over_acp.add(declared.server_id, server)
        return declared

    def end_connections(self) -> None:
        """End the MCP connections over ACP, because the ACP connection has ended."""
        if self._over_acp is not None:
            self._over_acp.end_connections()

    def close(self) -> None:
        """End everything."""
        self.end_connections()
        self._bridges.close()


ResultT = TypeVar("ResultT")


NAME = "editor"
"""The server's name, as agents see it."""


class EditorServer:
    """The server of one session."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._handlers = Handlers()
        self._session: asyncio.Future[weakref.ref[ServedSession]] = asyncio.get_running_loop().create_future()
        for service in services:
            self._handlers = handlers_of(service, self._session_of).over(self._handlers)

    def tool_server(self) -> ToolServer | None:
        """The MCP server; None if the client lends neither files nor terminals."""
        offered: list[tuple[type[Request[Any]], Callable[..., Any]]] = [
            (v1.ReadTextFileRequest, self.read_text_file),
            (v1.WriteTextFileRequest, self.write_text_file),
            (v1.CreateTerminalRequest, self.run_command),
        ]
        functions = [tool for request, tool in offered if self._lends(request)]
        return tools(*functions, name=NAME) if functions else None

    def belongs_to(self, session: ServedSession) -> None:
        """Set the session that the server is for; earlier calls wait for that."""
        if not self._session.done():
            self._session.set_result(weakref.ref(session))

    def _session_of(self, session_id: v1.SessionId) -> ServedSession:
        if (session := self._session.result()()) is None:
            raise RequestError.not_found("Unknown session", sessionId=session_id)
        return session

    def _lends(self, request: type[Request[Any]]) -> bool:
        return (request.__method__, True) in self._handlers.by_method

    # The tools: their docstrings are what the model reads

    async def read_text_file(self, path: str, line: int | None = None, limit: int | None = None) -> str:
        """Read a text file as the user's editor has it, unsaved changes included.

        `line` is the first line to read, counted from 1. `limit` is the number of lines.
        """
        session, place = await self._at(path)
        return (await self._ask(v1.ReadTextFileRequest(session, place, line, limit))).content

    async def write_text_file(self, path: str, content: str) -> str:
        """Write a text file; an existing file is replaced as a whole."""
        session, place = await self._at(path)
        await self._ask(v1.WriteTextFileRequest(session, place, content))
        return f"wrote {place}"

    async def run_command(self, command: str, args: list[str] | None = None, cwd: str | None = None) -> str:
        """Run a command where the user can watch it, and wait for its end.

        Without `args`, `command` is a line for a shell. The answer is the output, and how the command ended.
        """
        session, place = await self._at(cwd or ".")
        created = await self._ask(v1.CreateTerminalRequest(session, command, args or [], cwd=place))
        try:
            ended = await self._ask(v1.WaitForTerminalExitRequest(session, created.terminal_id))
            output = await self._ask(v1.TerminalOutputRequest(session, created.terminal_id))
        finally:
            await self._ask(v1.ReleaseTerminalRequest(session, created.terminal_id))
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"ended by {ended.signal}"
        cut = "(the beginning was left out)\n" if output.truncated else ""
        return f"{cut}{output.output}\n[{how}]"

    async def _at(self, path: str) -> tuple[v1.SessionId, str]:
        """The session, and a path in it as an absolute one."""
        await asyncio.shield(self._session)
        session = self._session_of(v1.SessionId(""))
        return session.id, str(session.cwd / path)

    async def _ask(self, request: Request[ResultT]) -> ResultT:
        """Call the handler of a service; the tool reports its errors."""
        from mcp.server.mcpserver.exceptions import ToolError

        _, handler = self._handlers.by_method[request.__method__, True]
        try:
            answer: Any = handler(request)
            return cast("ResultT", await answer if inspect.isawaitable(answer) else answer)
        except RequestError as error:
            raise ToolError(error.message) from None
