"""One connection to an MCP server: opened, held and closed by one task.

The official package's contexts must be left by the task that entered them, because of their cancel scopes. So each
connection has an owner task: it enters the contexts, reports that, waits until it is asked to stop, and leaves them.
The task is never cancelled; while it is still connecting, its scope is cancelled from outside.
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
"""Seconds that a server has to end before its contexts are cancelled; the package's own steps take up to six."""

Connect = Callable[[], AbstractAsyncContextManager["Client"]]
"""Makes the contexts of a connection; nothing happens before they are entered."""


class SessionTask:
    """A connection that is opening, open, or closed."""

    def __init__(self, name: str, connect: Connect, deadline: float) -> None:
        self.client: Client | None = None
        """The package's client while the connection is open, else None."""
        self.problem: str | None = None
        """Why the connection has ended, unless we closed it."""
        self._connect = connect
        self._deadline = deadline
        self._settled = asyncio.Event()
        self._stop = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        # The task lives as long as the session, so it must not inherit the context of the request that starts it.
        self._owner = asyncio.create_task(self._own(), name=f"accord mcp {name}", context=Context())

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended or could not be opened."""
        return self._settled.is_set() and self.client is None

    async def settled(self) -> None:
        """Wait until the connection is open or has failed."""
        await self._settled.wait()

    def lose(self, problem: str) -> None:
        """End the connection, because the server is gone."""
        if self.problem is None:
            self.problem = problem
        self.client = None
        self._settled.set()
        self._stop.set()

    async def close(self) -> None:
        """Close the connection, and wait until the server has ended."""
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
        except Exception as error:  # a server's failure must not become the session's
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
    """What went wrong, in one line; of a group of errors, the first."""
    if isinstance(error, BaseExceptionGroup):
        return problem(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    if isinstance(error, McpServerError):
        return error.problem
    return str(error) or type(error).__name__
