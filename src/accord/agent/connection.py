"""One connection of an agent: the protocol's methods, each a few lines onto what does the work."""

from __future__ import annotations

import asyncio
import functools
from typing import cast

from accord.agent.connected_client import ConnectedClient
from accord.agent.content import check_prompt
from accord.agent.definition import AgentDefinition
from accord.agent.lifecycle import Lifecycle
from accord.agent.login import Authentication
from accord.agent.open_session import OpenSession, SessionSurroundings
from accord.agent.prompt_queue import CANCELLED
from accord.agent.remote_client import ClientLink
from accord.agent.running_turn import RunningTurn, meant_by
from accord.agent.store_errors import told
from accord.agent.subagent_updates import session_of
from accord.agent.turn import Turn
from accord.capabilities import Capabilities
from accord.engine.context import Context
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import StoreError
from accord.schema import v1
from accord.schema.v1.prompt import StopReason
from accord.tasks import Tasks
from accord.transports.base import Transport

VERSION = 1

REFUSAL = "refusal"


class AgentConnection:
    """What one connection has: a peer, who is logged in, and the sessions that are open."""

    def __init__(self, agent: AgentDefinition, transport: Transport, owner: str = "") -> None:
        self._agent = agent
        self._declared = agent.declare()
        self._offers = Capabilities(self._declared)
        self._errands = Tasks(asyncio.get_running_loop())
        self._peer = Peer(
            transport,
            role="agent",
            unstable=agent.unstable,
            debug=agent.debug,
            limits=agent.limits,
            spans=agent.spans,
        )
        self._client = ConnectedClient(self._peer, agent.local)
        self._authentication = Authentication(
            agent.logins, ClientLink(self._client, self._peer), unstable=agent.unstable
        )
        self._lifecycle = Lifecycle(self._surroundings(), self._authentication, agent.store, owner, agent.opened)
        self._peer.handle(self._handlers())
        self._peer.home = self

    def _surroundings(self) -> SessionSurroundings:
        return SessionSurroundings(
            client=self._client,
            errands=self._errands,
            name=self._agent.info.name,
            program=self._agent.program,
            on_config=self._agent.config_changed,
            second_prompt=self._agent.second_prompt,
            cancel_grace=self._agent.cancel_grace,
            permissions=self._agent.permission_memory,
            commands=self._agent.commands,
            titles_sessions=self._agent.titles_sessions,
            state_type=self._agent.state_type,
        )

    async def run(self) -> None:
        """Serve until the link ends."""
        try:
            async with self._peer:
                await self._peer.connection.closed()
        finally:
            await self._lifecycle.end_all()
            await self._errands.end(self._peer.connection.limits.grace)

    def session(self, session_id: str) -> OpenSession:
        """The open session with this id; RequestError if it is not open."""
        return self._lifecycle.session(session_id)

    def _handlers(self) -> Handlers:
        """The protocol's methods, and over them what the author handles for himself."""
        handlers = Handlers()
        handlers.on(v1.InitializeRequest)(self._initialize)
        self._lifecycle.register(handlers)
        handlers.on(v1.PromptRequest)(self._prompt)
        handlers.on(v1.CancelNotification)(self._cancel)
        handlers.on(v1.SetSessionModeRequest)(self._set_mode)
        handlers.on(v1.SetSessionModelRequest)(self._set_model)
        handlers.on(v1.SetSessionConfigOptionRequest)(self._set_config_option)
        if self._agent.logins.ways:
            handlers.on(v1.AuthenticateRequest)(self._authenticate)
        if self._agent.logins.logout is not None:
            handlers.on(v1.LogoutRequest)(self._logout)
        handlers.interceptors.append(self._client.interceptors)
        return self._agent.handlers.over(handlers)

    # Who is there

    def _initialize(self, request: v1.InitializeRequest) -> v1.InitializeResponse:
        # initialization, Version Negotiation: the same version if it is supported, else the latest that is.
        self._client.info = request.client_info
        methods = self._authentication.methods(self._peer.capabilities)
        return v1.InitializeResponse(VERSION, self._declared, methods, self._agent.info)

    async def _authenticate(self, request: v1.AuthenticateRequest, context: Context) -> None:
        await self._authentication.authenticate(request, context)

    async def _logout(self, _: v1.LogoutRequest) -> None:
        # rfd-logout-method: sessions are ended, or refused until the user has logged in again; here, refused.
        for session in self._lifecycle.sessions.values():
            session.turns.cancel()
        await self._authentication.logout()

    # Settings

    async def _set_mode(self, request: v1.SetSessionModeRequest) -> None:
        session = self.session(request.session_id)
        async with self._lifecycle.keeping(session):
            await session.config.set_mode_by_client(request.mode_id)

    async def _set_model(self, request: v1.SetSessionModelRequest) -> None:
        session = self.session(request.session_id)
        async with self._lifecycle.keeping(session):
            await session.config.set_model_by_client(request.model_id)

    async def _set_config_option(self, request: v1.SetSessionConfigOptionRequest) -> v1.SetSessionConfigOptionResponse:
        session = self.session(request.session_id)
        async with self._lifecycle.keeping(session):
            await session.config.set_by_client(request.config_id, request.value)
        # session-config-options, From the Client: the answer holds all options and their values.
        return v1.SetSessionConfigOptionResponse(session.config.options())

    # Turns

    async def _prompt(self, request: v1.PromptRequest, context: Context) -> v1.PromptResponse:
        await self._authentication.require()
        session = self.session(request.session_id)
        check_prompt(request.prompt, self._offers)
        place = session.turns.place()
        if (task := asyncio.current_task()) is not None:
            task.set_name(f"session/prompt in session {session.id}")
        running = RunningTurn(session, context, place)
        turn = Turn(running, request)
        context.on_cancel(place.cancel)
        place.when_overdue(functools.partial(self._answer_without, running, turn))
        try:
            with place:
                if await place.comes():
                    place.stop_reason = await self._work(running, turn)
        except StoreError as error:
            if error.reason in ("taken", "gone"):
                await self._lifecycle.let_go(session)
            raise told(error, session.id) from error
        return self._response(running, turn, place.stop_reason)

    def _response(self, running: RunningTurn, turn: Turn, stop_reason: str) -> v1.PromptResponse:
        usage = running.spent if self._agent.unstable else None
        return v1.PromptResponse(cast("StopReason", stop_reason), usage, meta=turn.answer_meta or None)

    async def _work(self, running: RunningTurn, turn: Turn) -> str:
        session = running.session
        await session.begin_turn(turn.prompt)
        try:
            try:
                async with running.tasks:
                    stop_reason = await self._agent.answer(turn)
            except BaseExceptionGroup as group:
                raise meant_by(group) from None
            if stop_reason == REFUSAL:
                await session.forget_turn()
        finally:
            running.end()
            await session.face.save()
        return stop_reason

    def _answer_without(self, running: RunningTurn, turn: Turn) -> None:
        """Answer a prompt whose work does not end though it was cancelled."""
        running.end()
        running.context.answer(self._response(running, turn, CANCELLED))

    def _cancel(self, notification: v1.CancelNotification) -> None:
        session_id = notification.session_id
        session = self._lifecycle.sessions.get(session_of(session_id))
        if session is None:
            return
        if session.id == session_id:
            session.turns.cancel()
        elif (stop := session.subagents.get(session_id)) is not None:
            stop()
