"""All MCP servers of a session: connected at once, asked as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from accord.errors import McpServerError
from accord.mcp.catalog import McpPrompt, McpResource, McpTool
from accord.mcp.content import McpMessage, McpResult
from accord.mcp.server import Failed, McpServer, ToolProgress
from accord.mcp.surroundings import Surroundings
from accord.schema import v1
from accord.schema.base import Json, Unknown

T = TypeVar("T")

DEADLINE = 30.0
"""Seconds that a server may take to start and to answer; some are downloaded first."""


class McpServers:
    """What the MCP servers of a session offer, and ways to use it.

    A server that is not there is left out, and is told to `on_failure` once. One that dies is started anew when it is
    next asked.
    """

    def __init__(
        self,
        servers: Iterable[v1.McpServer | Unknown],
        surroundings: Surroundings,
        *,
        deadline: float = DEADLINE,
        on_failure: Failed | None = None,
    ) -> None:
        self._links = [
            McpServer(server, surroundings, deadline=deadline, on_failure=on_failure or _quietly) for server in servers
        ]

    def __len__(self) -> int:
        return len(self._links)

    # Life

    def start(self) -> None:
        """Begin to connect all of them, in the background; otherwise that happens when something is first asked."""
        for link in self._links:
            link.start()

    async def close(self) -> None:
        """Let all of them go."""
        await asyncio.gather(*(link.close() for link in self._links))

    # What they offer

    async def tools(self) -> list[McpTool]:
        """All tools there are now."""
        return await self._of_all(McpServer.tools)

    async def resources(self) -> list[McpResource]:
        """All resources there are now."""
        return await self._of_all(McpServer.resources)

    async def prompts(self) -> list[McpPrompt]:
        """All prompts there are now."""
        return await self._of_all(McpServer.prompts)

    async def failures(self) -> list[McpServerError]:
        """The servers that are not there, and why; waits for those that still connect."""
        await self._of_all(McpServer.tools)
        return [link.failure for link in self._links if link.failure is not None]

    async def tool(self, name: str) -> McpTool:
        """The tool of this name: `server/tool`, or `tool` where only one server has it."""
        tools = await self.tools()
        found = [tool for tool in tools if name == tool.qualified_name] or [tool for tool in tools if name == tool.name]
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(tool.qualified_name for tool in found)
            raise McpServerError(found[0].server, f"several servers have a tool {name}: {several}")
        missing = [str(link.failure) for link in self._links if link.failure is not None]
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
        """Call a tool; what its server asks the user meanwhile belongs to the tool call of this id.

        `on_progress` hears how far it is, if the server says that: how much, of how much (or None), and in words.
        """
        return await self._link(tool.server).call(
            tool.name, arguments or {}, tool_call_id=tool_call_id, timeout=timeout, on_progress=on_progress
        )

    async def read(self, resource: McpResource) -> list[v1.EmbeddedResource]:
        """What a resource holds."""
        return await self._link(resource.server).read(resource.uri)

    async def prompt(self, prompt: McpPrompt, arguments: dict[str, str] | None = None) -> list[McpMessage]:
        """A prompt, filled in by its server."""
        return await self._link(prompt.server).prompt(prompt.name, arguments or {})

    def _link(self, name: str) -> McpServer:
        for link in self._links:
            if link.name == name:
                return link
        raise McpServerError(name, "there is no such server in this session")

    async def _of_all(self, of_one: Callable[[McpServer], Awaitable[list[T]]]) -> list[T]:
        lists = await asyncio.gather(*(_or_nothing(of_one(link)) for link in self._links))
        return [item for items in lists for item in items]


async def _or_nothing(asked: Awaitable[list[T]]) -> list[T]:
    try:
        return await asked
    except McpServerError:
        return []


async def _quietly(_: McpServerError) -> None:
    """Whoever wants to know asks for `failures`."""
