"""A session as its agent sees it."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from accord.agent.commands import Command, Commands
from accord.agent.config import Config, Modes
from accord.agent.connected_client import ConnectedClient, SessionClient
from accord.agent.content import text_of
from accord.agent.mcp import SessionServers
from accord.agent.permission import PermissionMemory
from accord.agent.prompt_queue import PromptQueue, SecondPrompt
from accord.agent.record import Record, title_of
from accord.agent.remote_client import RemoteClient
from accord.agent.updates import SessionUpdates
from accord.errors import StoreError
from accord.mcp.surroundings import Surroundings
from accord.schema import v1
from accord.schema.base import Json
from accord.services.roots import Roots
from accord.state import SessionState, ToolCallState
from accord.tasks import Tasks

log = logging.getLogger("accord")


class SessionSurroundings(msgspec.Struct, frozen=True):
    """What every session of one connection needs of its agent and its connection."""

    client: ConnectedClient
    errands: Tasks
    """Work that nobody waits for, such as releasing a terminal."""
    name: str
    """The agent's name."""
    program: str
    """The module of the agent's code, and the agent's name: remembered answers are kept under it."""
    on_config: Callable[[Session, str, str | bool], Awaitable[None]]
    """Called with the session, the option's id and its new value, when the user has chosen it."""
    second_prompt: SecondPrompt = "queue"
    cancel_grace: float = 5.0
    permissions: PermissionMemory | None = None
    """What the user said "always" to, where all sessions share it."""
    commands: Sequence[Command] = ()
    """The slash commands that a session begins with."""
    titles_sessions: bool = False
    """Whether the first prompt is the title of a session that has none."""
    state_type: type[Any] | None = None
    """The class of `session.state`, where the store keeps it."""


class Session:
    """One conversation: its id and folders, what it offers to choose from, and what it tells the client."""

    def __init__(
        self,
        surroundings: SessionSurroundings,
        session_id: v1.SessionId,
        folders: Sequence[Path],
        record: Record,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        meta: dict[str, Json] | None = None,
    ) -> None:
        client = surroundings.client
        self.id = session_id
        self.agent = surroundings.name
        """The agent's name."""
        self.program = surroundings.program
        """The module of the agent's code, and the agent's name: remembered answers are kept under it."""
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
        self.state: Any = _state_of(surroundings.state_type, record)
        """Whatever you want to keep for this session: while it is open, or with `Agent(state=...)` in the store."""
        self.updates = SessionUpdates(record, client.peer, self.cwd)
        self.asked = SessionClient(client, client.asked_for(self), surroundings.errands, session_id, self.cwd)
        """What requests to the client need, in turns and between them."""
        self.client = RemoteClient(self.asked, self.asked.asks)
        """The client, between turns; what `turn.client` is asked ends with its turn."""
        self.config = Config(self.updates, functools.partial(surroundings.on_config, self))
        self.modes = Modes(self.config)
        self.commands = Commands(self.updates, surroundings.commands)
        self.permissions = surroundings.permissions or PermissionMemory()
        """What the user said "always" to."""
        self.resources = AsyncExitStack()
        """Closed when the session is: `await session.resources.enter_async_context(...)`."""
        if client.local is not None:
            self.resources.push_async_callback(client.local.release, self)
        self.turns = PromptQueue(surroundings.second_prompt, surroundings.cancel_grace)
        self._peer = client.peer
        self._mcp: SessionServers | None = None
        self._titles_itself = surroundings.titles_sessions
        self._keeps_state = surroundings.state_type is not None
        self._prompt_title: str | None = None
        """The title that the latest prompt gave."""

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
            surroundings = Surroundings(self._peer, self.id, [str(folder) for folder in self.roots.folders])
            self._mcp = SessionServers(self.mcp_servers, surroundings, self.updates, self.turns)
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
        return self.updates.tool_call(tool_call_id)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """A tool call as it is with what a request says of it."""
        return self.updates.fold(said)

    async def send(self, update: v1.SessionUpdate) -> None:
        """Tell the client something, in a turn or between two.

        Usually a shorter way is there: `turn.say`, `turn.plan`, `session.set_title` and the like.
        """
        await self.updates.send(update)

    # Its life

    def open(self) -> None:
        """The answer that tells the client of this session is being made: it holds all settings as they are now."""
        self.config.restore(self.record.settings)
        self.updates.is_open = True

    def known(self) -> None:
        """The client knows the session now: what it is told goes to it at once."""
        self.updates.known()

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
        if frame is not None:
            self.updates.tell(frame)

    async def begin_turn(self, prompt: Sequence[v1.ContentBlock]) -> None:
        """The user says something. The first that is no command is the title, in a store that the author chose."""
        wants_title = self.title is None and self._titles_itself and not self.commands.called_by(prompt)
        self._prompt_title = title_of(text_of(prompt)) if wants_title else None
        frame = await self.record.keep_prompt(prompt, self._prompt_title)
        if frame is not None and self.updates.tell(frame):
            await self.updates.breathe()
        if self._mcp is not None:
            await self._mcp.tell_failures()

    async def forget_turn(self) -> None:
        """The turn was refused: nothing of it is part of the conversation, and it gives no title."""
        # schema, StopReason: the prompt and what came behind it are not in the next prompt.
        await self.record.forget_prompt()
        self.updates.forget_tool_calls()
        if self._prompt_title is not None and self.title == self._prompt_title:
            await self.set_title(None)

    async def save(self) -> None:
        """Keep `state` as it is now. It happens by itself at the end of a turn, and when the session is closed."""
        if self._keeps_state:
            await self.record.keep_state(self.state)

    async def close(self) -> None:
        """Cancel what runs, and free what the session holds."""
        self.updates.is_open = False
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


def _state_of(state_type: type[Any] | None, record: Record) -> Any:
    """What the author keeps for a session: as the store has it, or new."""
    if state_type is None:
        return None
    kept = record.state(state_type)
    return state_type() if kept is None else kept
