"""`TranslatedPeer`: the requests of callers who use the classes of version 1, sent on a connection of version 2.

`v2_requests` converts; this file sends. A connection of version 1 has none of it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from accord.capabilities import CapabilityGuard
from accord.client.v2_requests import ALWAYS_SUCCEEDS, notification_as_v2, request_as_v2, result_as_v1
from accord.engine.peer import Peer, Posted
from accord.errors import NOT_FOUND, PeerError
from accord.schema import v2
from accord.schema.base import Notification, Request, result_type

ResultT = TypeVar("ResultT")


_guards: dict[type, CapabilityGuard] = {}


def _guard_of(cls: type[Request[Any]]) -> CapabilityGuard:
    guard = _guards.get(cls)
    if guard is None:
        guard = _guards[cls] = CapabilityGuard(cls)
    return guard


class TranslatedPeer:
    """An agent of version 2, for callers who use the classes of either version."""

    def __init__(self, peer: Peer, declared: v2.AgentCapabilities) -> None:
        self._peer = peer
        self._declared = declared

    async def request(
        self,
        request: Request[ResultT],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        idle_timeout: float | None = None,
        force: bool = False,
    ) -> ResultT:
        """Send a request; its result is in the version of the request."""
        try:
            result = await self._peer.request(
                self._sendable(request, force=force),
                timeout=timeout,
                idle_timeout=idle_timeout,
                force=True,
            )
        except PeerError as error:
            if error.code == NOT_FOUND and isinstance(request, ALWAYS_SUCCEEDS):
                # schema, session/close and session/delete: what is not there is closed, or deleted.
                return result_type(request.__class__)()  # type: ignore[no-any-return]
            raise
        answer: ResultT = result_as_v1(request, result)
        return answer

    async def open_session(self, request: Request[Any], timeout: float | None) -> Any:  # noqa: ASYNC109
        """Send a request that opens a session; its result is in version 2, which a session of version 2 takes."""
        return await self._peer.request(self._sendable(request, force=False), timeout=timeout, force=True)

    def post(self, request: Request[Any]) -> Posted[Any]:
        """Send a request now, and handle its answer, which is in version 2, later."""
        return self._peer.post(self._sendable(request, force=False), force=True)

    async def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Send a notification."""
        await self._peer.notify(notification_as_v2(notification), force=force)

    def _sendable(self, request: Request[Any], *, force: bool) -> Request[Any]:
        """The request of version 2 to send; raises CapabilityMissing unless it may be sent."""
        if not force:
            # By the class that was given: capabilities are asked for by their places in version 1.
            _guard_of(request.__class__).check(request, self._peer.capabilities, unstable=self._peer.unstable)
        return request_as_v2(request, self._declared)
