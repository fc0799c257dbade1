"""`session.mcp`: the MCP servers that the client gave to a session, with their tools as visible tool calls."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Protocol

from accord.agent.record import SessionUpdates
from accord.agent.session_activity import PromptQueue
from accord.agent.tool import Tool
from accord.errors import ConnectionClosed, McpServerError
from accord.mcp.catalog import McpResult, McpTool
from accord.mcp.mcp_server import McpServers
from accord.mcp.server_transports import Surroundings
from accord.schema import v1
from accord.schema.base import Json
from accord.session import updates


class MakesTools(Protocol):
    """A turn, as far as calling the tool of an MCP server needs it."""

    def tool(
        self, title: str, *, kind: v1.ToolKind | None = None, name: str | None = None, raw_input: Json = None
    ) -> Tool: ...


class SessionServers(McpServers):
    """The tools of a session's MCP servers, and ways to call them.

    >>> async def work(turn):
    ...     for tool in await turn.session.mcp.tools():
    ...         print(tool.qualified_name, tool.input_schema)
    ...     result = await turn.session.mcp.call(turn, "weather/forecast", {"city": "Ulm"}, ask=True)
    ...     await turn.say(result.text)

    The user is notified of a server that cannot be reached.
    """

    def __init__(
        self,
        servers: Sequence[v1.McpServer],
        surroundings: Surroundings,
        updates: SessionUpdates,
        turns: PromptQueue,
    ) -> None:
        super().__init__(servers, surroundings, on_failure=self._failed)
        self._updates = updates
        self._turns = turns
        self._untold: list[McpServerError] = []

    async def call(
        self,
        turn: MakesTools,
        tool: McpTool | str,
        arguments: dict[str, Json] | None = None,
        *,
        ask: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> McpResult:
        """Call a tool, as a tool call that the client sees; with `ask` only if the user allows it.

        A tool that fails reports it in its result. Raises McpServerError if the tool does not exist, or its server
        cannot be reached.
        """
        found = await self.tool(tool) if isinstance(tool, str) else tool
        async with turn.tool(found.title, kind=found.kind, name=found.qualified_name, raw_input=arguments) as reported:
            if ask and not await reported.ask(about=found.qualified_name):
                return McpResult([v1.TextContent("The user does not allow this.")], failed=True)

            async def tell(progress: float, total: float | None, message: str | None) -> None:
                await reported.retitle(f"{found.title}: {message or _amount(progress, total)}")

            try:
                result = await self.run(found, arguments, tool_call_id=reported.id, timeout=timeout, on_progress=tell)
            finally:
                if reported.title != found.title:
                    await reported.retitle(found.title)
            await reported.content(*result.content)
            if result.structured is not None:
                await reported.raw_output(result.structured)
            if result.failed:
                await reported.fail()
            return result

    async def tell_failures(self) -> None:
        """Notify the user now of earlier failures that could not be reported."""
        while self._untold:
            await self._tell(self._untold.pop(0))

    async def _failed(self, failure: McpServerError) -> None:
        if self._updates.client_shows("session.notices") or self._turns.running:
            with contextlib.suppress(ConnectionClosed):
                await self._tell(failure)
        else:
            self._untold.append(failure)

    async def _tell(self, failure: McpServerError) -> None:
        """Notify the user by a notice, or by a failed tool call if the client shows no notices."""
        if self._updates.client_shows("session.notices"):
            await self._updates.send(
                updates.Notice("warning", f"MCP server {failure.server} is missing", failure.problem)
            )
            return
        tool_call_id = updates.ToolCallId(f"mcp-{failure.server}")
        title = f"Connect to the MCP server {failure.server}"
        content: list[updates.ToolCallContent] = [updates.Content.of(failure.problem)]
        await self._updates.send(updates.ToolCallProgress(tool_call_id, title, "other", "failed", content))


def _amount(progress: float, total: float | None) -> str:
    return f"{progress / total:.0%}" if total else f"{progress:g}"
