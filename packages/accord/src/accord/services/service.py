"""The base class of lent services, and the session as services see it.

A service is created once and may serve many connections. It registers handlers for each connection; they find the
session by its id. Its data of a session is stored under the session object, because two agents may both use the id `1`.
A service knows neither the client nor the agent, so an agent can use it for itself (`HelpedPeer`).

A client must answer a question although its user may never do so. When the turn is cancelled, the service answers at
once, and the function that asks the user is cancelled: it has `PATIENCE` seconds to close its window.

Services without a connection, for an agent whose client lends none: they run on the agent's own machine.

The services that the client lends take precedence. The agent's code sees no difference: same requests, same errors.

A service registers its handlers with a function that finds a session by its id. Here each session has its own handlers,
registered with a function that knows only this session: two connections may have sessions with the same id.
"""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from accord._internal.tasks import in_thread_of_user
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import PeerError, RequestError
from accord.project.confined import Roots
from accord.schema import v1
from accord.schema.base import Json, Request
from accord.schema.capabilities import Capabilities, capability_for
from accord.session import ToolCallState


class ServedSession(Protocol):
    """The session that sent a request, as services see it. It is the same object for the session's whole life."""

    @property
    def id(self) -> v1.SessionId:
        """The session's id, unique within its connection only."""
        ...

    @property
    def agent(self) -> str:
        """The agent's name: the one that it reports, or its command."""
        ...

    @property
    def program(self) -> str:
        """The agent's identity, whatever name it reports: its program, its URL's origin, or its module."""
        ...

    @property
    def cwd(self) -> Path:
        """The working directory."""
        ...

    @property
    def roots(self) -> Roots:
        """`cwd` and the additional directories: its files, and the folders of its commands, must be inside."""
        ...

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """Return a tool call with all of its updates so far; None if it is unknown."""
        ...

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """Apply a permission request's changes to a tool call, and return the tool call."""
        ...


SessionOf: TypeAlias = Callable[[v1.SessionId], ServedSession]
"""Finds a session of one connection by its id; raises RequestError if there is none."""


class Service(ABC):
    """A service that a client lends to agents.

    Write your own service as a subclass:

        class Clock(accord.Service):
            def declare(self, capabilities):
                return capabilities

            def register(self, handlers, session_of):
                @handlers.on(WhatTimeIsIt)
                def answer(request):
                    return Time(...)
    """

    @abstractmethod
    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Return these capabilities with those of this service added."""

    @abstractmethod
    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Register handlers for the requests of one connection. `session_of` finds a session by its id."""

    def register_v2(self, handlers: Handlers, session_of: SessionOf) -> None:  # noqa: B027
        """Register handlers for a connection of version 2, over those of `register`.

        Handlers for messages of version 1 are called with converted messages there. Register one here for a message of
        version 2 that contains more.
        """

    def turn_cancelled(self, session: ServedSession) -> None:  # noqa: B027
        """Answer the session's open questions with `cancelled`: the user has cancelled the turn."""

    async def release(self, session: ServedSession) -> None:  # noqa: B027
        """Release all data of the session: it, or its connection, has ended."""


def handlers_of(service: Service, session_of: SessionOf, *, version: int = 1) -> Handlers:
    """Return the handlers of a service for one connection; for version 2, including its additional ones."""
    handlers = Handlers()
    (service.register if version == 1 else service.register_v2)(handlers, session_of)
    return handlers.in_threads(of_client=True)


Q = TypeVar("Q")
A = TypeVar("A")

PATIENCE = 1.0
"""Seconds that a cancelled question has to disappear from the user's screen."""


class TurnCancelledError(Exception):
    """The turn was cancelled before the user answered."""


class OpenQuestions:
    """The questions of one service that are not answered yet, by session."""

    def __init__(self) -> None:
        self._cancellations: WeakKeyDictionary[ServedSession, set[asyncio.Future[None]]] = WeakKeyDictionary()

    async def ask(self, session: ServedSession | None, function: Callable[[Q], A | Awaitable[A]], question: Q) -> A:
        """Return the user's answer, or raise TurnCancelledError.

        A question without a session belongs to no turn, so nothing cancels it.
        """
        cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        of_session = set[asyncio.Future[None]]() if session is None else self._cancellations.setdefault(session, set())
        of_session.add(cancelled)
        asking = asyncio.ensure_future(_answer(function, question))
        try:
            waited_for: list[asyncio.Future[Any]] = [asking, cancelled]
            await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
            if cancelled.done():
                raise TurnCancelledError
            return asking.result()
        finally:
            of_session.discard(cancelled)
            await _withdraw(asking)

    def cancel(self, session: ServedSession) -> None:
        """Cancel all questions of a session."""
        for cancelled in self._cancellations.get(session, ()):
            if not cancelled.done():
                cancelled.set_result(None)


async def _answer(function: Callable[[Q], A | Awaitable[A]], question: Q) -> A:
    return cast("A", await in_thread_of_user(function)(question))


async def _withdraw(asking: asyncio.Future[Any]) -> None:
    if not asking.done():
        asking.cancel()
        await asyncio.wait([asking], timeout=PATIENCE)
    if asking.done() and not asking.cancelled():
        asking.exception()  # marks it as retrieved; after a cancellation the answer no longer matters


ResultT = TypeVar("ResultT")


class ClientRequester(Protocol):
    """Sends requests to the client: its peer, or what translates for it."""

    def request(self, request: Request[ResultT], /, *, force: bool = False) -> Awaitable[ResultT]: ...

    def request_raw(self, method: str, params: Json = None, /, *, session_id: str | None = None) -> Awaitable[Json]: ...


class LocalHost:
    """The services of this process, for sessions of an agent in the same process."""

    def __init__(self, services: Sequence[Service]) -> None:
        self.services = list(services)
        declared = v1.ClientCapabilities()
        for service in self.services:
            declared = service.declare(declared)
        self.capabilities = Capabilities(declared)
        """The capabilities that a client with these services would declare."""

    def stands_in(self, request: Request[Any], client: Capabilities) -> bool:
        """Whether to answer a request here: the client lacks the capability, and these services have it."""
        needed = capability_for(type(request))
        return needed is not None and not client.has(needed) and self.capabilities.has(needed)

    def handlers_for(self, session: ServedSession) -> Handlers:
        """Handlers of these services that work for this session."""
        handlers = Handlers()
        for service in self.services:
            handlers = handlers_of(service, lambda _: session).over(handlers)
        return handlers

    async def release(self, session: ServedSession) -> None:
        """Release all data of a session that has ended."""
        for service in self.services:
            await service.release(session)


class HelpedPeer:
    """The client's peer for one session; local services replace those that the client does not lend."""

    def __init__(self, asks: ClientRequester, peer: Peer, local: LocalHost, session: ServedSession) -> None:
        self._asks = asks
        self._peer = peer
        self._local = local
        self._session = session
        self._handlers: Handlers | None = None
        """The handlers of the local services, once they are needed."""

    async def request(self, request: Request[ResultT], /, *, force: bool = False) -> ResultT:
        """Send a request to the client, or answer it here if the client cannot. `force` always sends it."""
        if not force and self._local.stands_in(request, self._peer.capabilities):
            return await self._answer_here(request)
        return await self._asks.request(request, force=force)

    async def request_raw(self, method: str, params: Json = None, /, *, session_id: str | None = None) -> Json:
        """Send a request to the client."""
        return await self._asks.request_raw(method, params, session_id=session_id)

    async def _answer_here(self, request: Request[ResultT]) -> ResultT:
        """Answer a request. Errors are those that a client would answer with."""
        if self._handlers is None:
            self._handlers = self._local.handlers_for(self._session)
        method = request.__method__
        _, handle = self._handlers.by_method[method, True]
        try:
            answer = handle(request)
            return cast("ResultT", await answer if inspect.isawaitable(answer) else answer)
        except RequestError as error:
            refusal = PeerError(method, error.code, error.message, error.data)
            refusal.safe_to_tell = True  # a RequestError is made for the client
            raise refusal from error
