"""A session's turns: one at a time, what happens to a second prompt, and cancelling.

Each prompt has a `QueuedPrompt` from its arrival until its answer. The first in the queue runs in the task of its
prompt; the others wait. A cancelled turn is answered with `cancelled`, whatever its function returns or raises. If it
does not end within the grace period, it is answered anyway, and the next prompt in the queue runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

from accord.errors import RequestError

log = logging.getLogger("accord")

SecondPrompt = Literal["queue", "reject", "cancel_first"]
"""What becomes of a prompt in a session that works on one: it waits, is refused, or takes the other's place."""

CANCELLED = "cancelled"


class QueuedPrompt:
    """One prompt's place in the line, from its arrival to its answer.

    place = queue.place()
    with place:
        if await place.comes():
            place.stop_reason = await work()
    answer(place.stop_reason)
    """

    __slots__ = ("_grace", "_overdue", "_task", "_timer", "_turn_comes", "_turns", "is_cancelled", "stop_reason")

    def __init__(self, turns: PromptQueue, grace: float) -> None:
        self.is_cancelled = False
        self.stop_reason = CANCELLED
        """How the prompt is answered: `cancelled`, unless its work came to another end."""
        self._turns = turns
        self._grace = grace
        self._turn_comes: asyncio.Future[None] | None = None
        """What it waits for while it is not the first."""
        self._task: asyncio.Task[Any] | None = None
        """The task that works on it."""
        self._timer: asyncio.TimerHandle | None = None
        self._overdue: Callable[[], None] | None = None

    def wait(self) -> None:
        """There are others before it."""
        self._turn_comes = asyncio.get_running_loop().create_future()

    def come(self) -> None:
        """It is this one's turn now."""
        if self._turn_comes is not None and not self._turn_comes.done():
            self._turn_comes.set_result(None)

    def cancel(self) -> None:
        """Stop, or do not begin. A second time does nothing."""
        if self.is_cancelled:
            return
        self.is_cancelled = True
        self.come()
        if self._task is not None:
            self._task.cancel()
            self._timer = asyncio.get_running_loop().call_later(self._grace, self._grace_is_over)

    def when_overdue(self, do: Callable[[], None]) -> None:
        """Call this if cancelled work does not end within the grace: the prompt has to be answered without it."""
        self._overdue = do

    async def comes(self) -> bool:
        """Wait until it is this prompt's turn. False if the prompt was cancelled meanwhile."""
        if self._turn_comes is not None:
            await self._turn_comes
        if self.is_cancelled:
            return False
        self._task = asyncio.current_task()
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Leave the line. An error that cancelling has caused is dropped: it is not the client's concern."""
        self._task = None
        if self._timer is not None:
            self._timer.cancel()
        self._turns.leave(self)
        if self.is_cancelled:
            self.stop_reason = CANCELLED
        return error is not None and self._is_dropped(error)

    def _is_dropped(self, error: BaseException) -> bool:
        # prompt-turn, Cancellation: errors that cancelling causes are answered with the stop reason all the same.
        if isinstance(error, asyncio.CancelledError):
            # Also when the agent is ended; what the author has cancelled himself is an error like any other.
            task = asyncio.current_task()
            return self.is_cancelled or (task is not None and task.cancelling() > 0)
        if self.is_cancelled and isinstance(error, Exception):
            log.info("a cancelled turn ended with an error", exc_info=error)
            return True
        return False

    def _grace_is_over(self) -> None:
        log.warning("a cancelled turn did not end within its grace period; its prompt was answered without it")
        self._turns.leave(self)
        if self._overdue is not None:
            self._overdue()


class PromptQueue:
    """The line of one session's prompts."""

    def __init__(self, second_prompt: SecondPrompt, grace: float) -> None:
        self._second_prompt: SecondPrompt = second_prompt
        self._grace = grace
        self._line: deque[QueuedPrompt] = deque()
        self._empty: asyncio.Future[None] | None = None
        """Done when the queue is empty; None unless something waits for that."""

    @property
    def running(self) -> bool:
        """Whether a prompt is being worked on."""
        return bool(self._line)

    def cancel(self) -> None:
        """Cancel the running turn and the waiting prompts: all of them came before this."""
        for place in list(self._line):
            place.cancel()

    async def end(self) -> None:
        """Cancel every prompt, and wait until each has its answer."""
        self.cancel()
        if self._line:
            self._empty = self._empty or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._empty)

    def place(self) -> QueuedPrompt:
        """A place at the end of the line; raises RequestError if a second prompt is refused."""
        if self._line and self._second_prompt == "reject":
            raise RequestError.invalid_request(
                "this session is working on another prompt; wait for its answer, or cancel it"
            )
        if self._second_prompt == "cancel_first":
            self.cancel()
        place = QueuedPrompt(self, self._grace)
        if self._line:
            place.wait()
        self._line.append(place)
        return place

    def leave(self, place: QueuedPrompt) -> None:
        """This prompt is done with; a second time does nothing."""
        if place not in self._line:
            return
        self._line.remove(place)
        if self._line:
            self._line[0].come()
        elif self._empty is not None:
            self._empty.set_result(None)
            self._empty = None
