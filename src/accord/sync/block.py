"""`ConnectionBlock`: the `with` block of `accord.sync.connect`, from connecting to the end of the thread."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

from accord.client import remote_agent
from accord.sync.portal import Portal
from accord.sync.remote_agent import RemoteAgent


class ConnectionBlock:
    """The block in which an agent is connected: `with accord.sync.connect(...) as remote`."""

    def __init__(self, block: AbstractAsyncContextManager[remote_agent.RemoteAgent]) -> None:
        self._block = block
        self._portal: Portal | None = None

    def __enter__(self) -> RemoteAgent:
        """Connect; raises one clear error when that fails."""
        portal = Portal(self._block)
        remote = RemoteAgent(portal, portal.open())
        self._portal = portal
        return remote

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the connection, the agent's process if it has one, and the thread, in bounded time."""
        if self._portal is not None:
            self._portal.close(interrupted=isinstance(error, KeyboardInterrupt))
