"""`ToolServer`: an MCP server in this program, which a client or a proxy lends to an agent."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, cast

from accord.installation import mcp_is_installed, needs_extra
from accord.mistakes import check_text, wrong_type
from accord.schema.v1_and_v2 import McpServerAcp, McpServerAcpId

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.lowlevel.server import NotificationOptions
    from mcp.server.mcpserver import MCPServer
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage


class ToolServer:
    """An MCP server in this program; `accord.tools` makes it.

    It may be lent to several sessions and to several agents. Each connection of an agent starts its own run.
    """

    def __init__(self, server: Server[Any], name: str, *, is_bridged: bool = True) -> None:
        self.name = name
        """The name by which agents know it."""
        self.is_bridged = is_bridged
        """Whether an agent that supports no servers over ACP may reach it through a process that the agent starts."""
        self._server = server

    def __repr__(self) -> str:
        return f"ToolServer({self.name!r})"

    def declared(self) -> McpServerAcp:
        """Return a description of it for an agent, with an id that no other description has."""
        return McpServerAcp(self.name, McpServerAcpId(f"{self.name}:{uuid.uuid4().hex}"))

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Server[Any]]:
        """The official package's server, for one run."""
        yield self._server

    def notifications(self, server: Server[Any]) -> NotificationOptions | None:  # noqa: ARG002
        """Return the server's notifications that agents get without a subscription, in older revisions of MCP."""
        return None

    async def run(self, read: ReadStream[SessionMessage | Exception], write: WriteStream[SessionMessage]) -> None:
        """Serve one connection, until its side that reads is closed."""
        async with self.opened() as server:
            await server.run(read, write, server.create_initialization_options(self.notifications(server)))


def tools(
    *offered: Server[Any] | MCPServer | Callable[..., Any], name: str | None = None, bridge: bool = True
) -> ToolServer:
    """Return an MCP server of this program, to be lent to a session: functions as its tools, or a server of your own.

        def search(query: str) -> list[str]:
            "Search the notes."

        session = await remote.new_session(project, mcp_servers=[accord.tools(search, name="notes")])

    A function's name, docstring and annotations become the tool's name, description and schema. It may be `async`.
    `name` is the name of the server, by default `tools`, or your server's name. An agent that supports no servers over
    ACP starts a small program that connects here, unless `bridge` is False. Needs the extra `mcp`.
    """
    if name is not None:
        check_text("tools(name)", name)
    if not offered:
        raise TypeError("tools() needs at least one function, or an MCP server")
    if not mcp_is_installed():
        raise ImportError(needs_extra("mcp", "offering tools"))
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    if len(offered) == 1 and isinstance(offered[0], Server | MCPServer):
        given = cast("Server[Any] | MCPServer", offered[0])
        return ToolServer(_inside(given), name or given.name, is_bridged=bridge)
    with _root_logger_as_it_is():
        server = MCPServer(name or "tools")
    for function in offered:
        if isinstance(function, Server | MCPServer) or not callable(function):
            raise wrong_type("tools()", "functions, or one MCP server", cast("object", function))
        server.add_tool(function)
    return ToolServer(_inside(server), server.name, is_bridged=bridge)


@contextmanager
def _root_logger_as_it_is() -> Generator[None]:
    """Prevent the package's `logging.basicConfig` from changing the root logger, which belongs to the program."""
    root, nothing = logging.getLogger(), logging.NullHandler()
    root.addHandler(nothing)  # basicConfig leaves a logger with handlers alone
    try:
        yield
    finally:
        root.removeHandler(nothing)


def _inside(server: Server[Any] | MCPServer) -> Server[Any]:
    # The package's own client reaches it in the same way; MCPServer can run only over transports of the package.
    inside: Any = getattr(server, "_lowlevel_server", server)
    return cast("Server[Any]", inside)
