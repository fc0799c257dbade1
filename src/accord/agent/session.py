"""A session as its agent sees it.

Every update goes through `Session.send`, whoever made it: it is kept in the store, then sent, so that nothing is seen
that is not kept. What is sent before the client knows the session waits for the answer that tells it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.agent.asks import Asks
from accord.agent.commands import Commands
from accord.agent.config import Config, Modes
from accord.agent.content import text_of
from accord.agent.mcp import SessionServers
from accord.agent.paths import with_absolute_paths
from accord.agent.permission import PermissionMemory
from accord.agent.prompt_queue import PromptQueue
from accord.agent.record import Record, title_of
from accord.agent.remote_client import RemoteClient
from accord.capabilities import updates_that_need
from accord.errors import StoreError
from accord.schema import v1
from accord.schema.base import Json
from accord.services.local import HelpedPeer
from accord.services.roots import Roots
from accord.state import SessionState, ToolCallState

if TYPE_CHECKING:
    from accord.agent.connection import AgentConnection

log = logging.getLogger("accord")


@functools.cache
def looked_at() -> frozenset[type[Any]]:
    """Updates that cannot simply be sent."""
    return frozenset((v1.ToolCall, v1.ToolCallProgress, *updates_that_need()))


class Session:
    """One conversation: its id and folders, what it offers to choose from, and what it tells the client."""

    def __init__(
        self,
        service: AgentConnection,
        session_id: v1.SessionId,
        folders: Sequence[Path],
        record: Record,
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
        self.record = record
        """Its place in the store."""
        self.state: Any = service.agent.restored_state(record)
        """Whatever you want to keep for this session: while it is open, or with `Agent(state=...)` in the store."""
        self.service = service
        local = service.agent.local
        self.asks: Asks = service.peer if local is None else HelpedPeer(service.peer, local, self)
        """Who answers what is asked of the client."""
        self.client = RemoteClient(self, self.asks)
        """The client, between turns; in a turn, `turn.client` is given up with it."""
        self.config = Config(self)
        self.modes = Modes(self.config)
        self.commands = Commands(self, service.agent.commands)
        self.permissions = service.agent.permission_memory or PermissionMemory()
        """What the user said "always" to."""
        self.resources = AsyncExitStack()
        """Closed when the session is: `await session.resources.enter_async_context(...)`."""
        if local is not None:
            self.resources.push_async_callback(local.release, self)
        self.turns = PromptQueue(service.agent.second_prompt, service.agent.cancel_grace)
        self.is_open = False
        """Whether the client knows it, or is about to: what changes now is told."""
        self._peer = service.peer
        self._looked_at = looked_at()
        self._early: list[bytes] | None = []
        self._mcp: SessionServers | None = None
        self._tool_calls: dict[v1.ToolCallId, ToolCallState] = {}
        """Those that are not finished."""
        self._prompt_title: str | None = None
        """The title that the latest prompt gave."""

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self.service.agent.info.name

    @property
    def program(self) -> str:
        """The agent by the module of its code."""
        return self.service.agent.program

    @property
    def title(self) -> str | None:
        """What the session is about, as it is listed."""
        return self.record.title

    async def set_title(self, title: str | None) -> None:
        """Give the session a title, or take it away."""
        await self.send(v1.SessionInfoUpdate(title=title))

    @property
    def mcp(self) -> SessionServers:
        """The MCP servers that the client gave to this session.

        They are connected when something is first asked of them, or already by `session.mcp.start()`.
        """
        if self._mcp is None:
            self._mcp = SessionServers(self)
            self.resources.push_async_callback(self._mcp.close)
        return self._mcp

    def resolve(self, path: str | PathLike[str]) -> str:
        """This path as an absolute one; a relative path starts at `cwd`."""
        return str(self.cwd / path)

    async def history(self) -> SessionState:
        """Everything that was said and done in this session so far, also before it was loaded.

        It is read from the store each time, so that a long session takes no memory while nobody asks: ask once a turn,
        for the messages that a model is to see.
        """
        return await self.record.history()

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """A tool call that is not finished, as it stands."""
        return self._tool_calls.get(tool_call_id)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """A tool call as it is with what a request says of it."""
        return (self.tool_call(said.tool_call_id) or ToolCallState(said.tool_call_id)).updated(said)

    async def send(self, update: v1.SessionUpdate) -> None:
        """Tell the client something, in a turn or between two.

        Usually a shorter way is there: `turn.say`, `turn.plan`, `session.set_title` and the like.
        """
        if update.__class__ in self._looked_at:
            update = self._fit(update)
        frame = self.record.keep_now(update) or await self.record.keep(update)
        if self._early is not None:
            self._early.append(frame)
        elif self._peer.connection.tell(frame):
            await self._peer.breathe()

    def _fit(self, update: Any) -> Any:
        """This update as it may be sent."""
        needed = update.__needs__
        if needed is not None:
            self._peer.capabilities.require(needed, update.__class__.__name__)
            return update
        update = with_absolute_paths(update, self.cwd)
        known = self._tool_calls.pop(update.tool_call_id, None) or ToolCallState(update.tool_call_id)
        if not (call := known.updated(update)).is_finished:
            self._tool_calls[call.id] = call
        return update

    # Its life

    def open(self) -> None:
        """The answer that tells the client of this session is being made: it holds all settings as they are now."""
        self.config.restore(self.record.settings)
        self.is_open = True

    def known(self) -> None:
        """The client knows the session now: what it is told goes to it at once."""
        early, self._early = self._early or [], None
        for frame in early:
            self._peer.connection.tell(frame)

    async def announce(self) -> None:
        """The answer is on its way. What comes now, comes behind it."""
        self.known()
        if self.commands:
            # slash-commands, Advertising commands: once the session exists.
            await self.send(self.commands.update())

    async def tell_usage(self) -> None:
        """The client takes the session up without its past: how full the context is, it cannot know otherwise."""
        # rfd-session-usage, Frequently asked questions. A replay has it among the rest.
        frame = await self.record.usage()
        if frame is None:
            return
        if self._early is not None:
            self._early.append(frame)
        else:
            self._peer.connection.tell(frame)

    async def begin_turn(self, prompt: Sequence[v1.ContentBlock]) -> None:
        """The user says something. The first that is no command is the title, in a store that the author chose."""
        wants_title = self.title is None and self.service.agent.titles_sessions and not self.commands.called_by(prompt)
        self._prompt_title = title_of(text_of(prompt)) if wants_title else None
        frame = await self.record.keep_prompt(prompt, self._prompt_title)
        if frame is not None and self._peer.connection.tell(frame):
            await self._peer.breathe()
        if self._mcp is not None:
            await self._mcp.tell_failures()

    async def forget_turn(self) -> None:
        """The turn was refused: nothing of it is part of the conversation, and it gives no title."""
        # schema, StopReason: the prompt and what came behind it are not in the next prompt.
        await self.record.forget_prompt()
        self._tool_calls.clear()
        if self._prompt_title is not None and self.title == self._prompt_title:
            await self.set_title(None)

    async def save(self) -> None:
        """Keep `state` as it is now. It happens by itself at the end of a turn, and when the session is closed."""
        if self.service.agent.state_type is not None:
            await self.record.keep_state(self.state)

    async def close(self) -> None:
        """Cancel what runs, and free what the session holds."""
        self.is_open = False
        await self.turns.end()
        try:
            await self.save()
        except StoreError as error:
            log.info("the state of session %s was not kept: %s", self.id, error)
        try:
            await self.resources.aclose()
        except Exception:
            log.exception("closing what the session %s held failed", self.id)
        self.record.release()

    def __repr__(self) -> str:
        return f"Session({self.id!r}, cwd={str(self.cwd)!r})"
