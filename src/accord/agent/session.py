"""A session as its agent sees it.

Every update goes through `Session.send`, whoever made it: it is folded into `history`, then sent. What is sent before
the client knows the session is kept for it until the answer that tells it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.agent.commands import Commands
from accord.agent.permission import PermissionMemory
from accord.agent.remote_client import RemoteClient
from accord.agent.settings import Config, Modes
from accord.agent.turns import Turns
from accord.capabilities import UPDATES_NEED
from accord.host.roots import Roots
from accord.schema import v1
from accord.schema.base import Json
from accord.state import SessionState, ToolCallState

if TYPE_CHECKING:
    from accord.agent.service import Service

log = logging.getLogger("accord")


class Session:
    """One conversation: its id and folders, what it offers to choose from, and what it tells the client."""

    def __init__(
        self,
        service: Service,
        session_id: v1.SessionId,
        folders: Sequence[Path],
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        meta: dict[str, Json] | None = None,
    ) -> None:
        self.id = session_id
        self.cwd = folders[0]
        """The folder that it works in, and the base of relative paths."""
        self.roots = Roots(folders)
        """Where its files and commands should stay: `cwd` and the additional directories."""
        self.mcp_servers = tuple(mcp_servers)
        """The MCP servers that the client gave to this session."""
        self.meta = meta or {}
        """The `_meta` of the request that opened it."""
        self.state: Any = None
        """Whatever you want to keep for this session."""
        self.history = SessionState()
        """What was said and done so far: messages, tool calls, plan and so on."""
        self.service = service
        self.client = RemoteClient(self, service.peer.request)
        """The client, between turns; in a turn, `turn.client` is given up with it."""
        self.config = Config(self)
        self.modes = Modes(self.config)
        self.commands = Commands(self, service.agent.commands)
        self.permissions = service.agent.permission_memory or PermissionMemory()
        """What the user said "always" to."""
        self.resources = AsyncExitStack()
        """Closed when the session is: `await session.resources.enter_async_context(...)`."""
        self.turns = Turns(service.agent.second_prompt, service.agent.cancel_grace)
        self.is_open = False
        """Whether the client knows it, or is about to: what changes now is told."""
        self._peer = service.peer
        self._early: list[v1.SessionUpdate] | None = []

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self.service.agent.info.name

    @property
    def title(self) -> str | None:
        """What the session is about, as it is listed."""
        return self.history.title

    async def set_title(self, title: str | None) -> None:
        """Give the session a title, or take it away."""
        await self.send(v1.SessionInfoUpdate(title=title))

    def resolve(self, path: str | PathLike[str]) -> str:
        """This path as an absolute one; a relative path starts at `cwd`."""
        return str(self.cwd / path)

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        return self.history.tool_calls.get(tool_call_id)

    async def send(self, update: v1.SessionUpdate) -> None:
        """Tell the client something, in a turn or between two.

        Usually a shorter way is there: `turn.say`, `turn.plan`, `session.set_title` and the like.
        """
        if update.__class__ in UPDATES_NEED:
            self._peer.capabilities.require(UPDATES_NEED[update.__class__], update.__class__.__name__)
        self.history.add(update)
        if self._early is not None:
            self._early.append(update)
        elif self._peer.tell(v1.SessionNotification(self.id, update), force=True):
            await self._peer.breathe()

    # Its life

    def open(self) -> None:
        """The answer that tells the client of this session is being made: it holds all settings as they are now."""
        self.history.set_modes(self.modes.state())
        self.history.set_config(self.config.options())
        self.is_open = True

    async def announce(self) -> None:
        """That answer is on its way. What comes now, comes behind it."""
        early, self._early = self._early or [], None
        for update in early:
            self._peer.tell(v1.SessionNotification(self.id, update), force=True)
        if self.commands:
            # slash-commands, Advertising commands: once the session exists.
            await self.send(self.commands.update())

    async def close(self) -> None:
        """Cancel what runs, and free what the session holds."""
        self.is_open = False
        await self.turns.end()
        try:
            await self.resources.aclose()
        except Exception:
            log.exception("closing what the session %s held failed", self.id)

    def __repr__(self) -> str:
        return f"Session({self.id!r}, cwd={str(self.cwd)!r})"
