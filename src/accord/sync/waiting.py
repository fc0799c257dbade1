"""`Waiter`: a thread that waits for the event loop, and meanwhile calls the functions that answer the agent.

    thread                                  event loop
    submit ──────────────────────────────▶  task
    take ◀── a Call of the user's function ─┤             the thread calls it, as long as it waits
         ◀── done ──────────────────────────┘

A thread that waits is the right one for a function that asks the user: `input()` reads in the main thread, Ctrl-C
interrupts it there, and a debugger or a window works as it does in the rest of the program.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

_calling = threading.local()


class Call:
    """A call of a function of the user's, which one thread makes."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], session: str | None) -> None:
        self.session = session
        """The session that it is about; None if it is about the connection."""
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._function = function
        self._arguments = arguments
        self._free = threading.Lock()

    @property
    def name(self) -> str:
        """The function's name, as a thread and an error show it."""
        return getattr(self._function, "__qualname__", repr(self._function))

    def claim(self) -> bool:
        """Whether the caller may make the call: True once, and never after the loop has withdrawn it."""
        return self._free.acquire(blocking=False)

    def make(self, home: object) -> None:
        """Call the function; an error is the loop's, except one that ends the program, which is raised here as well."""
        outer = getattr(_calling, "homes", ())
        _calling.homes = (*outer, home)
        try:
            result = self._function(*self._arguments)
        except Exception as error:
            self._tell(None, error)
        except BaseException:
            self._tell(None, InterruptedError(f"{self.name} was interrupted"))
            raise
        else:
            self._tell(result, None)
        finally:
            _calling.homes = outer

    def refuse(self) -> None:
        """Do not make the call, because the thread that should was interrupted."""
        self._tell(None, InterruptedError(f"{self.name} was not called: the program was interrupted"))

    def _tell(self, result: Any, error: Exception | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: no one waits for the answer any more
            self.answer.get_loop().call_soon_threadsafe(self._told, result, error)

    def _told(self, result: Any, error: Exception | None) -> None:
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(result)
        else:
            self.answer.set_exception(error)


def is_answering(home: object) -> bool:
    """Whether this thread is in a function that answers an agent of this connection."""
    return home in getattr(_calling, "homes", ())


class Waiter:
    """A thread that waits for one task of the event loop."""

    __slots__ = ("_error", "_home", "_inbox", "_result", "is_over", "session", "task")

    def __init__(self, home: object, session: str | None) -> None:
        self.session = session
        """The session that the thread waits for; None if it waits for something else of the connection."""
        self.task: asyncio.Future[Any] | None = None
        self.is_over = False
        """Whether the thread knows that the task has ended."""
        self._home = home
        self._inbox: SimpleQueue[Call | None] = SimpleQueue()
        self._result: Any = None
        self._error: BaseException | None = None

    # In the thread

    def wait(self) -> Any:
        """Wait for the end, making calls meanwhile; returns the task's result or raises its error."""
        while (call := self._inbox.get()) is not None:
            if call.claim():
                call.make(self._home)
        return self.result()

    def wait_only(self) -> None:
        """Wait for the end without making calls."""
        while (call := self._inbox.get()) is not None:
            if call.claim():
                call.refuse()
        self.is_over = True

    def result(self) -> Any:
        """The task's result; raises its error."""
        self.is_over = True
        try:
            if self._error is not None:
                raise self._error
            return self._result
        finally:
            self._error = None  # the error's traceback leads back here

    # In the event loop

    def give(self, call: Call) -> None:
        """Have the thread make this call."""
        self._inbox.put(call)

    def finish(self, result: Any, error: BaseException | None = None) -> None:
        """End the wait."""
        self._result, self._error = result, error
        self._inbox.put(None)
