"""A session's turns: one at a time, what happens to a second prompt, and cancelling.

Each prompt has a `Place` from its arrival until its answer. The first in the line runs, in a task of its own; the
prompt's handler waits for that task and is never stopped by it: whatever comes out of a cancelled turn, and if nothing
ever does, the answer is `cancelled`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from accord.errors import RequestError

log = logging.getLogger("accord")

SecondPrompt = Literal["queue", "reject", "cancel_first"]
"""What becomes of a prompt in a session that works on one: it waits, is refused, or takes the other's place."""

Work = Callable[[], Coroutine[Any, Any, str]]
"""Does what a prompt asks for, and gives the stop reason."""

CANCELLED = "cancelled"


class Place:
    """One prompt's place in the line."""

    def __init__(self, grace: float) -> None:
        loop = asyncio.get_running_loop()
        self._grace = grace
        self._turn_comes: asyncio.Future[None] = loop.create_future()
        self._stopping: asyncio.Future[None] = loop.create_future()
        self._task: asyncio.Task[str] | None = None

    def come(self) -> None:
        """It is this one's turn now."""
        if not self._turn_comes.done():
            self._turn_comes.set_result(None)

    def is_cancelled(self) -> bool:
        return self._stopping.done()

    def cancel(self) -> None:
        """Stop, or do not begin. A second time does nothing."""
        if self.is_cancelled():
            return
        self._stopping.set_result(None)
        self.come()
        if self._task is not None:
            self._task.cancel()

    async def live(self, work: Work) -> str:
        """Wait for the turn, do the work, and give the stop reason."""
        await self._wait_for(self._turn_comes, self._stopping)
        if self.is_cancelled():
            return CANCELLED
        self._task = asyncio.get_running_loop().create_task(work(), name="accord turn")
        await self._wait_for(self._task, self._stopping)
        if not self.is_cancelled():
            return self._task.result()
        await self._wait_for(self._task, timeout=self._grace)
        self._look_at_the_end(self._task)
        return CANCELLED

    async def _wait_for(self, *any_of: asyncio.Future[Any], timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Wait; that nobody wants the answer any more (`$/cancel_request`) is a cancel like `session/cancel`."""
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        while not any(it.done() for it in any_of):
            left = None if deadline is None else deadline - asyncio.get_running_loop().time()
            if left is not None and left <= 0:
                return
            try:
                await asyncio.wait(any_of, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                self.cancel()

    def _look_at_the_end(self, task: asyncio.Task[str]) -> None:
        if not task.done():
            log.warning("a turn does not end when it is cancelled; it was answered all the same")
            task.add_done_callback(_forget)
        else:
            _forget(task)


class Turns:
    """The line of one session's prompts."""

    def __init__(self, second_prompt: SecondPrompt, grace: float) -> None:
        self._second_prompt: SecondPrompt = second_prompt
        self._grace = grace
        self._line: deque[Place] = deque()
        self._empty: asyncio.Future[None] | None = None
        """Done when the line is empty; there while somebody waits for that."""

    @property
    def running(self) -> bool:
        """Whether a prompt is being worked on."""
        return bool(self._line)

    def cancel(self) -> None:
        """Cancel the turn that runs, and the prompts that wait behind it: they all came before this."""
        for place in list(self._line):
            place.cancel()

    async def end(self) -> None:
        """Cancel every prompt, and wait until each has its answer."""
        self.cancel()
        if self._line:
            self._empty = self._empty or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._empty)

    async def take(self, work: Callable[[Place], Coroutine[Any, Any, str]]) -> str:
        """Do this when its turn has come; gives the stop reason."""
        place = self._join()
        try:
            return await place.live(lambda: work(place))
        finally:
            self._line.remove(place)
            if self._line:
                self._line[0].come()
            elif self._empty is not None:
                self._empty.set_result(None)
                self._empty = None

    def _join(self) -> Place:
        if self._line and self._second_prompt == "reject":
            raise RequestError.invalid_request("this session is working on another prompt")
        if self._second_prompt == "cancel_first":
            self.cancel()
        place = Place(self._grace)
        self._line.append(place)
        if self._line[0] is place:
            place.come()
        return place


def _forget(task: asyncio.Task[str]) -> None:
    """What came out of a cancelled turn is not the client's concern, but an author may want to know."""
    # prompt-turn, Cancellation: errors that cancelling causes are answered with the stop reason all the same.
    if not task.cancelled() and (error := task.exception()) is not None:
        log.info("a cancelled turn ended with an error", exc_info=error)
