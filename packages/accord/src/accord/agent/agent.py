"""`Agent`: what an author writes. It holds functions and nothing live; each connection is an `AgentConnection`."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, cast, get_args, overload

from accord._internal.endpoint import Endpoint
from accord._internal.tasks import in_thread
from accord.agent.agent_capabilities import VERSIONS, Accepted, Accepts, Version
from accord.agent.agent_connection import AgentConnection
from accord.agent.agent_definition import (
    AgentDefinition,
    AsyncResultT,
    AuthStatusT,
    AwaitableT,
    CommandT,
    FocusedFunctionT,
    LoginCheckT,
    LoginT,
    LogoutT,
    OutcomeFunctionT,
    PlainResultT,
    ResultT,
    SavedFunctionT,
    SuggestFunctionT,
    threaded,
)
from accord.agent.authentication import LoginMethod, variables_are_set
from accord.agent.model_providers import Provider
from accord.agent.session import Mode, Session, StateT, check_modes
from accord.agent.session_activity import PromptWhileWorking
from accord.agent.session_config import SlashCommand
from accord.agent.turn import Turn
from accord.agent.user_questions import PermissionMemory, Remembered
from accord.engine.connection import Limits
from accord.engine.handlers import Interception, MessageT, RawHandlerT, Registrar
from accord.engine.peer import Context
from accord.mistakes import check_handler, check_sequence, check_text, check_word, registered_once, wrong_type
from accord.program import OWNER, STORE, Unwritable, explain_at_a_terminal, run_until_the_end
from accord.schema import v1
from accord.schema.base import JsonObject
from accord.schema.sendable import check_meta, with_meta
from accord.services.service import Service as LentService
from accord.store import IN_MEMORY, MemoryStore, Store
from accord.transports import Transport

if TYPE_CHECKING:
    from accord.agent import plain_turn
    from accord.agent.agent_suggestions import SuggestionFunctions, Wish
    from accord.agent.skills import SkillFolders
    from accord.engine.spans import Spans
    from accord.schema.extension import Extension, Extensions
    from accord.services.service import LocalHost


class Agent(Generic[StateT]):
    """An agent: functions that answer prompts, and what is known about it.

        agent = accord.Agent("echo", version="1.0.0")


        @agent.on_prompt
        async def echo(turn: accord.Turn) -> None:
            await turn.say(turn.text)


        agent.run()

    `versions` are the versions of the protocol that it serves; each client gets the highest that it knows, too.
    `accepts` names what prompts may hold besides text and links: `image`, `audio`, `embedded`. `local` is a list of the
    services of this machine that stand in for what a client does not lend; with True, `turn.client` has them as
    `turn.files` and `tool.command` always do. `prompt_while_working` says
    what becomes of a prompt in a session that works on one. `remember` says how far a user's "always" reaches.
    `store` keeps the sessions: in memory (`:memory:`), in a `Store`, in a file, by its path, or in PostgreSQL or the
    store of a plug-in, by its URL. None is what the variable `ACCORD_STORE` says, which `accord serve --store` sets,
    else memory. `state` is the class of `session.state`, which is made without arguments, and kept with the session:
    `Agent(state=Notes)` is an `Agent[Notes]`, and its functions may take a `Turn[Notes]` and a `Session[Notes]`.
    `capabilities` changes what is declared, which otherwise follows from what is registered. `unstable` lets out what
    is only proposed. `keep_unknown` is for an agent that passes on what clients send: it keeps the members that our
    types do not know, see docs/engine.md.
    `system_prompts` says what a client's system prompt may do to yours: `append` to it, or
    `override` it; see `session.system_prompt`. `skills` is a folder of skills, several, or a function of the session
    that names those of a session: each folder in it with a SKILL.md is offered as a command, see `turn.skills`.
    `extensions` are additions to the protocol that are declared to clients: classes of `Extension`, or the names of
    installed ones; or a mapping from each to what it declares.
    `meta` is the `_meta` of the answer to `initialize`.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0",
        title: str | None = None,
        versions: Sequence[Version] = VERSIONS,
        accepts: Collection[Accepted] = (),
        local: bool | Sequence[LentService] = False,
        prompt_while_working: PromptWhileWorking = "queue",
        remember: Remembered = "session",
        store: Store | str | Path | None = None,
        state: type[StateT] | None = None,
        capabilities: Callable[[v1.AgentCapabilities], v1.AgentCapabilities] | None = None,
        cancel_grace: float = 5.0,
        unstable: bool = False,
        debug: bool = False,
        limits: Limits | None = None,
        spans: Spans | None = None,
        keep_unknown: bool = False,
        system_prompts: Collection[Mode] = (),
        skills: SkillFolders | None = None,
        extensions: Iterable[type[Extension[Any]] | str] | Extensions = (),
        meta: JsonObject | None = None,
    ) -> None:
        check_text("Agent(name)", name)
        check_meta("Agent(meta=...)", meta)
        check_word("prompt_while_working", prompt_while_working, get_args(PromptWhileWorking))
        served = _versions(versions)
        if prompt_while_working == "reject" and 2 in served:
            raise ValueError(
                "prompt_while_working='reject' needs versions=(1,): in version 2 a prompt cannot be refused because "
                "the session works; use 'queue', 'cancel_first' or 'steer'"
            )
        check_word("remember", remember, get_args(Remembered))
        check_sequence("Agent(accepts=...)", "words", accepts)
        if state is not None and not isinstance(cast("object", state), type):
            raise wrong_type("Agent(state=...)", "a class", state)
        self._definition = AgentDefinition(
            info=v1.Implementation(name, version, title),
            accepts=Accepts(accepts),
            local=_local(local),
            versions=served,
            prompt_while_working=prompt_while_working,
            store=_store(store),
            titles_sessions=store is not None,
            state_type=state,
            cancel_grace=cancel_grace,
            unstable=unstable,
            debug=debug,
            limits=limits,
            spans=spans,
            keep_unknown=keep_unknown,
            permission_memory=PermissionMemory() if remember == "agent" else None,
            change_capabilities=capabilities,
            system_prompts=check_modes(system_prompts),
            skills=_skills(skills),
            meta=meta or {},
        )
        if extensions:
            from accord.schema.extension import chosen_extensions  # few agents have extensions

            chosen = chosen_extensions("Agent(extensions=...)", extensions)
            self._definition.extensions = chosen
            self._definition.handlers.extensions = self._definition.second_handlers.extensions = chosen
        self._serving = 0

    def __repr__(self) -> str:
        return f"Agent({self.info.name!r}, version={self.info.version!r})"

    @property
    def info(self) -> v1.Implementation:
        """The agent's name, version and title."""
        return self._definition.info

    # Registration

    # A plain function, a `def`, is called in a thread, with the turn or session of `accord.sync`.

    @overload
    def on_prompt(self, function: Callable[[Turn[StateT]], AsyncResultT]) -> Callable[[Turn[StateT]], AsyncResultT]: ...
    @overload
    def on_prompt(
        self, function: Callable[[plain_turn.Turn[StateT]], PlainResultT]
    ) -> Callable[[plain_turn.Turn[StateT]], PlainResultT]: ...
    def on_prompt(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Answer prompts with this function, which takes the `Turn`.

        It is an `async def`, or a `def`, which is called in its own thread with an `accord.sync.Turn`. Either may be a
        generator of text to say. It returns nothing when the turn ends normally, or another stop reason than
        `end_turn`.
        """
        registered_once("@agent.on_prompt", self._definition.on_prompt, function)
        self._definition.on_prompt = threaded("@agent.on_prompt", function)
        return function

    @overload
    def on_session(
        self, function: Callable[[Session[StateT]], AwaitableT]
    ) -> Callable[[Session[StateT]], AwaitableT]: ...
    @overload
    def on_session(
        self, function: Callable[[plain_turn.Session[StateT]], ResultT]
    ) -> Callable[[plain_turn.Session[StateT]], ResultT]: ...
    def on_session(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Call this function with each `Session` that is opened, before the client has it."""
        registered_once("@agent.on_session", self._definition.on_session, function)
        self._definition.on_session = threaded("@agent.on_session", function)
        return function

    @overload
    def on_config(
        self, function: Callable[[Session[StateT], str, str | bool], AwaitableT]
    ) -> Callable[[Session[StateT], str, str | bool], AwaitableT]: ...
    @overload
    def on_config(
        self, function: Callable[[plain_turn.Session[StateT], str, str | bool], ResultT]
    ) -> Callable[[plain_turn.Session[StateT], str, str | bool], ResultT]: ...
    def on_config(self, function: Callable[[Any, str, str | bool], Any]) -> Callable[[Any, str, str | bool], Any]:
        """Call this function with the `Session`, the option's id and its new value, when the user has chosen it.

        It may raise `RequestError` to refuse, and change other options.
        """
        registered_once("@agent.on_config", self._definition.on_config, function)
        self._definition.on_config = threaded("@agent.on_config", function)
        return function

    @overload
    def on_rewind(
        self, function: Callable[[Session[StateT]], AwaitableT]
    ) -> Callable[[Session[StateT]], AwaitableT]: ...
    @overload
    def on_rewind(
        self, function: Callable[[plain_turn.Session[StateT]], ResultT]
    ) -> Callable[[plain_turn.Session[StateT]], ResultT]: ...
    def on_rewind(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Call this function with each `Session` that a client forks at a message, before `on_session`.

        Its `history()` ends at that message. Its `state` is still that of the whole session: the function makes it fit.
        An agent with `Agent(state=...)` lets clients fork at messages only if it has such a function.
        """
        registered_once("@agent.on_rewind", self._definition.on_rewind, function)
        self._definition.on_rewind = threaded("@agent.on_rewind", function)
        return function

    def command(
        self, name: str, description: str, *, hint: str | None = None, meta: JsonObject | None = None
    ) -> Callable[[CommandT], CommandT]:
        """Answer the slash command of this name with a function of the `Turn`.

        A second parameter of the function receives the text after the name. `hint` tells the user what to write there.
        `meta` is the command's `_meta`.
        """
        check_meta("@agent.command(meta=...)", meta)
        check_text("@agent.command()", name)
        if not isinstance(cast("object", description), str):
            raise wrong_type(f"@agent.command({name!r}, ...)", "a name and a description, as text", description)

        def register(function: CommandT) -> CommandT:
            check_handler(f"@agent.command({name!r}, ...)", function)
            if any(it.name == name for it in self._definition.commands):
                raise ValueError(f"the command {name!r} is registered already; each name can be used once")
            called = threaded(f"@agent.command({name!r}, ...)", function)
            self._definition.commands.append(SlashCommand(name, description, called, hint, meta))
            return function

        return register

    # Next edit suggestions

    @property
    def _suggestions(self) -> SuggestionFunctions:
        if self._definition.suggestions is None:
            from accord.agent.agent_suggestions import SuggestionFunctions  # few agents suggest edits

            self._definition.suggestions = SuggestionFunctions()
        return self._definition.suggestions

    @overload
    def on_suggest(self, function: SuggestFunctionT, /) -> SuggestFunctionT: ...
    @overload
    def on_suggest(
        self, /, *, context: Collection[Wish] | Mapping[Wish, int | None] = ()
    ) -> Callable[[SuggestFunctionT], SuggestFunctionT]: ...
    def on_suggest(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        context: Collection[Wish] | Mapping[Wish, int | None] = (),
    ) -> Callable[..., Any]:
        """Suggest what the user may do next with this function, which takes a `SuggestionRequest`.

        It returns suggestions, the best first, made by the request's methods. `context` lists the context that clients
        should send, such as `["diagnostics"]`, or `{"edit_history": 6}` for the last six. Suggestions are only
        proposed, so the agent needs `unstable=True`.
        """
        if not self._definition.unstable:
            raise ValueError("suggestions are not part of the stable protocol: write Agent(..., unstable=True)")

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._suggestions.register(function, context)
            return function

        return register if function is None else register(function)

    def on_suggestion_outcome(self, function: OutcomeFunctionT) -> OutcomeFunctionT:
        """Call this function with a suggestion and its outcome: `accepted`, or the reason it was not, such as
        `rejected`.
        """
        registered_once("@agent.on_suggestion_outcome", self._suggestions.outcome, function)
        self._suggestions.outcome = function
        return function

    def on_document_save(self, function: SavedFunctionT) -> SavedFunctionT:
        """Call this function with each document that the user saves, for clients that request suggestions."""
        registered_once("@agent.on_document_save", self._suggestions.saved, function)
        self._suggestions.saved = function
        return function

    def on_document_focus(self, function: FocusedFunctionT) -> FocusedFunctionT:
        """Call this function with each document that gets the focus, and the offset of the cursor in it."""
        registered_once("@agent.on_document_focus", self._suggestions.focused, function)
        self._suggestions.focused = function
        return function

    # Logging in and out

    def login(
        self, method_id: str, name: str, *, description: str | None = None, meta: JsonObject | None = None
    ) -> Callable[[LoginT], LoginT]:
        """Offer a way to log in. The function performs it, and takes the `Login` if it has a parameter.

        It raises `RequestError` or returns False if the login failed. `meta` is the method's `_meta`.
        """
        method = with_meta("@agent.login", v1.AuthMethodAgent(v1.AuthMethodId(method_id), name, description), meta)

        def register(function: LoginT) -> LoginT:
            check_handler(f"@agent.login({method_id!r}, ...)", function)
            called = threaded(f"@agent.login({method_id!r}, ...)", function)
            self._definition.logins.add(LoginMethod(method, called))
            return function

        return register

    def terminal_login(
        self,
        method_id: str,
        name: str,
        *,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        description: str | None = None,
        meta: JsonObject | None = None,
    ) -> Callable[[LoginCheckT], LoginCheckT]:
        """Offer a login at a terminal, where the client runs this program with these arguments.

        The function takes nothing and returns whether the user is logged in, from what the login has stored: clients
        need not report it. Only clients with a terminal are offered this login.
        """
        method = v1.AuthMethodTerminal(
            v1.AuthMethodId(method_id), name, description=description, args=list(args), env=dict(env or {})
        )
        method = with_meta("@agent.terminal_login", method, meta)

        def register(function: LoginCheckT) -> LoginCheckT:
            check_handler(f"@agent.terminal_login({method_id!r}, ...)", function)
            self._definition.logins.add(LoginMethod(method, in_thread(function)))
            return function

        return register

    def environment_login(
        self,
        method_id: str,
        name: str,
        variables: Sequence[str | v1.AuthEnvVar],
        *,
        description: str | None = None,
        link: str | None = None,
        meta: JsonObject | None = None,
    ) -> None:
        """Offer a login by environment variables: the client sets them when it starts this program.

        This is only proposed: it is offered if the agent has `unstable=True`.
        """
        needed = [v1.AuthEnvVar(it) if isinstance(it, str) else it for it in variables]
        method = v1.AuthMethodEnvVar(v1.AuthMethodId(method_id), name, needed, description=description, link=link)
        method = with_meta("agent.environment_login", method, meta)
        self._definition.logins.add(LoginMethod(method, variables_are_set(needed)))

    def on_login_check(self, function: LoginCheckT) -> LoginCheckT:
        """Call this function to check whether the user is logged in already, before this connection requires a
        login.
        """
        registered_once("@agent.on_login_check", self._definition.logins.check, function)
        self._definition.logins.check = in_thread(function)
        return function

    def on_logout(self, function: LogoutT) -> LogoutT:
        """Let the user log out; this function deletes the credentials."""
        registered_once("@agent.on_logout", self._definition.logins.logout, function)
        self._definition.logins.logout = in_thread(function)
        return function

    def on_auth_status(self, function: AuthStatusT) -> AuthStatusT:
        """Call this function for the accounts to which the user is logged in; it returns a list of `v1.AuthAccount`, or
        a state.

        The state is one of the protocol's: `authenticated`, `unauthenticated`, `not_required` or `unknown`. With None,
        it follows from the logins. A client is notified after each login and logout, and when it asks.
        """
        registered_once("@agent.on_auth_status", self._definition.logins.status, function)
        self._definition.logins.status = in_thread(function)
        return function

    # Models

    def provider(
        self,
        provider_id: str,
        *,
        supports: Sequence[str],
        required: bool = False,
        default: Endpoint | None = None,
        replaces_login: bool = False,
        meta: JsonObject | None = None,
    ) -> Provider:
        """Let clients set where the models of this provider are reached: `turn.provider(provider_id)` returns the
        endpoint.

        `supports` names the kinds of API that it may have, such as `anthropic` and `openai`. `default` is the endpoint
        while the client has set none. A `required` provider cannot be disabled. With `replaces_login`, a
        client that has set the endpoint needs no login. What a client sets belongs to its connection, and is kept in
        memory only. `meta` is the provider's `_meta`.
        """
        check_text("agent.provider()", provider_id)
        check_meta("agent.provider(meta=...)", meta)
        check_sequence("agent.provider(supports=...)", "kinds of API", supports)
        if not supports:
            raise ValueError("agent.provider(supports=...) must name at least one kind of API, got none")
        if default is not None and not isinstance(cast("object", default), Endpoint):
            raise wrong_type("agent.provider(default=...)", "an Endpoint", default)
        if default is not None and default.api_type not in supports:
            raise ValueError(
                f"agent.provider(default=...) must have one of the APIs {', '.join(supports)}, got {default.api_type!r}"
            )
        if any(it.id == provider_id for it in self._definition.providers):
            raise ValueError(f"the provider {provider_id!r} is registered already; each id can be used once")
        provider = Provider(
            provider_id, supports, required=required, default=default, replaces_login=replaces_login, meta=meta
        )
        self._definition.providers.append(provider)
        return provider

    # Low-level handlers

    def on(self, message: type[MessageT]) -> Registrar[MessageT]:
        """Handle this message of the protocol, or one of your own, on the low level, before the built-in handler."""
        return self._definition.handlers_of(message).on(message)

    def before(self, message: type[MessageT]) -> Interception[MessageT]:
        """Call a function with this message before its handler: the built-in one, or yours registered with `on`.

        The function takes the message, and a `Context` if it has a second parameter. It returns None to pass the
        message on, a message of the same class to pass that on instead, or the answer, which ends the chain; it may
        raise `RequestError`. For a notification, True ends the chain. The decorated function gets a `remove`.
        One for `v1.PromptRequest` is not called in version 2, whose answer differs: use `v2.PromptRequest` there.
        """
        return self._definition.handlers.before(message)

    def on_request(self, method: str) -> Callable[[RawHandlerT], RawHandlerT]:
        """Handle a request by its method, in plain JSON values."""
        return self._definition.handlers.on_request(method)

    def on_notification(self, method: str) -> Callable[[RawHandlerT], RawHandlerT]:
        """Handle a notification by its method, in plain JSON values."""
        return self._definition.handlers.on_notification(method)

    def session(self, context: Context, session_id: str) -> Session[StateT]:
        """Return the open session with this id, for a handler that has only its context; raise RequestError if it is
        not open.
        """
        connection = context.peer.home
        if not isinstance(connection, AgentConnection):
            raise TypeError(
                "this context does not belong to an agent; pass the context that a handler of an agent received"
            )
        return connection.session(session_id)

    # Running

    @property
    def program(self) -> str:
        """The module of the agent's code, and its name: a client in this program stores remembered answers under it."""
        return self._definition.program

    @property
    def store(self) -> Store:
        """The store that keeps its sessions."""
        return self._definition.store

    async def serve(self, transport: Transport, *, owner: str = "") -> None:
        """Serve one client over this transport until the connection ends; its sessions belong to this owner."""
        if not self._definition.answers_prompts:
            raise TypeError("no function answers prompts; register one with @agent.on_prompt")
        self._serving += 1
        try:
            await self._definition.store.open()
            await AgentConnection(self._definition, transport, owner).run()
        finally:
            self._serving -= 1
            if self._serving == 0:
                await self._definition.store.close()

    def run(self, *, uvloop: bool | None = None) -> None:
        """Serve the client that started this program, over standard input and output.

        `uvloop` is used if it is installed; True requires it, False forbids it. What the program prints meanwhile goes
        to standard error.
        """
        explain_at_a_terminal(self.info.name)
        run_until_the_end(self._serve_standard_streams(), self.info.name, uvloop=uvloop)

    async def _serve_standard_streams(self) -> None:
        from accord.transports.stdio_transport import StdioTransport

        transport = StdioTransport.standard()
        await self.serve(transport, owner=os.environ.get(OWNER, ""))
        if (error := transport.output_error) is not None:
            raise Unwritable(f"cannot write to standard output: {error.strerror or error}")


def _local(local: bool | Sequence[LentService]) -> LocalHost | None:
    if not isinstance(cast("object", local), bool):
        check_sequence("Agent(local=...)", "services", local)
    if not local:
        return None
    from accord.services.file_service import Files
    from accord.services.service import LocalHost
    from accord.services.terminal_service import Terminals

    return LocalHost([Files(), Terminals()] if local is True else local)


def _skills(skills: SkillFolders | None) -> SkillFolders | None:
    if skills is None:
        return None
    from accord.agent.skills import check_skills  # few agents have skills

    return check_skills(skills)


def _versions(versions: Sequence[Version]) -> tuple[Version, ...]:
    check_sequence("Agent(versions=...)", "versions of the protocol", versions)
    if not versions or any(type(it) is not int or it not in VERSIONS for it in cast("Sequence[object]", versions)):
        raise ValueError(f"versions must be one or more of {', '.join(map(str, VERSIONS))}, got {versions!r}")
    return tuple(version for version in VERSIONS if version in versions)


def _store(store: Store | str | Path | None) -> Store:
    if isinstance(store, Store):
        return store
    where = os.environ.get(STORE) or IN_MEMORY if store is None else store
    if where == IN_MEMORY:
        return MemoryStore()
    from accord.store.store_url import store_at

    return store_at(where, "Agent(store=...)")
