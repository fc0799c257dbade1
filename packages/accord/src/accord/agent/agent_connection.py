"""One connection of an agent: the protocol's methods, each a few lines that call what does the work."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Raw

from accord._internal.tasks import Tasks
from accord.agent.agent_capabilities import Version, chosen_version, version_asked, with_known_parts
from accord.agent.agent_definition import AgentDefinition
from accord.agent.authentication import Authentication
from accord.agent.lifecycle import Lifecycle
from accord.agent.model_providers import ConnectionProviders
from accord.agent.record import public_store_error, taken
from accord.agent.remote_client import ConnectedClient
from accord.agent.session import Session
from accord.agent.session_activity import CANCELLED
from accord.agent.session_config import MODE, MODEL
from accord.agent.turn import AddedPrompt, Turn, meant_by
from accord.dialects.v1_dialect import options_in_v1
from accord.engine.handlers import Handlers, Message
from accord.engine.incoming_requests import IncomingRequest
from accord.engine.peer import Context, Peer, RouteSource
from accord.engine.routes import Route, Routes
from accord.errors import NOT_FOUND, DecodeError, RequestError, StoreError
from accord.jsonrpc.line_frames import RequestId
from accord.schema import codec, v1
from accord.schema.base import Unknown, tag_of
from accord.schema.capabilities import Capabilities
from accord.schema.content import ContentBlock
from accord.schema.v1 import StopReason
from accord.transports import Transport

if TYPE_CHECKING:
    from accord.agent.v2_methods import PromptReceipt


INITIALIZE = "initialize"


class VersionChoice(msgspec.Struct, frozen=True):
    """An `initialize` as the chosen version reads it."""

    version: Version
    route: Route
    request: Any


class Router:
    """The route of `initialize`, for an agent of several versions or of one.

    `routes_of` gives the routes of a version; `choose` is called with the version before its handler runs.
    """

    def __init__(
        self,
        served: Sequence[Version],
        routes_of: Callable[[Version], Routes],
        choose: Callable[[Version], None],
    ) -> None:
        self._served = tuple(served)
        self._routes_of = routes_of
        self._choose = choose
        self._chosen: VersionChoice | None = None
        """The `initialize` that is being handled."""
        self._agreed: Version | None = None
        """The version of the connection, once an `initialize` has succeeded."""

    def add_routes(self, routes: Routes, peer: Peer) -> None:  # noqa: ARG002
        """Put the route of `initialize` before all others; implements `RouteSource`."""
        routes.makers.append(self._route)

    def _route(self, method: str) -> Route | None:
        if method != INITIALIZE:
            return None
        return Route(
            INITIALIZE,
            decode=self._read,
            decode_tolerantly=self._read,
            lane_of=_no_session,
            suspends=False,
            call=self._call,
            answer=self._answer,
            handshake=True,
        )

    def _read(self, raw: bytes | Raw) -> VersionChoice | RequestError:
        params = codec.loads(raw)
        asked = version_asked(params)
        try:
            version = chosen_version(asked, self._served)
        except RequestError as error:
            return error
        if self._agreed is not None and version < self._agreed:
            return RequestError.invalid_request("the connection is already initialized with a higher version")
        route = self._routes_of(version).call(INITIALIZE)
        if route is None:
            raise DecodeError("$.protocolVersion", f"version {version} has no handler")
        fitting = raw if asked <= version else Raw(codec.encode(with_known_parts(params, version)))
        return VersionChoice(version, route, route.read(fitting))

    def _call(self, read: VersionChoice | RequestError, incoming: IncomingRequest) -> Any:
        if isinstance(read, RequestError):
            raise read
        self._choose(read.version)
        self._chosen = read
        return read.route.call(read.request, incoming)

    def _answer(self, request_id: RequestId, result: Any) -> bytes:
        assert self._chosen is not None, "a result without a chosen version"
        chosen, self._chosen = self._chosen, None
        frame: bytes = chosen.route.answer(request_id, result)
        self._agreed = chosen.version
        return frame


def _no_session(_: Any) -> None:
    return None


REFUSAL = "refusal"

_METHODS: dict[Message | str, Callable[[AgentConnection], Callable[..., Any] | None]] = {
    v1.InitializeRequest: lambda it: it._initialize,
    v1.NewSessionRequest: lambda it: it._lifecycle.new,
    v1.ListSessionsRequest: lambda it: it._lifecycle.list,
    v1.LoadSessionRequest: lambda it: it._lifecycle.load,
    v1.ResumeSessionRequest: lambda it: it._lifecycle.resume,
    v1.ForkSessionRequest: lambda it: it._lifecycle.fork,
    v1.CloseSessionRequest: lambda it: it._lifecycle.close,
    v1.DeleteSessionRequest: lambda it: it._lifecycle.delete,
    v1.PromptRequest: lambda it: it._work_on,
    v1.CancelNotification: lambda it: it._cancel,
    v1.SetSessionModeRequest: lambda it: it._set_mode,
    v1.SetSessionModelRequest: lambda it: it._set_model,
    v1.SetSessionConfigOptionRequest: lambda it: it._set_config_option,
    "_accord/rewind_files": lambda it: it._lifecycle.rewind_files,
    v1.SessionOptionsRequest: lambda it: it._lifecycle.options if it.agent.unstable else None,
    v1.ArchiveSessionRequest: lambda it: it._lifecycle.archive if it.agent.unstable else None,
    v1.UnarchiveSessionRequest: lambda it: it._lifecycle.unarchive if it.agent.unstable else None,
    v1.SessionStatusRequest: lambda it: it._lifecycle.status if it.agent.unstable else None,
    v1.SetSessionTitleRequest: lambda it: it._lifecycle.set_title if it.agent.unstable else None,
    v1.AuthenticateRequest: lambda it: it.authentication.authenticate if it.agent.logins.ways else None,
    v1.LogoutRequest: lambda it: it._log_out if it.agent.logins.logout is not None else None,
    v1.AuthStatusRequest: lambda it: it.authentication.status if it.tells_auth_status else None,
    v1.ListProvidersRequest: lambda it: it.providers.list if it.agent.providers else None,
    v1.SetProviderRequest: lambda it: it.providers.set if it.agent.providers else None,
    v1.DisableProviderRequest: lambda it: it.providers.disable if it.agent.providers else None,
}
"""The protocol's methods, and what handles each on a connection; None if the agent has none for it.

All connections share it: of bound methods, each connection would keep more than two KiB.
"""

_OWN = Handlers._of_home(_METHODS)


class AgentConnection:
    """The state of one connection: its peer, its login, and its open sessions."""

    def __init__(self, agent: AgentDefinition, transport: Transport, owner: str = "") -> None:
        self.agent: AgentDefinition = agent
        self._declared = agent.declare()
        # What version 1 cannot express is in the types of version 2.
        more: Any = None if agent.skills is None else {"session": {"prompt": {"skill": {}}}}
        self.offers = Capabilities(more or self._declared, self._declared)
        self.errands = Tasks(asyncio.get_running_loop())
        self._peer = Peer(
            transport,
            role="agent",
            unstable=agent.unstable,
            debug=agent.debug,
            limits=agent.limits,
            spans=agent.spans,
            keep_unknown=agent.keep_unknown,
        )
        self.client = ConnectedClient(self._peer, agent.local)
        self.providers: ConnectionProviders = ConnectionProviders(agent.providers)
        self.authentication: Authentication = Authentication(self)
        self._lifecycle: Lifecycle = Lifecycle(self, owner)
        self._peer.home = self
        self._v2: Handlers | None = None
        """The handlers of version 2, once a client speaks it."""
        self._router = Router(agent.served_versions, self._routes_of, self._choose)
        self._is_chosen = False
        self._choose(min(agent.served_versions))

    async def run(self) -> None:
        """Serve until the connection ends."""
        try:
            async with self._peer:
                await self._peer.connection.closed()
        finally:
            await self._lifecycle.end_all()
            await self.errands.end(self._peer.connection.limits.grace)

    def session(self, session_id: str) -> Session:
        """Return the open session with this id; raise RequestError if it is not open."""
        return self._lifecycle.session(session_id)

    # Versions

    def _choose(self, version: Version) -> None:
        """Register the handlers of this version from now on; before `initialize`, nothing else can arrive."""
        if self._is_chosen and self.client.version == version:
            return
        self._is_chosen, self.client.version = True, version
        self._peer.handle_only(*self._handlers(version), self._router)

    def _routes_of(self, version: Version) -> Routes:
        routes = Routes()
        for source in self._handlers(version):
            source.add_routes(routes, self._peer)
        return routes

    @property
    def tells_auth_status(self) -> bool:
        """Whether the agent answers requests for the state of the login."""
        return self.agent.unstable or self.agent.logins.status is not None

    def _handlers(self, version: Version) -> Sequence[RouteSource]:
        """Return the protocol's methods, and over them the author's own handlers."""
        authors = self.agent.handlers.in_threads()
        suggestions = self.agent.suggestions
        if suggestions is not None and suggestions.suggest is not None:
            from accord.agent.agent_suggestions import SuggestionSessions

            suggested = Handlers()
            SuggestionSessions(suggestions, self._peer, self.authentication.require).register(suggested)
            authors = authors.over(suggested)
        if version == 1:
            is_authored = authors.by_method or authors.others or authors.interceptors
            return (_OWN, authors) if is_authored else (_OWN,)
        if self._v2 is None:
            from accord.agent.v2_methods import V2Methods  # loads the types of version 2

            self._v2 = V2Methods(self).handlers(authors.over(_OWN._bound_to(self)))
        return (self._v2,)

    # Login

    def _initialize(self, request: v1.InitializeRequest) -> v1.InitializeResponse:
        # initialization, Version Negotiation: the same version if it is supported, else the latest that is.
        self.client.info, self.client.meta = request.client_info, request.meta or {}
        methods = self.authentication.methods(self._peer.capabilities)
        declared = self._declared
        if self.agent.suggestions is not None:
            declared = self.agent.suggestions.declared(declared, request.client_capabilities)
        return v1.InitializeResponse(1, declared, methods, self.agent.info, meta=self.agent.announced)

    async def _log_out(self, _: object, context: Context) -> None:
        # rfd-logout-method: sessions are ended, or refused until the user has logged in again; here, refused.
        for session in self._lifecycle.sessions.values():
            session._turns.cancel()
        await self._lifecycle.dismiss_watches()
        await self.authentication.logout()
        context.after_response(self.authentication.tell_status)

    # Settings

    async def _set_mode(self, request: v1.SetSessionModeRequest) -> None:
        await self._set_category(request.session_id, MODE, request.mode_id)

    async def _set_model(self, request: v1.SetSessionModelRequest) -> None:
        await self._set_category(request.session_id, MODEL, request.model_id)

    async def _set_category(self, session_id: str, category: str, value: str) -> None:
        """Choose this value of the first option of a category for the user."""
        session = self.session(session_id)
        async with self._lifecycle.keeping(session):
            option = session.config._option_with(category, value)
            await session.config._set_by_client(option.config_id, value, answered=False)

    async def _set_config_option(self, request: v1.SetSessionConfigOptionRequest) -> v1.SetSessionConfigOptionResponse:
        session = self.session(request.session_id)
        async with self._lifecycle.keeping(session):
            is_here = session.id in self._lifecycle.sessions  # else another client has to be notified, too
            await session.config._set_by_client(request.config_id, request.value, answered=is_here)
        # session-config-options, From the Client: the answer holds all options and their values.
        return v1.SetSessionConfigOptionResponse(options_in_v1(session.config._options()))

    # Turns

    async def _work_on(
        self, request: v1.PromptRequest, context: Context, receipt: PromptReceipt | None = None
    ) -> v1.PromptResponse:
        """Work on a prompt; in version 2, `receipt` answers it and reports how the work ends."""
        if not self.authentication.is_open:
            await self.authentication.require()
        if self._lifecycle.watched and not await self._lifecycle.arrived(request.session_id, context):
            return v1.PromptResponse(CANCELLED)
        session = self._lifecycle.session(request.session_id)
        check_prompt(request.prompt, self.offers)
        place = session._turns.place()
        if (task := asyncio.current_task()) is not None:
            task.set_name(f"session/prompt in session {session.id}")
        turn = Turn(session, context, place, request)
        context.on_cancel(place.cancel)
        place.on_taken = functools.partial(self._add_to_turn, session, turn, receipt)
        place.on_overdue = functools.partial(self._answer_without, turn, receipt)
        try:
            with place:
                if await place.comes():
                    if receipt is not None:
                        receipt.turn = turn
                    place.stop_reason = await self._work(turn, receipt)
            if place.joins is not None and receipt is None:
                place.stop_reason = await place.ended()
        except StoreError as error:
            if error.reason in ("taken", "gone"):
                await self._lifecycle.let_go(session)
            if receipt is not None and error.reason == "taken":
                # Version 2: a session that is not active here is not found.
                raise taken(session.id, NOT_FOUND) from error
            raise public_store_error(error, session.id) from error
        return self._response(turn, place.stop_reason)

    def _response(self, turn: Turn, stop_reason: str) -> v1.PromptResponse:
        usage = turn._spent if self.agent.unstable else None
        return v1.PromptResponse(cast("StopReason", stop_reason), usage, meta=turn.answer_meta or None)

    async def _add_to_turn(self, session: Session, turn: Turn, receipt: PromptReceipt | None) -> AddedPrompt:
        """Make a prompt part of the turn that takes it."""
        await session._begin_turn(turn.prompt, receipt)
        return AddedPrompt(turn.prompt, turn.meta)

    async def _work(self, turn: Turn, receipt: PromptReceipt | None = None) -> str:
        session = turn.session
        turn._endpoints = self.providers.current
        await session._begin_turn(turn.prompt, receipt)
        stop_reason = ""
        try:
            try:
                async with turn._tasks:
                    stop_reason = await self.agent.answer(turn)
            except BaseExceptionGroup as group:
                raise meant_by(group) from None
            if stop_reason == REFUSAL:
                await session._forget_turn()
        finally:
            turn._end()
            await session.save()
            await session._tell_cursors()
            if receipt is None:
                session._activity.rest()
            if session._record.awaits_end:
                await session._keep_end(stop_reason, is_cancelled=turn._place.is_cancelled)
        return stop_reason

    def _answer_without(self, turn: Turn, receipt: PromptReceipt | None) -> None:
        """Answer a cancelled prompt whose work does not end."""
        turn._end()
        if receipt is not None:
            receipt.is_overdue()
            return
        turn.context.answer(self._response(turn, CANCELLED))

    def _cancel(self, notification: v1.CancelNotification) -> None:
        self._lifecycle.cancel(notification.session_id)


def check_prompt(prompt: Sequence[ContentBlock], declared: Capabilities) -> None:
    """Raise RequestError for a prompt that is empty or holds undeclared content."""
    if not prompt:
        raise RequestError.invalid_params("prompt must not be empty", path="$.prompt")
    for position, block in enumerate(prompt):
        if isinstance(block, Unknown) or (block.__needs__ is not None and not declared.has(block.__needs__)):
            # initialization, Prompt capabilities: text and links are the baseline, richer types need a capability.
            raise RequestError.invalid_params(
                "this agent does not accept this type of content in a prompt",
                path=f"$.prompt[{position}]",
                type=block.tag if isinstance(block, Unknown) else str(tag_of(type(block))),
            )
