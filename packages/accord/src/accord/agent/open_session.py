"""`OpenSession`: a session while it is open on a connection, from the answer that opens it to its close.

The author holds its face, the `Session`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from accord._internal.tasks import Tasks
from accord.agent.activity import SessionActivity
from accord.agent.background import BackgroundTasks
from accord.agent.cancellations import Cancellations
from accord.agent.commands import Command, called_by, offered
from accord.agent.config_options import ConfigOptions
from accord.agent.connected_client import ConnectedClient, SessionClient
from accord.agent.content import text_of
from accord.agent.permission import PermissionMemory
from accord.agent.plans import SessionPlans
from accord.agent.prompt_queue import PromptQueue, SecondPrompt
from accord.agent.providers import Current
from accord.agent.record import Record, title_of
from accord.agent.session import Session, SessionParts
from accord.agent.system_prompt import Mode, SystemPrompt
from accord.agent.updates import SessionUpdates
from accord.errors import StoreError
from accord.project.roots import Roots
from accord.schema import v1
from accord.schema.base import Json
from accord.services.service import ServedSession

if TYPE_CHECKING:
    from accord.agent.mcp import SessionServers
    from accord.schema import v2

log = logging.getLogger("accord")


class SessionSurroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What every session of one connection needs of its agent and its connection."""

    client: ConnectedClient
    errands: Tasks
    """Work that no request waits for, such as releasing a terminal."""
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
    system_prompts: Sequence[Mode] = ()
    """What a client's system prompt may do to the agent's own."""
    work: Callable[[OpenSession], AbstractAsyncContextManager[Any]]
    """Begins work without a prompt."""
    endpoints: Callable[[], Current]
    """The endpoints of the agent's providers, as the client has set them by now."""


class InsertedPrompt(Protocol):
    """A prompt of version 2 on its way into the conversation."""

    prompt: Sequence[v2.ContentBlock]

    def kept(self, session: OpenSession, message_id: str, echo: bytes) -> None:
        """It is kept under this id; `echo` is the update that was kept."""


class OpenSession:
    """A session, as its connection sees it."""

    def __init__(
        self,
        surroundings: SessionSurroundings,
        session_id: v1.SessionId,
        folders: Sequence[Path],
        record: Record,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        meta: dict[str, Json] | None = None,
        system_prompt: SystemPrompt | None = None,
    ) -> None:
        client = surroundings.client
        self.id = session_id
        self.record = record
        """Its place in the store."""
        self.updates = SessionUpdates(record, client.peer, folders[0], client.dialect())
        self.activity = SessionActivity(self.updates)
        """What the session does, as the client is told of it."""
        self.cancels = Cancellations()
        """What the client may cancel by itself."""
        self.config = ConfigOptions(self.updates, self._config_changed)
        """What the user chooses from."""
        self.asked: SessionClient
        """What requests to the client need, in turns and between them."""
        self._client = client
        self._errands = surroundings.errands
        self._on_config = surroundings.on_config
        self.turns = PromptQueue(surroundings.second_prompt, surroundings.cancel_grace)
        self._background = BackgroundTasks(f"session {session_id}")
        self._grace = surroundings.cancel_grace
        self._works = 0
        self._is_announced = False
        """Whether the client was told of the commands that the session begins with."""
        self.face = Session(
            SessionParts(
                name=surroundings.name,
                program=surroundings.program,
                id=session_id,
                cwd=folders[0],
                asked_by=self._asked_by,
                updates=self.updates,
                record=record,
                roots=Roots(folders),
                mcp_servers=mcp_servers,
                meta=meta or {},
                system_prompt=system_prompt,
                permissions=surroundings.permissions or PermissionMemory(),
                commands=surroundings.commands,
                state_type=surroundings.state_type,
                config=self.config,
                mcp=self._servers,
                background=self._background,
                listed=self._listed,
                work=lambda: surroundings.work(self),
                endpoints=surroundings.endpoints,
            )
        )
        """The session, as its author sees it."""
        if client.local is not None:
            self.face.resources.push_async_callback(client.local.release, self.face)
        self.plans = SessionPlans(self.updates.client_shows)
        """The plans that it shows."""
        self.subagents: dict[v1.SessionId, Callable[[], None]] = {}
        """The subagents that the user may cancel, by their ids, and what cancels each."""
        self._mcp: SessionServers | None = None
        self._titles_itself = surroundings.titles_sessions
        self._prompt_title: str | None = None
        """The title that the latest prompt gave."""

    def _listed(self) -> Sequence[v2.BackgroundWork]:
        from accord.dialects.v2_dialect import background_work  # loads the types of version 2

        return tuple(background_work(it) for it in self.activity.background)

    def _servers(self) -> SessionServers:
        if self._mcp is None:
            from accord.agent.mcp import SessionServers  # few agents use MCP servers
            from accord.mcp.surroundings import Surroundings

            folders = [str(folder) for folder in self.face.roots.folders]
            surroundings = Surroundings(self._client.peer, self.id, folders, self._client.lines())
            self._mcp = SessionServers(self.face.mcp_servers, surroundings, self.updates, self.turns)
            self.face.resources.push_async_callback(self._mcp.close)
        return self._mcp

    def _asked_by(self, session: ServedSession) -> SessionClient:
        client, errands = self._client, self._errands
        self.asked = SessionClient(
            client, client.asked_for(session, self.updates.dialect), errands, session.id, session.cwd
        )
        return self.asked

    async def _config_changed(self, option_id: str, value: str | bool) -> None:
        await self._on_config(self.face, option_id, value)

    # Its life

    def open(self) -> None:
        """The answer that tells the client of this session is being made: it holds all settings as they are now."""
        self.config.restore(self.record.settings)
        self.updates.is_open = True

    def known(self) -> None:
        """The client knows the session now: its commands are sent, and from here on updates are sent at once."""
        self.updates.known()
        if not self._is_announced:
            self._is_announced = True
            if self.face.commands and not self.updates.dialect.commands_come_with_answers:
                # slash-commands, Advertising commands: once the session exists.
                self.updates.report(offered(self.face.commands))

    @property
    def works(self) -> bool:
        """Whether it works on a prompt or by itself, also in the background."""
        return self.turns.running or bool(self.activity.background)

    async def tell_usage(self) -> None:
        """Tell a client that resumes the session how full its context is."""
        # rfd-session-usage, Frequently asked questions. A client that loads the session finds it in the replay.
        frame = await self.record.usage()
        if frame is not None:
            self.updates.tell(frame)

    async def begin_turn(self, prompt: Sequence[v1.ContentBlock], insertion: InsertedPrompt | None = None) -> None:
        """The user says something. The first text without a command is the title, in a store that the author chose.

        In version 2, `insertion` has the prompt as it came, and learns that it is kept.
        """
        wants_title = self.record.title is None and self._titles_itself and not called_by(prompt, self.face.commands)
        self._prompt_title = title_of(text_of(prompt)) if wants_title else None
        kept = await self.record.keep_prompt(prompt if insertion is None else insertion.prompt, self._prompt_title)
        if insertion is not None:
            insertion.kept(self, self.record.id_for("user"), kept[0])
        if self._prompt_title is not None and self.updates.tell(self.record.frame(kept[-1])):
            await self.updates.breathe()
        self.activity.working()
        if self._mcp is not None:
            await self._mcp.tell_failures()

    def name_of_work(self) -> str:
        """A name for the next work without a prompt, for the ids of its messages and tool calls."""
        self._works += 1
        return f"w{self._works}-"

    async def forget_turn(self) -> None:
        """The turn was refused: nothing of it is part of the conversation, and it gives no title."""
        # schema, StopReason: the prompt and what followed it are not in the next prompt.
        await self.record.forget_prompt()
        self.updates.forget_tool_calls()
        if self._prompt_title is not None and self.record.title == self._prompt_title:
            await self.face.set_title(None)

    async def close(self) -> None:
        """Cancel running turns, save the state and free the session's resources."""
        self.updates.is_open = False
        await self._background.end(self._grace)
        await self.turns.end()
        self._client.interceptors.forget_session(self.id)
        try:
            await self.face.save()
        except StoreError as error:
            log.info("the state of session %s was not saved: %s", self.id, error)
        try:
            await self.face.resources.aclose()
        except Exception:
            log.exception("closing the resources of session %s failed", self.id)
        self.record.release()
