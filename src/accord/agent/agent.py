"""`Agent`: what an author writes. It holds functions and nothing live; each connection is a `AgentConnection`."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from accord.agent import declared
from accord.agent.commands import Command
from accord.agent.connection import AgentConnection
from accord.agent.content import Accepted, Accepts
from accord.agent.login import Logins, Way, variables_are_set
from accord.agent.permission import PermissionMemory, Remembered
from accord.agent.prompt_queue import SecondPrompt
from accord.agent.record import Record
from accord.agent.running import OWNER, Unwritable, run_until_the_end
from accord.agent.session import Session
from accord.agent.turn import Turn
from accord.engine.handlers import Context, Handlers
from accord.engine.limits import Limits
from accord.schema import v1
from accord.schema.base import Notification, Request
from accord.schema.v1.prompt import StopReason
from accord.services.files.files import Files
from accord.services.local import LocalHost
from accord.services.service import Service as LentService
from accord.services.terminals.terminals import Terminals
from accord.spans import Spans
from accord.store.base import Store
from accord.store.memory import MemoryStore
from accord.transports.base import Transport
from accord.transports.stdio import StdioTransport

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

STOP_REASONS: tuple[str, ...] = get_args(StopReason)


class Agent:
    """An agent: functions that answer prompts, and what is known about it.

        agent = accord.Agent("echo", version="1.0.0")


        @agent.on_prompt
        async def echo(turn: accord.Turn) -> None:
            await turn.say(turn.text)


        agent.run()

    `accepts` names what prompts may hold besides text and links: `image`, `audio`, `embedded`. With `local`, files and
    terminals that a client does not lend are those of the machine that the agent runs on. `second_prompt` says
    what becomes of a prompt in a session that works on one. `remember` says how far a user's "always" reaches.
    `store` keeps the sessions: in memory, unless it is a `Store`, or the path of a file. `state` is the class of
    `session.state`, which is made without arguments, and kept with the session.
    `capabilities` changes what is declared, which otherwise follows from what is registered. `unstable` lets out what
    is only proposed.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0",
        title: str | None = None,
        accepts: Collection[Accepted] = (),
        local: bool | Sequence[LentService] = False,
        second_prompt: SecondPrompt = "queue",
        remember: Remembered = "session",
        store: Store | str | Path | None = None,
        state: type[Any] | None = None,
        capabilities: Callable[[v1.AgentCapabilities], v1.AgentCapabilities] | None = None,
        cancel_grace: float = 5.0,
        unstable: bool = False,
        debug: bool = False,
        limits: Limits | None = None,
        spans: Spans | None = None,
    ) -> None:
        if second_prompt not in get_args(SecondPrompt):
            raise ValueError(f"second_prompt is one of {', '.join(get_args(SecondPrompt))}, not {second_prompt!r}")
        self.info = v1.Implementation(name, version, title)
        self.local = _local(local)
        """What stands in for what a client does not lend."""
        self.second_prompt: SecondPrompt = second_prompt
        self.store = _store(store)
        """Where the sessions live."""
        self.titles_sessions = store is not None
        """Whether a session is called by its first prompt where its author gives it no title."""
        self.state_type = state
        self.cancel_grace = cancel_grace
        """Seconds that a cancelled turn may take for its end before it is answered all the same."""
        self.unstable = unstable
        self.debug = debug
        self.limits = limits
        self.spans = spans
        self.handlers = Handlers()
        """What the author handles in the low level's way."""
        self.commands: list[Command] = []
        """The slash commands that every session begins with."""
        self.doors = Logins()
        """The ways to log in and out."""
        self.permission_memory = PermissionMemory() if remember == "agent" else None
        self._accepts = Accepts(accepts)
        self._capabilities = capabilities
        self._on_prompt: Callable[[Turn], Any] | None = None
        self._on_session: Callable[[Session], Any] | None = None
        self._on_config: Callable[[Session, str, Any], Any] | None = None
        self._serving = 0

    # What the author registers

    def on_prompt(self, function: FunctionT) -> FunctionT:
        """Answer prompts with this function, which takes the `Turn`.

        It may be an `async def`, a `def`, or a generator (`async` or not) of what to say. It returns nothing when all
        is said, or another stop reason than `end_turn`.
        """
        self._on_prompt = function
        return function

    def on_session(self, function: FunctionT) -> FunctionT:
        """Call this function with each `Session` that is opened, before the client has it."""
        self._on_session = function
        return function

    def on_config(self, function: FunctionT) -> FunctionT:
        """Call this function with the `Session`, the option's id and its new value, when the user has chosen it.

        It may raise `RequestError` to refuse, and change other options.
        """
        self._on_config = function
        return function

    def command(self, name: str, description: str, *, hint: str | None = None) -> Callable[[FunctionT], FunctionT]:
        """Answer the slash command of this name with a function of the `Turn` and, if it wants it, the text behind it.

        `hint` says what that text may be.
        """

        def register(function: FunctionT) -> FunctionT:
            self.commands.append(Command(name, description, function, hint))
            return function

        return register

    # Logging in and out

    def login(self, method_id: str, name: str, *, description: str | None = None) -> Callable[[FunctionT], FunctionT]:
        """Offer a way to log in, which this function goes through: it takes the `Login`, if it wants it.

        It raises `RequestError`, or returns False, when the user is not logged in by it.
        """

        def register(function: FunctionT) -> FunctionT:
            self.doors.add(Way(v1.AuthMethodAgent(v1.AuthMethodId(method_id), name, description), function))
            return function

        return register

    def login_in_terminal(
        self,
        method_id: str,
        name: str,
        *,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        description: str | None = None,
    ) -> Callable[[FunctionT], FunctionT]:
        """Offer a login at a terminal, where the client runs this program with these arguments.

        The function, which takes nothing, says whether the user is logged in, by what the login has left behind:
        clients need not tell. Only those that have a terminal are told of it.
        """
        method = v1.AuthMethodTerminal(
            v1.AuthMethodId(method_id), name, description=description, args=list(args), env=dict(env or {})
        )

        def register(function: FunctionT) -> FunctionT:
            self.doors.add(Way(method, function))
            return function

        return register

    def login_by_environment(
        self,
        method_id: str,
        name: str,
        variables: Sequence[str | v1.AuthEnvVar],
        *,
        description: str | None = None,
        link: str | None = None,
    ) -> None:
        """Let variables of the environment log in: the client sets them where it starts this program.

        This is only proposed: clients are told where the agent says `unstable=True`.
        """
        needed = [v1.AuthEnvVar(it) if isinstance(it, str) else it for it in variables]
        method = v1.AuthMethodEnvVar(v1.AuthMethodId(method_id), name, needed, description=description, link=link)
        self.doors.add(Way(method, variables_are_set(needed)))

    def logged_in(self, function: FunctionT) -> FunctionT:
        """Ask this function whether the user is logged in already, where nobody has logged in on this connection."""
        self.doors.already_open = function
        return function

    def on_logout(self, function: FunctionT) -> FunctionT:
        """Let the user log out; this function forgets who they are."""
        self.doors.logout = function
        return function

    # The low level's way

    def on(self, message: type[Request[Any] | Notification]) -> Callable[[FunctionT], FunctionT]:
        """Handle this message of the protocol, or one of your own, in the low level's way: it goes before ours."""
        return self.handlers.on(message)

    def on_request(self, method: str) -> Callable[[FunctionT], FunctionT]:
        """Handle a request by its method, in plain JSON values."""
        return self.handlers.on_request(method)

    def on_notification(self, method: str) -> Callable[[FunctionT], FunctionT]:
        """Handle a notification by its method, in plain JSON values."""
        return self.handlers.on_notification(method)

    @staticmethod
    def session(context: Context, session_id: str) -> Session:
        """In such a handler: the open session of this id. RequestError if there is none."""
        service = context.peer.home
        if not isinstance(service, AgentConnection):
            raise TypeError("this context belongs to no agent: pass the one that a handler of an agent was given")
        return service.session(session_id)

    # Running

    @property
    def program(self) -> str:
        """The module of the agent's code, and its name: a client in this program remembers answers for it by that."""
        module = getattr(self._on_prompt, "__module__", None) or "?"
        main = getattr(sys.modules.get(module), "__file__", None) if module == "__main__" else None
        return f"module {main or module} {self.info.name}"

    async def serve(self, transport: Transport, *, owner: str = "") -> None:
        """Serve one client over this transport, until the link ends; its sessions are this owner's."""
        if self._on_prompt is None and not self.commands and not self.handlers.handles(v1.PromptRequest):
            raise TypeError("nobody answers prompts: decorate a function with @agent.on_prompt")
        self._serving += 1
        try:
            await self.store.open()
            await AgentConnection(self, transport, owner).run()
        finally:
            self._serving -= 1
            if self._serving == 0:
                await self.store.close()

    def run(self, *, uvloop: bool | None = None) -> None:
        """Serve the client that started this program, over standard input and output.

        `uvloop` is used if it is installed; True insists on it, False refuses it. What the program prints meanwhile
        goes to standard error.
        """
        run_until_the_end(self._serve_standard_streams(), self.info.name, uvloop=uvloop)

    async def _serve_standard_streams(self) -> None:
        transport = StdioTransport.standard()
        await self.serve(transport, owner=os.environ.get(OWNER, ""))
        if (error := transport.output_error) is not None:
            raise Unwritable(f"cannot write to standard output: {error.strerror or error}")

    # What a service asks

    def declare(self) -> v1.AgentCapabilities:
        """What this agent can do, as it follows from what is registered."""
        capabilities = declared.capabilities(
            self._accepts.capabilities(),
            self.handlers,
            can_log_out=self.doors.logout is not None,
        )
        return capabilities if self._capabilities is None else self._capabilities(capabilities)

    def restored_state(self, record: Record) -> Any:
        """What the author keeps for a session: as it was left, or new."""
        if self.state_type is None:
            return None
        kept = record.state(self.state_type)
        return self.state_type() if kept is None else kept

    async def opened(self, session: Session) -> None:
        if self._on_session is not None:
            await _finished(self._on_session(session))

    async def config_changed(self, session: Session, option_id: str, value: str | bool) -> None:
        if self._on_config is not None:
            await _finished(self._on_config(session, option_id, value))

    async def answer(self, turn: Turn) -> str:
        """Let the author's function work on a prompt; the stop reason."""
        called = turn.session.commands.called_by(turn.prompt)
        if called is not None:
            command, turn.arguments = called
            turn.command = command.name
            return stop_reason(await _spoken(turn, command.call(turn, turn.arguments)))
        if self._on_prompt is None:
            names = ", ".join(f"/{command.name}" for command in turn.session.commands)
            await turn.say(f"I know these commands: {names}")
            return "end_turn"
        return stop_reason(await _spoken(turn, self._on_prompt(turn)))


def stop_reason(result: Any) -> str:
    """The stop reason that an author's function means by what it returned."""
    if result is None:
        return "end_turn"
    if result in STOP_REASONS:
        return str(result)
    raise TypeError(
        f"a function for prompts returned {result!r}; it may return nothing or one of {', '.join(STOP_REASONS)}. "
        "What the user should read is said with turn.say."
    )


async def _spoken(turn: Turn, result: Any) -> Any:
    """Say what a generator yields; give what another function returned."""
    if isinstance(result, AsyncGenerator):
        async with aclosing(cast("AsyncGenerator[Any]", result)) as parts:
            async for part in parts:
                await turn.say(part)
        return None
    if isinstance(result, Iterator):
        for part in cast("Iterator[Any]", result):
            await turn.say(part)
        return None
    return await _finished(result)


def _local(local: bool | Sequence[LentService]) -> LocalHost | None:
    services = [Files(), Terminals()] if local is True else local or ()
    return LocalHost(services) if services else None


def _store(store: Store | str | Path | None) -> Store:
    if store is None:
        return MemoryStore()
    if isinstance(store, Store):
        return store
    from accord.store.sqlite import SqliteStore

    return SqliteStore(store)


async def _finished(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
