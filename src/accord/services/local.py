"""The same services without a connection: for an agent whose client lends nothing, on the agent's own machine.

What a client lends goes before. The author's code does not see the difference: the same requests, the same errors.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from accord.capabilities import Capabilities
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import PeerError, RequestError
from accord.schema import v1
from accord.schema.base import Json, Request
from accord.services.service import ServedSession, Service

ResultT = TypeVar("ResultT")

_asking: ContextVar[ServedSession] = ContextVar("accord_local_session")


class LocalHost:
    """Services of this process for the sessions of an agent in it."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        self._handlers = Handlers()
        declared = v1.ClientCapabilities()
        for service in self._services:
            service.register(self._handlers, lambda _: _asking.get())
            declared = service.declare(declared)
        self.capabilities = Capabilities(declared)
        """What a client that lent these would declare."""

    def stands_in(self, request: Request[Any], client: Capabilities) -> bool:
        """Whether a request is answered here: the client does not lend what it needs, and we do."""
        needed = request.__needs__ or _BELONGS_TO.get(type(request))
        return needed is not None and not client.has(needed) and self.capabilities.has(needed)

    async def request(self, session: ServedSession, request: Request[ResultT]) -> ResultT:
        """The answer; an error is the one that a client's would be."""
        method = request.__method__
        _, handle = self._handlers.typed[method, True]
        token = _asking.set(session)
        try:
            answer = handle(request)
            return cast("ResultT", await answer if inspect.isawaitable(answer) else answer)
        except RequestError as error:
            raise PeerError(method, error.code, error.message, error.data) from error
        finally:
            _asking.reset(token)

    async def release(self, session: ServedSession) -> None:
        """The session has ended."""
        for service in self._services:
            await service.release(session)


class HelpedPeer:
    """A client's peer for one session, with a local host in place of what the client does not lend."""

    def __init__(self, peer: Peer, local: LocalHost, session: ServedSession) -> None:
        self._peer = peer
        self._local = local
        self._session = session

    async def request(self, request: Request[ResultT], /, *, force: bool = False) -> ResultT:
        if not force and self._local.stands_in(request, self._peer.capabilities):
            return await self._local.request(self._session, request)
        return await self._peer.request(request, force=force)

    async def request_raw(self, method: str, params: Json = None, /, *, session_id: str | None = None) -> Json:
        return await self._peer.request_raw(method, params, session_id=session_id)


_BELONGS_TO: dict[Any, str] = dict.fromkeys(
    (
        v1.TerminalOutputRequest,
        v1.WaitForTerminalExitRequest,
        v1.KillTerminalRequest,
        v1.ReleaseTerminalRequest,
    ),
    "terminal",
)
"""Requests that need nothing themselves, as they follow one that does."""
