"""All MCP servers of a session, connected at the same time and used as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from accord.errors import McpServerError
from accord.mcp.catalog import McpMessage, McpPrompt, McpResource, McpResult, McpTool
from accord.mcp.mcp_server import Failed, McpServer, ToolProgress
from accord.mcp.surroundings import Surroundings
from accord.schema import v1
from accord.schema.base import Json, Unknown

T = TypeVar("T")

DEADLINE = 30.0
"""Seconds that a server has to start and to answer; some are downloaded first."""


class McpServers:
    """The tools, resources and prompts of a session's MCP servers, and ways to use them.

    A server that cannot be reached is left out, and `on_failure` is called with its error once. A server that dies is
    restarted when it is needed next.
    """

    def __init__(
        self,
        servers: Iterable[v1.McpServer | Unknown],
        surroundings: Surroundings,
        *,
        deadline: float = DEADLINE,
        on_failure: Failed | None = None,
    ) -> None:
        self._servers = [
            McpServer(server, surroundings, deadline=deadline, on_failure=on_failure or _quietly) for server in servers
        ]

    def __len__(self) -> int:
        return len(self._servers)

    # Life

    def start(self) -> None:
        """Begin to connect all servers in the background; otherwise they are connected when first needed."""
        for server in self._servers:
            server.start()

    async def close(self) -> None:
        """Close all connections, and end the servers' processes."""
        await asyncio.gather(*(server.close() for server in self._servers))

    # What they offer

    async def tools(self) -> list[McpTool]:
        """The tools of all servers now."""
        return await self._of_all(McpServer.tools)

    async def resources(self) -> list[McpResource]:
        """The resources of all servers now."""
        return await self._of_all(McpServer.resources)

    async def prompts(self) -> list[McpPrompt]:
        """The prompts of all servers now."""
        return await self._of_all(McpServer.prompts)

    async def failures(self) -> list[McpServerError]:
        """The errors of servers that cannot be reached; waits for those that are still connecting."""
        await self._of_all(McpServer.tools)
        return [server.failure for server in self._servers if server.failure is not None]

    async def tool(self, name: str) -> McpTool:
        """The tool of this name: `server/tool`, or `tool` if only one server has it; raises McpServerError."""
        tools = await self.tools()
        found = [tool for tool in tools if name == tool.qualified_name] or [tool for tool in tools if name == tool.name]
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(tool.qualified_name for tool in found)
            raise McpServerError(found[0].server, f"several servers have a tool {name!r}; name one of {several}")
        missing = [str(server.failure) for server in self._servers if server.failure is not None]
        raise McpServerError(name.partition("/")[0], "; ".join([f"there is no tool {name}", *missing]))

    # Using it

    async def run(
        self,
        tool: McpTool,
        arguments: dict[str, Json] | None = None,
        *,
        tool_call_id: v1.ToolCallId | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        on_progress: ToolProgress | None = None,
    ) -> McpResult:
        """Call a tool; questions of its server to the user meanwhile belong to the tool call `tool_call_id`.

        `timeout` is in seconds. `on_progress` is called with the progress, its total or None, and a message or None,
        each time the server reports it.
        """
        return await self._server(tool.server).call(
            tool.name, arguments or {}, tool_call_id=tool_call_id, timeout=timeout, on_progress=on_progress
        )

    async def read(self, resource: McpResource) -> list[v1.EmbeddedResource]:
        """Read the contents of a resource."""
        return await self._server(resource.server).read(resource.uri)

    async def prompt(self, prompt: McpPrompt, arguments: dict[str, str] | None = None) -> list[McpMessage]:
        """Have a prompt filled in by its server."""
        return await self._server(prompt.server).prompt(prompt.name, arguments or {})

    def _server(self, name: str) -> McpServer:
        for server in self._servers:
            if server.name == name:
                return server
        raise McpServerError(name, "this session has no server of that name")

    async def _of_all(self, of_one: Callable[[McpServer], Awaitable[list[T]]]) -> list[T]:
        lists = await asyncio.gather(*(_or_nothing(of_one(server)) for server in self._servers))
        return [item for items in lists for item in items]


async def _or_nothing(asked: Awaitable[list[T]]) -> list[T]:
    try:
        return await asked
    except McpServerError:
        return []


async def _quietly(_: McpServerError) -> None:
    """Do nothing; `failures` has the error."""
