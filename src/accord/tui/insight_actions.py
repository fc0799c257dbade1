"""What the commands do that show what goes on: what was allowed always, MCP servers, and the inspector."""

from __future__ import annotations

import asyncio
import shlex
import tempfile
import webbrowser
from collections.abc import Hashable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

from accord.masking import mask_urls
from accord.printable import label, printable
from accord.schema import v1
from accord.services.permissions.remembered import RememberedAnswer
from accord.trace import TraceFile
from accord.tui.connection import AgentConnection
from accord.tui.pickers import Entry, Picker
from accord.tui.shell import ChatShell


class InsightActions(ChatShell):
    """The actions that show what goes on."""

    async def action_permissions(self) -> None:
        """Show what was allowed or rejected always, and revoke it."""
        conversation = self.in_front
        connection = conversation.connection
        session_id = "" if conversation.session is None else conversation.session.id
        entries: list[Entry] = []
        if connection.consent is not None:
            entries += [
                Entry(_allowance(kind), kind, "until the session ends", group="In this session")
                for kind in connection.consent.always(session_id)
            ]
        if connection.remembered is not None:
            entries += [
                Entry(
                    f"{'allow' if it.allowed else 'reject'} {it.kind}: {it.what}",
                    it,
                    f"{it.agent}  {it.folder}  {it.at[:10]}",
                    group="In later chats, too",
                )
                for it in connection.remembered
            ]
        if not entries:
            conversation.note(
                "Nothing was allowed always",
                'An "always" of yours is listed here. What an agent keeps by itself is not known here.',
                "accent",
            )
            return
        chosen = await self.ask_for(Picker("Permissions", entries, "enter: ask again from now on   esc: close"))
        if chosen is None:
            return
        if isinstance(chosen, RememberedAnswer):
            assert connection.remembered is not None
            await asyncio.to_thread(connection.remembered.forget, chosen)
            conversation.note(f"Forgotten: {chosen.what}", "", "good", "✓")
        elif connection.consent is not None:
            connection.consent.revoke(session_id, chosen)
            conversation.note(f"You are asked again: {_allowance(chosen)}", "", "good", "✓")

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


def _allowance(kind: Hashable) -> str:
    """What "always" covers in a session, in words."""
    match kind:
        case "read":
            return "read files of the session's folders"
        case "write":
            return "write files of the session's folders"
        case ("run", str(line), str(folder)):
            return f"run {line}" if folder in ("", ".") else f"run in {folder}: {line}"
        case _:
            return str(kind)


def _server(server: v1.McpServer) -> tuple[str, str]:
    """How a server is reached, and where."""
    if isinstance(server, v1.McpServerStdio):
        return "stdio", shlex.join([server.command, *server.args])
    kind = type(server).__name__.removeprefix("McpServer").lower()
    return kind, mask_urls(str(getattr(cast("Any", server), "url", "")))
