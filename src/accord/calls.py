"""The two halves of a call: `Asked`, which we wait for, and `Owed`, which we must answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Answer
from accord.lanes import Held, Inside, inside


class Asked:
    """A call of ours, from sending it until its answer may be seen. Awaiting it gives the answer."""

    __slots__ = ("answer", "future", "id", "lane", "maker", "method", "patient")

    def __init__(self, method: str, lane: str | None, *, patient: bool, loop: asyncio.AbstractEventLoop) -> None:
        self.id: RequestId = 0
        self.method = method
        self.lane = lane
        self.patient = patient
        """Whether it may take long without harm, so that we may stop reading meanwhile (see `intake`)."""
        self.maker: Inside | None = inside.get()
        self.future: asyncio.Future[Answer] = loop.create_future()
        self.answer: Answer | None = None

    async def wait(self) -> Answer:
        waiter = inside.get()
        if waiter is None:
            return await self.future
        waiter.begins_to_wait(self)
        try:
            return await self.future
        finally:
            waiter.no_longer_waits(self)

    def release(self) -> None:
        """The answer may be seen now: everything that had to be handled before it has been."""
        if self.answer is not None and not self.future.done():
            self.future.set_result(self.answer)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # who no longer awaits it need not be told


class Owed:
    """A call of theirs, from its arrival until it is answered."""

    __slots__ = ("_after", "_begin", "cancelled", "id", "lane", "method", "running", "stepped", "task")

    def __init__(self, request_id: RequestId, method: str) -> None:
        self.id = request_id
        self.method = method
        self.lane: str | None = None
        self.running = True
        self.cancelled = False
        self.stepped = False
        """Whether the handler's task has had its first step."""
        self.task: asyncio.Task[None] | None = None
        self._begin: Callable[[], None] | None = None
        self._after: list[Callable[[], Awaitable[Any] | None]] | None = None

    # A request's handler never holds up an answer, so nobody need know when it waits.

    def begins_to_wait(self, answer: Held) -> None: ...

    def no_longer_waits(self, answer: Held) -> None: ...

    def will_begin(self, begin: Callable[[], None]) -> None:
        self._begin = begin

    def begin(self) -> None:
        """Start the handler; a second time does nothing."""
        begin, self._begin = self._begin, None
        if begin is not None:
            begin()

    def cancel(self) -> None:
        """Cancel the handler. One that has not started is started first, so that it sees its cancellation."""
        self.cancelled = True
        self.begin()
        if self.task is not None:
            # The task's first step is already in the loop's queue; this comes behind it.
            asyncio.get_running_loop().call_soon(self.task.cancel)

    def after(self, do: Callable[[], Awaitable[Any] | None]) -> None:
        """Do this once the answer is on its way."""
        if self._after is None:
            self._after = []
        self._after.append(do)

    def what_comes_after(self) -> list[Callable[[], Awaitable[Any] | None]]:
        waiting, self._after = self._after or [], None
        return waiting
