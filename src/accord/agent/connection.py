"""One connection of an agent: the protocol's methods, each a few lines onto what does the work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from accord.agent.content import check_prompt
from accord.agent.lifecycle import Lifecycle
from accord.agent.login import Authentication
from accord.agent.prompt_queue import CANCELLED
from accord.agent.remote_client import ClientLink
from accord.agent.session import Session
from accord.agent.store_errors import not_found, told
from accord.agent.turn import Turn, meant_by
from accord.capabilities import Capabilities
from accord.engine.handlers import Context, Handlers
from accord.engine.peer import Peer
from accord.errors import StoreError
from accord.schema import v1
from accord.schema.v1.prompt import StopReason
from accord.tasks import Tasks
from accord.transports.base import Transport

if TYPE_CHECKING:
    from accord.agent.agent import Agent

VERSION = 1

REFUSAL = "refusal"


class AgentConnection:
    """What one connection has: a peer, who is logged in, and the sessions that are open."""

    def __init__(self, agent: Agent, transport: Transport, owner: str = "") -> None:
        self.agent = agent
        self.owner = owner
        """Whose sessions these are."""
        self.sessions: dict[str, Session] = {}
        self.lifecycle = Lifecycle(self)
        self.declared = agent.declare()
        self._offers = Capabilities(self.declared)
        self.client_info: v1.Implementation | None = None
        self.errands = Tasks(asyncio.get_running_loop())
        """What has to be done though nobody waits for it, such as releasing a terminal."""
        self.peer = Peer(
            transport,
            self._handlers(),
            role="agent",
            unstable=agent.unstable,
            debug=agent.debug,
            limits=agent.limits,
            spans=agent.spans,
        )
        self.client = ClientLink(self, self.peer)
        self.authentication = Authentication(self, agent.doors)
        self.peer.home = self

    async def run(self) -> None:
        """Serve until the link ends."""
        try:
            async with self.peer:
                await self.peer.connection.closed()
        finally:
            await self.lifecycle.end_all()
            await self.errands.end(self.peer.connection.limits.grace)

    def session(self, session_id: str) -> Session:
        """The open session of this id; RequestError if there is none."""
        session = self.sessions.get(session_id)
        if session is None:
            raise not_found(session_id)
        session.known()  # who names it has its id: that can be here before the task that would say so
        return session

    def _handlers(self) -> Handlers:
        """The protocol's methods, and over them what the author handles for himself."""
        handlers = Handlers()
        handlers.on(v1.InitializeRequest)(self._initialize)
        self.lifecycle.register(handlers)
        handlers.on(v1.PromptRequest)(self._prompt)
        handlers.on(v1.CancelNotification)(self._cancel)
        handlers.on(v1.SetSessionModeRequest)(self._set_mode)
        handlers.on(v1.SetSessionConfigOptionRequest)(self._set_config_option)
        if self.agent.doors.ways:
            handlers.on(v1.AuthenticateRequest)(self._authenticate)
        if self.agent.doors.logout is not None:
            handlers.on(v1.LogoutRequest)(self._logout)
        return self.agent.handlers.over(handlers)

    # Who is there

    def _initialize(self, request: v1.InitializeRequest) -> v1.InitializeResponse:
        # initialization, Version Negotiation: the same version if it is supported, else the latest that is.
        self.client_info = request.client_info
        methods = self.authentication.methods(self.peer.capabilities)
        return v1.InitializeResponse(VERSION, self.declared, methods, self.agent.info)

    async def _authenticate(self, request: v1.AuthenticateRequest, context: Context) -> None:
        await self.authentication.authenticate(request, context)

    async def _logout(self, _: v1.LogoutRequest) -> None:
        # rfd-logout-method: sessions are ended, or refused until the user has logged in again; here, refused.
        for session in self.sessions.values():
            session.turns.cancel()
        await self.authentication.logout()

    # Settings

    async def _set_mode(self, request: v1.SetSessionModeRequest) -> None:
        session = self.session(request.session_id)
        async with self.lifecycle.keeping(session):
            await session.modes.set_by_client(request.mode_id)

    async def _set_config_option(self, request: v1.SetSessionConfigOptionRequest) -> v1.SetSessionConfigOptionResponse:
        session = self.session(request.session_id)
        async with self.lifecycle.keeping(session):
            await session.config.set_by_client(request.config_id, request.value)
        # session-config-options, From the Client: the answer holds all options and their values.
        return v1.SetSessionConfigOptionResponse(session.config.options())

    # Turns

    async def _prompt(self, request: v1.PromptRequest, context: Context) -> v1.PromptResponse:
        await self.authentication.require()
        session = self.session(request.session_id)
        check_prompt(request.prompt, self._offers)
        place = session.turns.join()
        turn = Turn(session, request, context, place)
        context.on_cancel(place.cancel)
        try:
            stop_reason = await place.live(lambda: self._work(turn), lambda: self._give_up(turn))
        except StoreError as error:
            if error.reason in ("taken", "gone"):
                await self.lifecycle.let_go(session)
            raise told(error, session.id) from error
        return self._response(turn, stop_reason)

    def _response(self, turn: Turn, stop_reason: str) -> v1.PromptResponse:
        usage = turn.spent if self.agent.unstable else None
        return v1.PromptResponse(cast("StopReason", stop_reason), usage, meta=turn.answer_meta or None)

    async def _work(self, turn: Turn) -> str:
        await turn.session.begin_turn(turn.prompt)
        try:
            try:
                async with turn.tasks:
                    stop_reason = await self.agent.answer(turn)
            except BaseExceptionGroup as group:
                raise meant_by(group) from None
            if stop_reason == REFUSAL:
                await turn.session.forget_turn()
        finally:
            turn.end()
            await turn.session.save()
        return stop_reason

    def _give_up(self, turn: Turn) -> None:
        """Answer a prompt whose work does not end though it was cancelled."""
        turn.end()
        turn.context.answer(self._response(turn, CANCELLED))

    def _cancel(self, notification: v1.CancelNotification) -> None:
        session = self.sessions.get(notification.session_id)
        if session is not None:
            session.turns.cancel()
