"""`AgentConnection`: one agent that the chat has started, its conversations, and its permissions.

The connection lives in its own task, from the start of the chat until the chat closes it. Partners wait for
`ready`. The agent's requests reach the conversation that they are about.

Errors of an agent are explained here: the failure, the agent's own text, and the remedy.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, cast

from accord import (
    AccordError,
    Budget,
    Client,
    ConnectionClosed,
    Elicitation,
    Extension,
    Files,
    FormQuestion,
    LinkQuestion,
    PeerError,
    PermissionPolicy,
    PermissionQuestion,
    RemoteAgent,
    RemoteSession,
    Restart,
    Restarted,
    ServedSession,
    Terminal,
    Terminals,
    TraceEvent,
    connect,
)
from accord.client.connect import Where
from accord.errors import AUTH_REQUIRED
from accord.extensions import DisplayTerminals, installed_extensions
from accord.installation import own_command
from accord.mistakes import ForgottenAwaits
from accord.redaction import mask_urls
from accord.services import AgentWrite, Guarded, Level, UsePermissions
from accord.session import ToolCallState
from accord_tools.registry.well_known import WELL_KNOWN
from accord_tools.tui.pickers import Entry
from accord_tools.tui.questions import FormAsked, LinkAsked, PermissionAsked, Question, ScopedAnswers

STDERR_LINES = 200
FRAMES, FRAME_BYTES = 500, 4 * 1024 * 1024
"""The latest frames that are kept for the wire pane: their number, and their total size in bytes."""


@dataclass(frozen=True)
class AgentChoice:
    """An agent that the user may start."""

    name: str
    """The user's name for it."""
    target: Callable[[Callable[[str], object]], Where]
    """Makes the target for `accord.connect`, given a function for the lines of its standard error."""
    where: str = ""
    """Its command or URL, for people."""
    program: str = ""
    """Its identity, whatever name it reports; the key for its sessions."""
    mode: str | None = None
    config: Mapping[str, str | bool] = field(default_factory=dict[str, str | bool])
    level: Level = "ask"
    """Its level without a question, unless the command line sets one."""
    is_demo: bool = False
    """Whether it is the demo, which no model answers."""


@dataclass(frozen=True)
class ConnectionOptions:
    """The connection options of every agent of this chat."""

    allow: Level | None = None
    """The level of all agents without a question, until the user changes it; None uses the settings."""
    policy: PermissionPolicy | None = None
    remembers: bool = False
    """Whether an "always" holds in later chats, too."""
    budget: Budget | None = None
    """The budget of each turn."""
    versions: tuple[int, ...] = (1,)
    start_within: float = 120.0


class Partner(Protocol):
    """A conversation, as its agent's connection sees it."""

    @property
    def session(self) -> RemoteSession | None:
        """Its session; None until it is open."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether the agent works in it."""
        ...

    async def ask(self, question: Question) -> Any:
        """Ask the user."""

    def add_terminal(self, terminal: Terminal) -> None:
        """Show a command that runs here for the agent."""

    def terminal_changed(self, terminal_id: str) -> None:
        """Note that a command has more output, or has ended."""

    def note(self, title: str, text: str = "", style: str = "dim", symbol: str = "•") -> None:
        """Show a note."""

    def tell(self) -> None:
        """Note that something has changed."""


class AgentConnection:
    """An agent that the chat has started."""

    def __init__(self, choice: AgentChoice, options: ConnectionOptions) -> None:
        self.choice = choice
        self.options = options
        self.conversations: list[Partner] = []
        self.remote: RemoteAgent | None = None
        self.error: AccordError | None = None
        """Why the agent could not be started, or has ended."""
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self.frames: deque[TraceEvent] = deque()
        """The latest messages on the wire."""
        self.watchers: list[Callable[[TraceEvent], object]] = []
        """Called with each message on the wire."""
        self.answers = ScopedAnswers(remembers=options.remembers)
        """The user's answers that apply to more than one question."""
        level, policy = options.allow or choice.level, options.policy
        self.consent = UsePermissions(
            self._ask, level=level, policy=policy, remembered=self.answers, on_refused=self._refused
        )
        self._forgotten_awaits = ForgottenAwaits(self._mistaken)
        self._frame_bytes = 0
        self.files = Files(on_change=self._written)
        self.on_news: Callable[[], object] = lambda: None
        """Called when the agent is ready, has failed, or has written to its standard error."""
        self._ready = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The agent's name, for people."""
        info = None if self.remote is None else self.remote.info
        return self.choice.name if info is None else info.title or info.name or self.choice.name

    def start(self) -> None:
        """Start the agent."""
        self._task = asyncio.create_task(self._run(), name=f"chat with {self.choice.name}")

    async def ready(self) -> RemoteAgent:
        """Wait until the agent has started; raises the error that prevented it."""
        await self._ready.wait()
        if self.remote is None:
            raise self.error or AccordError(f"{self.choice.name} has ended")
        return self.remote

    async def close(self) -> None:
        """End the agent and all its child processes."""
        self._closing.set()
        if self._task is not None:
            with suppress(AccordError):
                await asyncio.shield(self._task)

    def kill(self) -> None:
        """End the agent at once."""
        if self.remote is not None:
            self.remote.kill()

    async def _run(self) -> None:
        options = self.options
        try:
            async with connect(
                self.choice.target(self._said),
                self._client(),
                timeout=options.start_within,
                versions=options.versions,
                restart=Restart(on_event=self._restarted),
                unstable=True,
                trace=self._frame,
            ) as remote:
                self.remote = remote
                self._ready.set()
                self.on_news()
                await self._closing.wait()
        except AccordError as error:
            self.error = error
        finally:
            self.remote = None if not self._closing.is_set() else self.remote
            self._ready.set()
            self.on_news()

    # The agent's permissions

    @cached_property
    def shown_extensions(self) -> list[type[Extension[Any]]]:
        """Return the installed extensions of the protocol that have texts for the user."""
        parts = ("notice", "summary", "translate")
        return [it for it in installed_extensions() if any(map(it.overrides, parts))]

    def _client(self) -> Client:
        return Client(
            name="accord",
            files=Guarded(self.files, self.consent),
            terminals=Guarded(Terminals(on_open=self._opened), self.consent),
            permissions=self.consent,
            elicitation=Elicitation(self._ask, self._ask),
            extensions=[DisplayTerminals, *self.shown_extensions],
            prompt_suggestions=True,
        )

    def _of(self, session: ServedSession | None) -> Partner | None:
        """The conversation that a session belongs to; for one of a subagent, that of the latest turn."""
        if session is not None:
            for one in self.conversations:
                if one.session is not None and one.session.id == session.id:
                    return one
        busy = [one for one in self.conversations if one.is_busy]
        return busy[-1] if busy else self.conversations[-1] if self.conversations else None

    def _refused(self, question: PermissionQuestion, why: str) -> None:
        if (conversation := self._of(question.session)) is not None:
            conversation.note(f"Refused: {question.title}", why, "warning")

    async def _ask(self, question: PermissionQuestion | FormQuestion | LinkQuestion) -> Any:
        conversation = self._of(question.session)
        if conversation is None:
            return None
        match question:
            case PermissionQuestion():
                newest = () if conversation.session is None else conversation.session.state.timeline[-1:]
                is_below = any(isinstance(it, ToolCallState) and it.id == question.tool_call.id for it in newest)
                return await conversation.ask(PermissionAsked(question, is_below=is_below))
            case FormQuestion():
                return await conversation.ask(FormAsked(question))
            case LinkQuestion():
                return await conversation.ask(LinkAsked(question))

    async def _opened(self, session: ServedSession, terminal: Terminal) -> None:
        conversation = self._of(session)
        if conversation is None:
            return
        conversation.add_terminal(terminal)
        async for _ in terminal.follow():
            conversation.terminal_changed(terminal.id)
        conversation.terminal_changed(terminal.id)

    def _written(self, change: AgentWrite) -> None:
        for conversation in self.conversations:
            if conversation.session is not None and conversation.session.id == change.session_id:
                conversation.tell()

    # Reports

    def _said(self, line: str) -> None:
        self.stderr.append(line)
        self._forgotten_awaits(line)
        self.on_news()

    def _mistaken(self, text: str) -> None:
        if (conversation := self._of(None)) is not None:
            conversation.note(text, style="warning")

    def _frame(self, event: TraceEvent) -> None:
        if event.frame is None:
            return
        self.frames.append(event)
        for watcher in list(self.watchers):
            watcher(event)
        self._frame_bytes += len(event.frame)
        while len(self.frames) > FRAMES or (self._frame_bytes > FRAME_BYTES and len(self.frames) > 1):
            self._frame_bytes -= len(self.frames.popleft().frame or b"")

    def _restarted(self, event: Restarted) -> None:
        for conversation in self.conversations:
            back = event.agent_is_back and conversation.session not in event.lost
            what = "The agent was restarted." if back else "The agent was restarted, but this session is lost."
            if not event.agent_is_back:
                what = "The agent could not be restarted."
            conversation.note(what, str(event.why), "warning" if back else "bad")


TAIL = 8
"""Lines of the agent's standard error that an error shows."""
DATA = 2_000


def explained(error: AccordError, connection: AgentConnection) -> tuple[str, str]:
    """The title of an error, and the lines below it; secrets in URLs are masked."""
    title, *more = str(error).split("\n")
    if isinstance(error, PeerError):
        title, more = f"{connection.name} answered with an error: {error.message} ({error.code})", []
    lines = [*more, *_data(error), *_tail(error, connection), *_advice(error, connection)]
    return mask_urls(title), mask_urls("\n".join(lines))


def _data(error: AccordError) -> Iterator[str]:
    """The details that the agent adds to its error."""
    data = getattr(error, "data", None)
    if not data:
        return
    if isinstance(data, dict):
        members = cast("dict[str, Any]", data)
        if isinstance(details := members.get("details", members.get("message")), str):
            yield from details[:DATA].splitlines()
            return
    yield from (data if isinstance(data, str) else json.dumps(data, indent=2, ensure_ascii=False))[:DATA].splitlines()


def _tail(error: AccordError, connection: AgentConnection) -> Iterator[str]:
    lines = list(connection.stderr)[-TAIL:]
    text = str(error)
    lines = [line for line in lines if line.strip() and line.strip() not in text]
    if lines:
        yield "The agent wrote to its standard error:"
        yield from (f"  {line}" for line in lines)


def _advice(error: AccordError, connection: AgentConnection) -> Iterator[str]:
    if isinstance(error, PeerError) and error.code == AUTH_REQUIRED:
        yield "Log in: /login"
    elif isinstance(error, ConnectionClosed) or connection.remote is None:
        yield f"The command is: {connection.choice.where}" if connection.choice.where else ""
        yield "Try again: /restart    Check the agent: accord doctor"


OFFERED = "Agents of the registry"


@dataclass(frozen=True)
class RegistryChoice:
    """An agent of the registry that is not among the known ones."""

    name: str
    is_installed: bool


async def registry_entries(known: Iterable[AgentChoice]) -> list[Entry]:
    """Return the agents of the registry without a name here, the installed ones first. An old index will do."""
    names = {choice.name for choice in known}
    try:
        return await asyncio.to_thread(_entries, names)
    except AccordError:
        offered = "Agents of the registry, which cannot be read at the moment"
        return [
            Entry(it.id, RegistryChoice(it.id, False), it.description, group=offered)
            for it in WELL_KNOWN
            if it.id not in names
        ]


def _entries(known: set[str]) -> list[Entry]:
    from accord_tools.registry import installed_agents
    from accord_tools.registry.agent_index import load_index

    here = {agent.id: agent for agent in installed_agents.all_installed()}
    entries = [
        Entry(agent.name or agent.id, RegistryChoice(agent.id, True), f"{agent.id} {agent.version}", group="Installed")
        for agent in here.values()
        if agent.id not in known
    ]
    for entry in load_index():
        if entry.id not in known and entry.id not in here:
            about = f"{entry.id} {entry.version}  {entry.description}  enter installs it"
            entries.append(Entry(entry.name, RegistryChoice(entry.id, False), about, group=OFFERED))
    return entries


def install(name: str) -> None:
    """Install an agent in the terminal, which the chat has left; raises ValueError if it was not installed."""
    done = subprocess.run(own_command("accord", "agents", "install", name), check=False)
    if done.returncode:
        raise ValueError(f"{name} was not installed; `accord agents install {name}` says why")
