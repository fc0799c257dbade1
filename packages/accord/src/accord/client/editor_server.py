"""`EditorServer`: the files and terminals that a client lends, as tools of an MCP server, for agents of version 2.

Version 2 of the protocol has no requests for files and terminals. The services are the same as in version 1, and so is
what they allow: a tool makes a request of version 1, and calls the service's handler with it. A call over MCP does not
say which session it belongs to, so each session has a server of its own.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from accord.engine.handlers import Handlers
from accord.errors import RequestError
from accord.mcp.over_acp.tool_server import ToolServer, tools
from accord.schema import v1
from accord.schema.base import Request
from accord.services.service import ServedSession, Service

ResultT = TypeVar("ResultT")


NAME = "editor"
"""The server's name, as agents see it."""


class EditorServer:
    """The server of one session."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._handlers = Handlers()
        self._session: asyncio.Future[ServedSession] = asyncio.get_running_loop().create_future()
        for service in services:
            service.register(self._handlers, self._session_of)

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
        """Tell the server which session it is for; calls that come before that wait."""
        if not self._session.done():
            self._session.set_result(session)

    def _session_of(self, _: v1.SessionId) -> ServedSession:
        return self._session.result()

    def _lends(self, request: type[Request[Any]]) -> bool:
        return (request.__method__, True) in self._handlers.typed

    # The tools: their docstrings are what the model reads

    async def read_text_file(self, path: str, line: int | None = None, limit: int | None = None) -> str:
        """Read a text file as the user's editor has it, unsaved changes included.

        `line` is the first line to read, counted from 1. `limit` is the number of lines.
        """
        session, place = await self._at(path)
        return (await self._ask(v1.ReadTextFileRequest(session, place, line, limit))).content

    async def write_text_file(self, path: str, content: str) -> str:
        """Write a text file; a file that is there is replaced as a whole."""
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
        session = await asyncio.shield(self._session)
        return session.id, str(session.cwd / path)

    async def _ask(self, request: Request[ResultT]) -> ResultT:
        """Call the handler of a service; what it refuses, the tool says."""
        from mcp.server.mcpserver.exceptions import ToolError

        _, handler = self._handlers.typed[request.__method__, True]
        try:
            answer: Any = handler(request)
            return cast("ResultT", await answer if inspect.isawaitable(answer) else answer)
        except RequestError as error:
            raise ToolError(error.message) from None
