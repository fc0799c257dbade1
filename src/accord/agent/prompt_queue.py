"""A session's turns: one at a time, what happens to a second prompt, and cancelling.

Each prompt has a `QueuedPrompt` from its arrival until its answer. The first in the queue runs in the task of its
prompt; the others wait. A cancelled turn is answered with `cancelled`, whatever its function returns or raises. If it
does not end within the grace period, it is answered anyway, and the next prompt in the queue runs.
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


class QueuedPrompt:
    """One prompt's place in the line. Whoever joins the line has to `live` at once."""

    __slots__ = ("_give_up", "_grace", "_task", "_timer", "_turn_comes", "_turns", "is_cancelled")

    def __init__(self, turns: PromptQueue, grace: float) -> None:
        self.is_cancelled = False
        self._turns = turns
        self._grace = grace
        self._turn_comes: asyncio.Future[None] | None = None
        """What it waits for while it is not the first."""
        self._task: asyncio.Task[Any] | None = None
        """Who works on it."""
        self._timer: asyncio.TimerHandle | None = None
        self._give_up: Callable[[], None] | None = None

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

    async def live(self, work: Work, give_up: Callable[[], None]) -> str:
        """Wait for the turn, do the work, and give the stop reason.

        `give_up` is called where work that was cancelled does not end: the prompt has to be answered without it.
        """
        # prompt-turn, Cancellation: errors that cancelling causes are answered with the stop reason all the same.
        task = asyncio.current_task()
        try:
            if self._turn_comes is not None:
                await self._turn_comes
            if self.is_cancelled:
                return CANCELLED
            self._give_up = give_up
            self._task = task
            stop_reason = await work()
        except asyncio.CancelledError:
            # Also when the agent is ended; what the author has cancelled himself is an error like any other.
            if not self.is_cancelled and (task is None or not task.cancelling()):
                raise
        except Exception as error:
            if not self.is_cancelled:
                raise
            # Not the client's concern, but an author may want to know.
            log.info("a cancelled turn ended with an error", exc_info=error)
        else:
            if not self.is_cancelled:
                return stop_reason
        finally:
            self._task = None
            if self._timer is not None:
                self._timer.cancel()
            self._turns.leave(self)
        return CANCELLED

    def _grace_is_over(self) -> None:
        log.warning("a turn does not end when it is cancelled; it was answered all the same")
        self._turns.leave(self)
        if self._give_up is not None:
            self._give_up()


class PromptQueue:
    """The line of one session's prompts."""

    def __init__(self, second_prompt: SecondPrompt, grace: float) -> None:
        self._second_prompt: SecondPrompt = second_prompt
        self._grace = grace
        self._line: deque[QueuedPrompt] = deque()
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

    def join(self) -> QueuedPrompt:
        """A prompt's place in the line; raises RequestError where there is none for a second one."""
        if self._line and self._second_prompt == "reject":
            raise RequestError.invalid_request("this session is working on another prompt")
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
