"""One life of an MCP server: connected, held and let go by one task.

The official package's contexts must be left by the task that entered them (its cancel scopes say so). So each life has
an owner: it enters them, says so, waits until it is told to stop, and leaves them. Nobody cancels it; it is asked to
stop, and while it still connects, its scope is cancelled from outside.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import TYPE_CHECKING, cast

from accord.errors import McpServerError

if TYPE_CHECKING:
    import anyio
    from mcp import Client

CLOSING = 10.0
"""Seconds for a server to end, before its contexts are cancelled; the package's own ladder takes up to six."""

Connect = Callable[[], AbstractAsyncContextManager["Client"]]
"""Makes the contexts of a connection; nothing happens before they are entered."""


class SessionTask:
    """A connection that is being made, is there, or is over."""

    def __init__(self, name: str, connect: Connect, deadline: float) -> None:
        self.client: Client | None = None
        """There as long as the connection is."""
        self.problem: str | None = None
        """Why it is over, unless we have closed it."""
        self._connect = connect
        self._deadline = deadline
        self._settled = asyncio.Event()
        self._stop = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        # Its life is the session's, so it takes nothing along from the request in which it happens to begin.
        self._owner = asyncio.create_task(self._own(), name=f"accord mcp {name}", context=Context())

    @property
    def is_over(self) -> bool:
        return self._settled.is_set() and self.client is None

    async def settled(self) -> None:
        """Wait until the connection is there, or there will be none."""
        await self._settled.wait()

    def lose(self, problem: str) -> None:
        """The other side has gone."""
        if self.problem is None:
            self.problem = problem
        self.client = None
        self._settled.set()
        self._stop.set()

    async def close(self) -> None:
        """Let the server go; waits until nothing of it is left."""
        self._stop.set()
        if not self._settled.is_set() and self._scope is not None:
            self._scope.cancel()
        done, _ = await asyncio.wait([self._owner], timeout=CLOSING)
        if not done and self._scope is not None:
            self._scope.cancel()
            await asyncio.wait([self._owner], timeout=CLOSING)

    async def _own(self) -> None:
        try:
            await self._hold()
        except Exception as error:  # whatever a server does is its own failure, never the session's
            if not self._stop.is_set():
                self.problem = problem(error)
        finally:
            self.client = None
            self._settled.set()

    async def _hold(self) -> None:
        connecting = self._connect()
        import anyio

        with anyio.CancelScope(deadline=anyio.current_time() + self._deadline) as self._scope:
            async with connecting as client:
                self._scope.deadline = math.inf
                self.client = client
                self._settled.set()
                await self._stop.wait()
        if self._scope.cancelled_caught and not self._stop.is_set():
            raise TimeoutError(f"did not answer within {self._deadline:g} seconds")


def problem(error: BaseException) -> str:
    """What went wrong, in a line: of a group of errors, the first."""
    if isinstance(error, BaseExceptionGroup):
        return problem(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    if isinstance(error, McpServerError):
        return error.problem
    return str(error) or type(error).__name__
