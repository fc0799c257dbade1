"""One connection of an agent: the protocol's methods, each a few lines onto what does the work."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from accord.agent.content import check_prompt
from accord.agent.remote_client import Client
from accord.agent.roots import Roots
from accord.agent.session import Session
from accord.agent.turn import Turn
from accord.agent.turns import Place
from accord.dispatch import Peer
from accord.errors import NOT_FOUND, RequestError
from accord.handlers import Context, Handlers
from accord.schema import v1
from accord.schema.v1.prompt import StopReason
from accord.transports.base import Transport

if TYPE_CHECKING:
    from accord.agent.agent import Agent

VERSION = 1


class Service:
    """What one connection has: a peer, and the sessions that are open on it."""

    def __init__(self, agent: Agent, transport: Transport) -> None:
        self.agent = agent
        self.sessions: dict[str, Session] = {}
        self.declared = agent.declare()
        self.peer = Peer(transport, self._handlers(), role="agent", unstable=agent.unstable, debug=agent.debug)
        self.client = Client(self.peer)

    async def run(self) -> None:
        """Serve until the link ends."""
        try:
            async with self.peer:
                await self.peer.connection.closed()
        finally:
            for session in list(self.sessions.values()):
                await self._close(session)

    def session(self, session_id: str) -> Session:
        """The open session of this id; RequestError if there is none."""
        session = self.sessions.get(session_id)
        if session is None:
            raise RequestError(NOT_FOUND, "Session not found", {"sessionId": session_id})
        return session

    def _handlers(self) -> Handlers:
        """The protocol's methods, and over them what the author handles for himself."""
        handlers = Handlers()
        handlers.on(v1.InitializeRequest)(self._initialize)
        handlers.on(v1.NewSessionRequest)(self._new_session)
        handlers.on(v1.CloseSessionRequest)(self._close_session)
        handlers.on(v1.PromptRequest)(self._prompt)
        handlers.on(v1.CancelNotification)(self._cancel)
        return self.agent.handlers.over(handlers)

    def _initialize(self, request: v1.InitializeRequest) -> v1.InitializeResponse:
        # initialization, Version Negotiation: the same version if it is supported, else the latest that is.
        self.client.info = request.client_info
        return v1.InitializeResponse(VERSION, self.declared, agent_info=self.agent.info)

    # Sessions

    async def _new_session(self, request: v1.NewSessionRequest, context: Context) -> v1.NewSessionResponse:
        roots = Roots.checked(request.cwd, request.additional_directories)
        session_id = v1.SessionId(uuid.uuid4().hex)
        session = Session(self, session_id, roots, mcp_servers=request.mcp_servers, meta=request.meta)
        await self._open(session)
        context.after_response(session.announce)
        return v1.NewSessionResponse(session.id)

    async def _open(self, session: Session) -> None:
        self.sessions[session.id] = session
        try:
            await self.agent.opened(session)
        except BaseException:
            await self._close(session)
            raise

    async def _close_session(self, request: v1.CloseSessionRequest) -> None:
        await self._close(self.session(request.session_id))

    async def _close(self, session: Session) -> None:
        self.sessions.pop(session.id, None)
        await session.close()

    # Turns

    async def _prompt(self, request: v1.PromptRequest, context: Context) -> v1.PromptResponse:
        session = self.session(request.session_id)
        check_prompt(request.prompt, self.declared.prompt_capabilities)
        answer_meta: dict[str, object] = {}

        async def work(_: Place) -> str:
            for block in request.prompt:
                session.record(v1.UserMessageChunk(block))
            async with one_error(), asyncio.TaskGroup() as tasks:
                turn = Turn(session, request, context, tasks)
                try:
                    return await self.agent.answer(turn)
                finally:
                    answer_meta.update(turn.answer_meta)
                    turn.end()

        stop_reason = await session.turns.take(work)
        return v1.PromptResponse(cast("StopReason", stop_reason), meta=answer_meta or None)

    def _cancel(self, notification: v1.CancelNotification) -> None:
        session = self.sessions.get(notification.session_id)
        if session is not None:
            session.turns.cancel()


@asynccontextmanager
async def one_error() -> AsyncGenerator[None]:
    """What a task group wraps, as it was raised: of several errors, the first."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
