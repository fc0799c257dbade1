"""`AgentDefinition`: the settings and functions that an author registered with an `Agent`.

Connections read it. It holds nothing of one connection, so one definition serves many connections.
"""

# The private members of a session are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, get_args

import msgspec

from accord._internal.tasks import finished, is_async
from accord.agent.agent_capabilities import VERSIONS, Accepts, Version, capabilities_of
from accord.agent.authentication import Login, Logins
from accord.agent.author_thread import call_plain, check_annotations
from accord.agent.lifecycle import OpenSessions
from accord.agent.model_providers import Provider
from accord.agent.session import Mode, Session
from accord.agent.session_activity import PromptWhileWorking
from accord.agent.session_config import SlashCommand, call, called_by
from accord.agent.turn import Turn
from accord.agent.user_questions import PermissionMemory
from accord.engine.connection import Limits
from accord.engine.handlers import Handlers
from accord.mistakes import WrongReturn, place_of, shown
from accord.schema import v1
from accord.schema.base import Json, JsonObject
from accord.schema.capabilities import WATCH
from accord.schema.v1 import StopReason
from accord.store import Store

if TYPE_CHECKING:
    from accord.agent import plain_turn
    from accord.agent.agent_suggestions import (
        FocusedFunction,
        OutcomeFunction,
        SavedFunction,
        SuggestFunction,
        SuggestionFunctions,
    )
    from accord.engine.spans import Spans
    from accord.schema.extension import Extensions
    from accord.services.service import LocalHost


Said: TypeAlias = "str | v1.ContentBlock"
"""The values that a generator may yield: the agent says them."""

AsyncResult: TypeAlias = "Awaitable[str | None] | AsyncIterator[Said]"
"""What an `async` function for prompts returns: nothing, a stop reason, or an iterator of text to say."""

PlainResult: TypeAlias = "str | Iterator[Said] | None"
"""The values that a plain function for prompts may return."""

AuthAnswer: TypeAlias = "str | Sequence[v1.AuthAccount] | v1.AuthStatusResponse | None"
"""What a function for `auth/status` may return: a state, the accounts of the user, the whole answer, or nothing."""

AwaitableT = TypeVar("AwaitableT", bound="Awaitable[object]")
ResultT = TypeVar("ResultT")
AsyncResultT = TypeVar("AsyncResultT", bound=AsyncResult)
PlainResultT = TypeVar("PlainResultT", bound=PlainResult)
LoginT = TypeVar(
    "LoginT",
    bound="Callable[[], object] | Callable[[Login], Awaitable[object]] | Callable[[plain_turn.Login], object]",
)
LoginCheckT = TypeVar("LoginCheckT", bound="Callable[[], bool | Awaitable[bool]]")
AuthStatusT = TypeVar("AuthStatusT", bound="Callable[[], AuthAnswer | Awaitable[AuthAnswer]]")
LogoutT = TypeVar("LogoutT", bound="Callable[[], object]")

AsyncCommand: TypeAlias = "Callable[[Turn], AsyncResult] | Callable[[Turn, str], AsyncResult]"
PlainCommand: TypeAlias = "Callable[[plain_turn.Turn], PlainResult] | Callable[[plain_turn.Turn, str], PlainResult]"
CommandFunction: TypeAlias = "AsyncCommand | PlainCommand"
"""Takes the turn and, if it wants it, the text after the command's name."""

CommandT = TypeVar("CommandT", bound=CommandFunction)

SuggestFunctionT = TypeVar("SuggestFunctionT", bound="SuggestFunction")
OutcomeFunctionT = TypeVar("OutcomeFunctionT", bound="OutcomeFunction")
SavedFunctionT = TypeVar("SavedFunctionT", bound="SavedFunction")
FocusedFunctionT = TypeVar("FocusedFunctionT", bound="FocusedFunction")


STOP_REASONS: tuple[str, ...] = get_args(StopReason)


class AgentDefinition(msgspec.Struct, kw_only=True):
    """An agent's definition, as its connections see it."""

    info: v1.Implementation
    accepts: Accepts
    local: LocalHost | None
    """Services of this machine, for what a client does not lend."""
    meta: JsonObject = msgspec.field(default_factory=dict[str, Json])
    """The author's `_meta` of the answer to `initialize`."""
    extensions: Extensions = msgspec.field(default_factory=dict[Any, Any])
    """The extensions of the protocol that are declared to clients."""
    versions: tuple[Version, ...] = VERSIONS
    """The versions of the protocol that the author wants to serve."""
    prompt_while_working: PromptWhileWorking
    store: Store
    """Where the sessions live."""
    titles_sessions: bool
    """Whether the first prompt is the title of a session that has none."""
    state_type: type[Any] | None
    cancel_grace: float
    """Seconds that a cancelled turn may take to end before its prompt is answered without it."""
    unstable: bool
    debug: bool
    limits: Limits | None
    spans: Spans | None
    permission_memory: PermissionMemory | None
    """The remembered answers to permission questions, where all sessions share them."""
    change_capabilities: Callable[[v1.AgentCapabilities], v1.AgentCapabilities] | None
    keep_unknown: bool = False
    """Whether what clients send keeps the members that its types do not know."""
    handlers: Handlers = msgspec.field(default_factory=lambda: Handlers(versions=(1,), author="@agent"))
    """The messages that the author handles on the low level."""
    second_handlers: Handlers = msgspec.field(default_factory=lambda: Handlers(author="@agent"))
    """The author's low-level handlers of version 2."""
    commands: list[SlashCommand] = msgspec.field(default_factory=list[SlashCommand])
    """The slash commands that every session begins with."""
    logins: Logins = msgspec.field(default_factory=Logins)
    """The ways to log in and out."""
    suggestions: SuggestionFunctions | None = None
    """The functions for next edit suggestions; None until the first is registered."""
    providers: list[Provider] = msgspec.field(default_factory=list["Provider"])
    """The providers of models that clients may configure."""
    system_prompts: Sequence[Mode] = ()
    """What a client's system prompt may do to the agent's own."""
    skills: Any = None
    """The folders of skills, or the function that names those of a session; None for an agent without skills."""
    open_sessions: OpenSessions = msgspec.field(default_factory=OpenSessions)
    """The sessions that are open on any connection."""
    on_prompt: Callable[[Turn], Any] | None = None
    on_session: Callable[[Session], Any] | None = None
    on_config: Callable[[Session, str, Any], Any] | None = None
    on_rewind: Callable[[Session], Any] | None = None
    _declared: v1.AgentCapabilities | None = None
    """The latest capabilities; connections share them."""

    @property
    def answers_prompts(self) -> bool:
        """Whether anything answers prompts: a function, a command or a handler."""
        return self.on_prompt is not None or bool(self.commands) or self.handlers.handles(v1.PromptRequest)

    @property
    def served_versions(self) -> tuple[Version, ...]:
        """The versions of the protocol that connections serve, in order.

        A low-level handler that answers prompts serves only the version of its class: prompts differ between versions.
        """
        if self.on_prompt is not None or self.commands:
            return self.versions
        handled = {1: self.handlers.handles(v1.PromptRequest), 2: "session/prompt" in self.second_handlers.methods}
        return tuple(version for version in self.versions if handled[version]) or self.versions

    @property
    def program(self) -> str:
        """The module of the agent's code, and the agent's name. Remembered answers are stored under it."""
        module = getattr(self.on_prompt, "__module__", None) or "?"
        main = getattr(sys.modules.get(module), "__file__", None) if module == "__main__" else None
        return f"module {main or module} {self.info.name}"

    def handlers_of(self, message: type[Any]) -> Handlers:
        """Return where a handler of this message belongs: with those of version 2, if only version 2 has the
        message.
        """
        is_of_version_2 = message.__module__.startswith("accord.schema.v2")
        return self.second_handlers if is_of_version_2 and 2 in self.served_versions else self.handlers

    def declare(self) -> v1.AgentCapabilities:
        """Return the agent's capabilities, which follow from what is registered."""
        capabilities = capabilities_of(
            self.accepts.capabilities(),
            self.handlers,
            can_log_out=self.logins.logout is not None,
            unstable=self.unstable,
            tells_auth_status=self.logins.status is not None,
            has_providers=bool(self.providers),
            system_prompts=self.system_prompts,
        )
        if self.extensions:
            from accord.schema.extension import declarations, merged_meta

            meta = merged_meta(capabilities.meta, declarations(self.extensions, in_answer=False))
            capabilities = msgspec.structs.replace(capabilities, meta=meta or None)
        if self.change_capabilities is not None:
            capabilities = self.change_capabilities(capabilities)
        if (shared := self._declared) == capabilities and shared is not None:
            return shared
        self._declared = capabilities
        return capabilities

    @property
    def announced(self) -> dict[str, Json] | None:
        """Return the `_meta` of the answer to `initialize`: the author's, and whether clients can watch sessions.

        An author who loads or resumes sessions with a handler of his own does not serve watchers.
        """
        own = (v1.LoadSessionRequest, v1.ResumeSessionRequest)
        meta = self.meta
        if self.extensions:
            from accord.schema.extension import declarations, merged_meta

            meta = merged_meta(declarations(self.extensions, in_answer=True), meta)
        if any(self.handlers.handles(it) for it in own) or "session/resume" in self.second_handlers.methods:
            return meta or None
        return {**({WATCH: True} if self.declare().load_session else {}), **meta} or None

    async def opened(self, session: Session) -> None:
        """Find the session's skills, and let the author prepare the session, before the client has it."""
        if self.skills is not None:
            from accord.agent.skills import skills_of  # few agents have skills

            session.commands.skills = await asyncio.to_thread(skills_of, session, self.skills)
        if self.on_session is not None:
            await finished(self.on_session(session))

    @property
    def can_rewind(self) -> bool:
        """Whether a session can be forked at a message: its state, if there is one, can be adapted."""
        return self.state_type is None or self.on_rewind is not None

    async def rewound(self, session: Session) -> None:
        """Let the author adapt the state of a fork to the part of the conversation that it has."""
        if self.on_rewind is not None:
            await finished(self.on_rewind(session))

    async def config_changed(self, session: Session, option_id: str, value: str | bool) -> None:
        """Notify the author of a value that the user chose."""
        if self.on_config is not None:
            await finished(self.on_config(session, option_id, value))

    async def answer(self, turn: Turn) -> str:
        """Let the author's function work on a prompt, and return the stop reason."""
        commands = turn.session.commands
        if commands and (called := called_by(turn.prompt, commands)) is not None:
            command, turn.arguments = called
            turn.command = command.name
            result = call(command, threaded("a command", command.function), turn)
            return stop_reason(await _spoken(turn, result), command.function)
        if self.on_prompt is None:
            names = ", ".join(f"/{command.name}" for command in commands)
            await turn.say(f"I know these commands: {names}")
            return "end_turn"
        result = self.on_prompt(turn)
        # Most are coroutines, and abstract classes take long to say what something is not.
        result = await result if inspect.iscoroutine(result) else await _spoken(turn, result)
        return "end_turn" if result is None else stop_reason(result, self.on_prompt)


def stop_reason(result: Any, function: Callable[..., Any]) -> str:
    """Return the stop reason that an author's function means by its return value."""
    if result is None:
        return "end_turn"
    if result in STOP_REASONS:
        return str(result)
    raise WrongReturn(
        f"{place_of(function)}, must return None or one of {', '.join(STOP_REASONS)}, got {shown(result)}; "
        "to show text to the user, write `await turn.say(...)`"
    )


async def _spoken(turn: Turn, result: Any) -> Any:
    """Say what a generator yields; return what another function returned."""
    if isinstance(result, AsyncGenerator):
        async with aclosing(cast("AsyncGenerator[Any]", result)) as parts:
            async for part in parts:
                await turn.say(part)
        return None
    return await finished(result)


def threaded(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an `async` function as it is, and a plain one as an `async` function that calls it in a thread.

    A plain function gets the face of the first argument, such as the turn. `what` names the decorator in errors: a
    function whose annotations name another class than it gets is refused.
    """
    check_annotations(what, function)
    if is_async(function):
        return function
    from accord.agent.plain_turn import Turn  # few agents have plain functions

    return call_plain(function, Turn)
