"""A session as its agent sees it.

Every update goes through `Session.send`, whoever made it: it is recorded, then sent. What is sent before the client
knows the session is kept for it until `session/new` has been answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.agent.remote_client import RemoteClient
from accord.agent.roots import Roots
from accord.agent.turns import Turns
from accord.schema import v1
from accord.schema.base import Json
from accord.schema.v1.mcp import McpServer
from accord.schema.v1.updates import SessionUpdate

if TYPE_CHECKING:
    from accord.agent.service import Service


class Session:
    """One conversation: its id, its folders, and what it tells the client."""

    def __init__(
        self,
        service: Service,
        session_id: v1.SessionId,
        roots: Roots,
        *,
        mcp_servers: Sequence[McpServer] = (),
        meta: dict[str, Json] | None = None,
    ) -> None:
        self.id = session_id
        self.roots = roots
        self.mcp_servers = tuple(mcp_servers)
        """The MCP servers that the client gave to this session."""
        self.meta = meta or {}
        """The `_meta` of the request that opened it."""
        self.state: Any = None
        """Whatever you want to keep for this session."""
        self.service = service
        self.client = RemoteClient(service.client, self, service.peer.request)
        self.resources = AsyncExitStack()
        """Closed when the session is: `await session.resources.enter_async_context(...)`."""
        self.turns = Turns(service.agent.second_prompt, service.agent.cancel_grace)
        self._tell = service.peer.tell
        self._breathe = service.peer.breathe
        self._early: list[SessionUpdate] | None = []

    @property
    def cwd(self) -> Path:
        return self.roots.cwd

    def record(self, update: SessionUpdate) -> None:
        """Keep an update that need not be sent, for the client knows it: what its user said."""

    async def send(self, update: SessionUpdate) -> None:
        """Tell the client something, in a turn or between two.

        Usually a shorter way is there: `turn.say`, `turn.plan`, `session.set_title` and the like.
        """
        if self.post(update):
            await self._breathe()

    def post(self, update: SessionUpdate) -> bool:
        """`send` without waiting. True if the sender should wait before it sends more."""
        self.record(update)
        if self._early is not None:
            self._early.append(update)
            return False
        return self._tell(v1.SessionNotification(self.id, update))

    def announce(self) -> None:
        """The client knows the session now."""
        early, self._early = self._early or [], None
        for update in early:
            self._tell(v1.SessionNotification(self.id, update))

    async def close(self) -> None:
        """Cancel what runs, and free what the session holds."""
        self.turns.cancel()
        await self.resources.aclose()

    def __repr__(self) -> str:
        return f"Session({self.id!r}, cwd={str(self.cwd)!r})"
