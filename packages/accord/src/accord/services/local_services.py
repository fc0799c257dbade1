"""Services without a connection, for an agent whose client lends none: they run on the agent's own machine.

The services that the client lends take precedence. The agent's code sees no difference: same requests, same errors.

A service registers its handlers with a function that finds a session by its id. Here each session has handlers of its
own, registered with a function that knows only this session: two connections may have sessions with the same id.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypeVar, cast

from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import PeerError, RequestError
from accord.schema import v1
from accord.schema.base import Json, Request
from accord.schema.capabilities import Capabilities
from accord.services.service import ServedSession, Service

ResultT = TypeVar("ResultT")


class ClientRequester(Protocol):
    """Sends requests to the client: its peer, or what translates for it."""

    def request(self, request: Request[ResultT], /, *, force: bool = False) -> Awaitable[ResultT]: ...

    def request_raw(self, method: str, params: Json = None, /, *, session_id: str | None = None) -> Awaitable[Json]: ...


class LocalHost:
    """The services of this process, for sessions of an agent in the same process."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        declared = v1.ClientCapabilities()
        for service in self._services:
            declared = service.declare(declared)
        self.capabilities = Capabilities(declared)
        """The capabilities that a client with these services would declare."""

    def stands_in(self, request: Request[Any], client: Capabilities) -> bool:
        """Whether to answer a request here: the client lacks the capability, and these services have it."""
        needed = request.__needs__ or _BELONGS_TO.get(type(request))
        return needed is not None and not client.has(needed) and self.capabilities.has(needed)

    def handlers_for(self, session: ServedSession) -> Handlers:
        """Handlers of these services that work for this session."""
        handlers = Handlers()
        for service in self._services:
            service.register(handlers, lambda _: session)
        return handlers

    async def release(self, session: ServedSession) -> None:
        """Release everything that is kept for a session that has ended."""
        for service in self._services:
            await service.release(session)


class HelpedPeer:
    """The client's peer for one session; local services replace what the client does not lend."""

    def __init__(self, asks: ClientRequester, peer: Peer, local: LocalHost, session: ServedSession) -> None:
        self._asks = asks
        self._peer = peer
        self._local = local
        self._session = session
        self._handlers: Handlers | None = None
        """Those of the local services, once they are needed."""

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
        _, handle = self._handlers.typed[method, True]
        try:
            answer = handle(request)
            return cast("ResultT", await answer if inspect.isawaitable(answer) else answer)
        except RequestError as error:
            refusal = PeerError(method, error.code, error.message, error.data)
            refusal.safe_to_tell = True  # a RequestError is made to be told
            raise refusal from error


_BELONGS_TO: dict[Any, str] = dict.fromkeys(
    (
        v1.TerminalOutputRequest,
        v1.WaitForTerminalExitRequest,
        v1.KillTerminalRequest,
        v1.ReleaseTerminalRequest,
    ),
    "terminal",
)
"""Requests without a capability of their own: they follow a request that needs this one."""
