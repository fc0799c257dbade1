"""`UnlessLeft`: breaks off what is done for a client when the client has left.

Most requests are answered within milliseconds. For these, no task is started that only notices whether the client
leaves meanwhile: the first look is taken later.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from accord.http.server.asgi import Receive, gone
from accord.http.server.validation import Refusal

LOOKS_AFTER = 0.5
"""Seconds until it is noticed that the client has left."""


class UnlessLeft:
    """Breaks off the block when the client of this request has left, and raises Refusal then."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._patience = asyncio.timeout(None)
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._later = self._loop.call_later(LOOKS_AFTER, self._watch)
        await self._patience.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._later.cancel()
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
        try:
            await self._patience.__aexit__(kind, error, trace)
        except TimeoutError:
            raise Refusal(400, "the client closed the connection") from None

    def _watch(self) -> None:
        self._watching = self._loop.create_task(gone(self._receive), name="accord hosts: watch a client")
        self._watching.add_done_callback(self._has_left)

    def _has_left(self, _: asyncio.Task[None]) -> None:
        if self._watching is not None:  # the block is not over
            self._patience.reschedule(self._loop.time())
