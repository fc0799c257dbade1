"""`Session`: one conversation, as the author of an agent sees it.

It is the face of an `OpenSession`, which has what the connection does with a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from accord.agent.background import BackgroundTasks
from accord.agent.commands import Command, Commands
from accord.agent.compaction import RunningCompaction
from accord.agent.config import Config, Models, Modes
from accord.agent.config_options import ConfigOptions
from accord.agent.connected_client import SessionClient
from accord.agent.permission import PermissionMemory
from accord.agent.providers import Current, endpoint_of
from accord.agent.record import Record
from accord.agent.remote_client import RemoteClient
from accord.agent.system_prompt import SystemPrompt
from accord.agent.updates import SessionUpdates
from accord.arguments import check_meta, check_text, check_update, wrong_type
from accord.endpoints import Endpoint
from accord.engine.handlers import MessageT
from accord.engine.interceptors import Registration
from accord.project.roots import Roots
from accord.schema import v1
from accord.schema.base import Json
from accord.schema.sendable import check_sendable
from accord.services.service import ServedSession
from accord.session import SessionState, ToolCallState

if TYPE_CHECKING:
    # Only type checkers need the default; `typing` has it from 3.13 on, and typing_extensions is no dependency.
    from typing_extensions import TypeVar as TypeVarWithDefault

    from accord.agent.mcp import SessionServers
    from accord.agent.turn import Turn
    from accord.schema import v2

    StateT = TypeVarWithDefault("StateT", default=Any)
else:
    StateT = TypeVar("StateT")


T = TypeVar("T")


class SessionParts(msgspec.Struct, frozen=True, kw_only=True):
    """What a `Session` is made of."""

    name: str
    """The agent's name."""
    program: str
    """The module of the agent's code, and the agent's name: remembered answers are kept under it."""
    id: v1.SessionId
    cwd: Path
    asked_by: Callable[[ServedSession], SessionClient]
    """Makes what requests to the client need; services of this machine know a session by its face."""
    updates: SessionUpdates
    record: Record
    roots: Roots
    mcp_servers: Sequence[v1.McpServer]
    meta: dict[str, Json]
    system_prompt: SystemPrompt | None
    permissions: PermissionMemory
    commands: Sequence[Command]
    state_type: type[Any] | None
    config: ConfigOptions
    mcp: Callable[[], SessionServers]
    """The session's MCP servers, which are connected when they are first used."""
    background: BackgroundTasks
    """What runs beside the turns."""
    listed: Callable[[], Sequence[v2.BackgroundWork]]
    """What the client is told to run beside the turns."""
    work: Callable[[], AbstractAsyncContextManager[Any]]
    """Begins work without a prompt."""
    endpoints: Callable[[], Current]
    """The endpoints of the agent's providers, as the client has set them by now."""


class Session(Generic[StateT]):
    """One conversation: its id and folders, what it offers to choose from, and what it tells the client.

    Its type argument is the type of `state`: `Session[Notes]` for an `Agent(state=Notes)`.
    """

    def __init__(self, parts: SessionParts) -> None:
        self.id = parts.id
        """The session's id, which the client knows as well."""
        self.agent = parts.name
        """The agent's name."""
        self.program = parts.program
        """The module of the agent's code, and the agent's name: remembered answers are kept under it."""
        self.cwd = parts.cwd
        """The folder that it works in, and the base of relative paths."""
        self.roots = parts.roots
        """Where its files and commands should stay: `cwd` and the additional directories."""
        self.mcp_servers = tuple(parts.mcp_servers)
        """The MCP servers that the client gave to this session."""
        self.meta = parts.meta
        """The `_meta` of the request that opened it."""
        self.answer_meta: dict[str, Json] = {}
        """What the `_meta` of the answer that opens it will hold: fill it in `@agent.on_session`."""
        self.system_prompt = parts.system_prompt
        """What the client wants added to your system prompt, or in its place; None if it said nothing this time."""
        self.state: StateT = _state_of(parts.state_type, parts.record)
        """Whatever you want to keep for this session: while it is open, or with `Agent(state=...)` in the store."""
        asked = self._asked = parts.asked_by(self)
        self.client = RemoteClient(asked, asked.asks)
        """The client, between turns; what `turn.client` is asked ends with its turn."""
        self.config = Config(parts.config)
        """The options that the user chooses from."""
        self.modes = Modes(self.config, parts.config)
        """The ways of working that the user chooses from."""
        self.models = Models(self.config, parts.config)
        """The models that the user chooses from."""
        self.commands = Commands(parts.updates, parts.commands)
        """The slash commands."""
        self.permissions = parts.permissions
        """What the user said "always" to."""
        self._resources: AsyncExitStack | None = None  # an empty one takes a KiB of each session
        self._parts = parts
        self._updates = parts.updates
        self._record = parts.record
        self._compactions = 0

    @property
    def resources(self) -> AsyncExitStack:
        """Closed when the session is: `await session.resources.enter_async_context(...)`."""
        if self._resources is None:
            self._resources = AsyncExitStack()
        return self._resources

    @property
    def title(self) -> str | None:
        """What the session is about, as it is listed."""
        return self._record.title

    async def set_title(self, title: str | None) -> None:
        """Give the session a title, or take it away."""
        if title is not None:
            check_text("session.set_title()", title)
        await self.send(v1.SessionInfoUpdate(title=title))

    @property
    def info_meta(self) -> dict[str, Json] | None:
        """The `_meta` that the session has in lists."""
        return self._record.info

    async def set_info_meta(self, meta: dict[str, Json] | None) -> None:
        """Give the session this `_meta` in lists, or take it away, and tell the client."""
        check_meta("session.set_info_meta()", meta)
        if meta is not None and self._record.version == 2:
            meta = {**dict.fromkeys(self.info_meta or {}), **meta}  # version 2 patches it by its keys
        await self.send(v1.SessionInfoUpdate(meta=meta))

    @property
    def mcp(self) -> SessionServers:
        """The MCP servers that the client gave to this session.

        They are connected when something is first asked of them, or already by `session.mcp.start()`.
        """
        return self._parts.mcp()

    def provider(self, provider_id: str) -> Endpoint | None:
        """Where the models of this provider are reached now; None while the client has it disabled.

        A turn keeps the endpoint that it began with: see `turn.provider`.
        """
        return endpoint_of(self._parts.endpoints(), provider_id, "session.provider()")

    def resolve(self, path: str | PathLike[str]) -> str:
        """This path as an absolute one; a relative path starts at `cwd`."""
        return str(self.cwd / path)

    async def history(self) -> SessionState:
        """Everything that was said and done in this session so far, also before it was loaded.

        It is read from the store each time, so a long session takes no memory between two calls: call it once a turn,
        for the messages that a model is to see.
        """
        return await self._record.history()

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """A tool call that is not finished, as it stands."""
        return self._updates.tool_call(tool_call_id)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """A tool call as it stands with what a permission request says of it; for services, see `ServedSession`."""
        return self._updates.fold(said)

    async def send(self, update: v1.SessionUpdate) -> None:
        """Tell the client something, in a turn or between two.

        Usually a shorter way is there: `turn.say`, `turn.plan`, `session.set_title` and the like.
        """
        check_update("session.send()", update)
        await self._updates.send_given(update)

    async def notice(
        self, title: str, description: str | None = None, *, severity: str = "info", fallback: bool = False
    ) -> bool:
        """Tell the user something beside the conversation, in a turn or between two.

        False, and nothing sent, if the client shows no notices; with `fallback` the agent then says it as a message.
        """
        notice = v1.Notice(severity, title, description)
        check_sendable("session.notice()", notice)
        if self._updates.client_shows("session.notices"):
            await self._updates.send(notice)
            return True
        if fallback:
            await self._updates.send(
                v1.AgentMessageChunk.of(title if description is None else f"{title}: {description}")
            )
        return fallback

    def compaction(self) -> RunningCompaction:
        """A compaction of the agent's context, as a context manager, in a turn or between two.

        >>> async def shorten(session):
        ...     async with session.compaction() as compaction:
        ...         await compaction.summary("So far: ...")

        The end of its block completes it, an error fails it, a cancel cancels it. A client that shows no compactions is
        told nothing. What the user sees of the conversation stays as it was.
        """
        self._compactions += 1
        compaction_id = v1.CompactionId(self._record.id_for(f"c{self._compactions}"))
        return RunningCompaction(self._updates, compaction_id)

    def on(self, message: type[MessageT]) -> Registration[MessageT]:
        """Handle this message of the client in this session only, until `remove` is called or the session is closed.

        >>> def listen(session, message):
        ...     on_message = session.on(message)
        ...     on_message(print)
        ...     return on_message.remove

        It goes before the handler of all sessions, ours or yours.
        """
        return Registration(partial(self._asked.client.on_in_session, self.id, message))

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do this beside the session's turns, until it is done or the session is closed.

        A tool call of its own needs `turn.tool(..., background=True)`; to speak, begin work with `session.work`.
        """
        if not asyncio.iscoroutine(work):
            raise wrong_type("session.start()", "a coroutine, such as watch(session)", work)
        return self._parts.background.start(work)

    def work(self) -> AbstractAsyncContextManager[Turn[StateT]]:
        """Begin to work without a prompt: a context manager that gives a `Turn` whose prompt is empty.

        >>> async def report(session):
        ...     async with session.work() as turn:
        ...         await turn.say("The tests have passed.")

        It waits until no turn runs, and prompts that come meanwhile wait for it. If the user cancels it, its block
        ends, and the code after it goes on.
        """
        return self._parts.work()

    @property
    def background(self) -> Sequence[v2.BackgroundWork]:
        """What runs beside the turns as the client sees it: tool calls with `background=True`, and their terminals.

        >>> def is_watching(session):
        ...     return bool(session.background)
        """
        return self._parts.listed()

    async def save(self) -> None:
        """Keep `state` as it is now. It happens by itself at the end of a turn, and when the session is closed."""
        if self._parts.state_type is not None:
            await self._record.keep_state(self.state)

    def __repr__(self) -> str:
        return f"Session({self.id!r}, cwd={str(self.cwd)!r})"


def _state_of(state_type: type[Any] | None, record: Record) -> Any:
    """What the author keeps for a session: as the store has it, or new."""
    if state_type is None:
        return None
    kept = record.state(state_type)
    return state_type() if kept is None else kept
