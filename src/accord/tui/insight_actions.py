"""What the commands do that show what goes on: MCP servers and the inspector."""

from __future__ import annotations

import asyncio
import shlex
import tempfile
import webbrowser
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

from accord.masking import mask_urls
from accord.printable import label, printable
from accord.schema import v1
from accord.trace import TraceFile
from accord.tui.connection import AgentConnection
from accord.tui.shell import ChatShell


class InsightActions(ChatShell):
    """The actions that show what goes on."""

    def action_mcp(self) -> None:
        """Show the MCP servers of the session, and whether the agent got them."""
        conversation = self.in_front
        remote = conversation.connection.remote
        lines: list[str] = []
        for server in self.options.servers:
            kind, where = _server(server)
            is_sent = remote is None or remote.peer.capabilities.allow(server)
            state = "given to the agent" if is_sent else f"not given: the agent does not support {kind}"
            name = label(str(getattr(server, "name", "")), 60)
            lines.append(f"{name}  {kind}  {label(where, 200)}\n  {state}")
        text = "\n".join(lines) or "none; start the chat with --mcp FILE to give the agent servers"
        conversation.note("MCP servers", printable(text), "accent")

    async def action_inspect(self) -> None:
        """Open the inspector on what this agent and the chat say to each other."""
        conversation = self.in_front
        connection = conversation.connection
        url = self._inspected.get(connection)
        if url is None:
            ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self.work_on(self._inspect(connection, ready))
            url = self._inspected[connection] = await ready
        conversation.note("The inspector", f"{url}\nIt follows the session until the chat ends.", "accent")
        await asyncio.to_thread(webbrowser.open, url)

    async def _inspect(self, connection: AgentConnection, ready: asyncio.Future[str]) -> None:
        """Run the inspector until the chat ends, on a trace of this connection."""
        from accord.inspector.library import Library
        from accord.inspector.serving import inspecting

        async with AsyncExitStack() as stack:
            try:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="accord-chat-")))
                path = folder / f"{Path(connection.choice.name).name or 'agent'}.jsonl"
                trace = TraceFile(path, role="client", peer=connection.name)
                stack.callback(trace.close)
                for event in list(connection.frames):
                    trace(event)
                connection.watchers.append(trace)
                stack.callback(connection.watchers.remove, trace)
                inspector = await stack.enter_async_context(inspecting(Library([path])))
            except BaseException as error:
                if not ready.done():
                    ready.set_exception(error)
                    return
                raise
            ready.set_result(inspector.url)
            await asyncio.Event().wait()


def _server(server: v1.McpServer) -> tuple[str, str]:
    """How a server is reached, and where."""
    if isinstance(server, v1.McpServerStdio):
        return "stdio", shlex.join([server.command, *server.args])
    kind = type(server).__name__.removeprefix("McpServer").lower()
    return kind, mask_urls(str(getattr(cast("Any", server), "url", "")))
