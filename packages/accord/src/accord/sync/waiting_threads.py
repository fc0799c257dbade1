"""Threads that wait for the event loop (`Waiter`), and the user's functions that they call meanwhile (`UserCalls`).

    thread                                  event loop
    submit ──────────────────────────────▶  task
    take ◀── a UserCall ────────────────────┤             the thread calls it, as long as it waits
         ◀── done ──────────────────────────┘

A thread that waits is the right one for a function that asks the user: `input()` reads in the main thread, Ctrl-C
interrupts it there, and a debugger or a window works as it does in the rest of the program.

A call about a session goes to a thread that waits for this session: the one that iterates over a reply, or waits for
its outcome. While none waits, the call is kept for `PATIENCE` seconds, because a program that iterates does not wait at
every moment. Then it gets its own thread, so that an agent is answered even if the program does something else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

PATIENCE = 0.5
"""Seconds that a call is kept for a thread that waits for its session."""

log = logging.getLogger("accord")

_calling = threading.local()


class UserCall:
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

    def make(self, connection: object) -> None:
        """Call the function; an error is the loop's; one that ends the program is raised here as well."""
        outer = getattr(_calling, "connections", ())
        _calling.connections = (*outer, connection)
        try:
            result = self._function(*self._arguments)
        except Exception as error:
            self._answer(None, error)
        except BaseException:
            self._answer(None, InterruptedError(f"{self.name} was interrupted"))
            raise
        else:
            self._answer(result, None)
        finally:
            _calling.connections = outer

    def refuse(self) -> None:
        """Do not make the call, because the thread that should was interrupted."""
        self._answer(None, InterruptedError(f"{self.name} was not called: the program was interrupted"))

    def _answer(self, result: Any, error: Exception | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: no one waits for the answer any more
            self.answer.get_loop().call_soon_threadsafe(self._set_answer, result, error)

    def _set_answer(self, result: Any, error: Exception | None) -> None:
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(result)
        else:
            self.answer.set_exception(error)


def is_answering(connection: object) -> bool:
    """Whether this thread is in a function that answers an agent of this connection."""
    return connection in getattr(_calling, "connections", ())


class Waiter:
    """A thread that waits for one task of the event loop."""

    __slots__ = ("_connection", "_error", "_inbox", "_result", "is_over", "session", "task")

    def __init__(self, connection: object, session: str | None) -> None:
        self.session = session
        """The session that the thread waits for; None if it waits for something else of the connection."""
        self.task: asyncio.Future[Any] | None = None
        self.is_over = False
        """Whether the thread knows that the task has ended."""
        self._connection = connection
        self._inbox: SimpleQueue[UserCall | None] = SimpleQueue()
        self._result: Any = None
        self._error: BaseException | None = None

    # In the thread

    def wait(self) -> Any:
        """Wait for the end, making calls meanwhile; returns the task's result or raises its error."""
        while (call := self._inbox.get()) is not None:
            if call.claim():
                call.make(self._connection)
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

    def give(self, call: UserCall) -> None:
        """Have the thread make this call."""
        self._inbox.put(call)

    def finish(self, result: Any, error: BaseException | None = None) -> None:
        """End the wait."""
        self._result, self._error = result, error
        self._inbox.put(None)


class UserCalls:
    """The waiting threads of one event loop, and the calls that none of them has taken. All in the event loop."""

    def __init__(self, connection: object) -> None:
        self._connection = connection
        self._waiters: list[Waiter] = []
        self._unclaimed: list[UserCall] = []
        self._threads: list[threading.Thread] = []

    def begin(self, waiter: Waiter) -> None:
        """A thread waits from now on."""
        self._waiters.append(waiter)
        for call in [it for it in self._unclaimed if _fits(it, waiter)]:
            self._unclaimed.remove(call)
            waiter.give(call)

    def end(self, waiter: Waiter) -> None:
        """The thread does not wait any more."""
        self._waiters.remove(waiter)

    async def make(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Have a thread call this function; returns what it returned, or raises its error."""
        call = UserCall(function, arguments, _session_of(arguments))
        waiter = next((it for it in self._waiters if _fits(call, it)), None)
        if waiter is not None:
            waiter.give(call)
            return await self._answered(call)
        self._unclaimed.append(call)
        late = asyncio.get_running_loop().call_later(PATIENCE, self._start_thread, call)
        try:
            return await self._answered(call)
        finally:
            late.cancel()
            if call in self._unclaimed:
                self._unclaimed.remove(call)

    async def _answered(self, call: UserCall) -> Any:
        try:
            return await call.answer
        finally:
            call.claim()  # after a cancellation, no thread may make it any more

    def _start_thread(self, call: UserCall) -> None:
        if call in self._unclaimed:
            self._unclaimed.remove(call)
            self._threads = [it for it in self._threads if it.is_alive()]
            # A daemon, because a function that never returns must not keep the program from ending.
            thread = threading.Thread(target=self._make_alone, args=(call,), name=f"accord {call.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _make_alone(self, call: UserCall) -> None:
        if call.claim():
            try:
                call.make(self._connection)
            except BaseException:  # KeyboardInterrupt and SystemExit end the main thread only
                log.exception("%s failed", call.name)

    def join(self, seconds: float) -> None:
        """Wait for the threads that were started for single calls; not in the event loop."""
        for thread in self._threads:
            thread.join(seconds)
            if thread.is_alive():
                log.warning("%s still runs after the end of its connection", thread.name)


def _fits(call: UserCall, waiter: Waiter) -> bool:
    return call.session is None or call.session == waiter.session


def _session_of(arguments: tuple[Any, ...]) -> str | None:
    """The id of the session that a message or a question names."""
    about = arguments[0] if arguments else None
    session = getattr(about, "session", None)
    if session is None:
        return getattr(about, "session_id", None)
    # The thread that waits for a session answers the questions of its subagents too.
    return getattr(session, "main_id", None) or getattr(session, "id", None)
