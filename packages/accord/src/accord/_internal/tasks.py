"""The tasks of one connection, each named and awaited at the end, and helpers for waiting and for users' functions."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, TypeAlias, cast

log = logging.getLogger("accord")


def is_awaitable(value: object) -> bool:
    return value is not None and hasattr(value, "__await__")


async def finished(result: Any) -> Any:
    """Return a function's result; await it first if the function is `async`."""
    return await result if inspect.isawaitable(result) else result


def pass_on(error: BaseException) -> None:
    """Re-raise an exception that ends the program (KeyboardInterrupt, SystemExit); others have been handled."""
    if isinstance(error, SystemExit | KeyboardInterrupt):
        asyncio.get_running_loop().call_soon(_leave, error)


def _leave(error: BaseException) -> None:
    raise error


def give_up(awaitable: Awaitable[Any] | None) -> None:
    """Close a coroutine that will not be awaited, and those that it would have awaited, so that Python does not warn.

    A coroutine that has not begun holds in its arguments what it would await.
    """
    if isinstance(awaitable, Coroutine):
        work = cast("Coroutine[Any, Any, Any]", awaitable)
        is_new = inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED
        arguments = list(inspect.getcoroutinelocals(work).values()) if is_new else []
        work.close()
        for argument in arguments:
            give_up(argument)


class Tasks:
    """Starts tasks, and knows which are still running."""

    __slots__ = ("_loop", "running")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.running: dict[asyncio.Task[Any], None] = {}  # an empty set takes 150 bytes more
        self._loop = loop

    def start(
        self, work: Coroutine[Any, Any, Any], name: str, on_end: Callable[[asyncio.Task[Any]], None] | None = None
    ) -> asyncio.Task[Any]:
        """Start a task; it takes its first step now where the platform can (3.12), else in this iteration of the loop.

        `on_end` is called when the task is done, and then has to `forget` it.
        """
        task: asyncio.Task[Any]
        if sys.version_info >= (3, 12):
            task = asyncio.Task(work, loop=self._loop, name=name, eager_start=True)
        else:
            task = self._loop.create_task(work, name=name)
        if not task.done():
            self.running[task] = None
            task.add_done_callback(on_end or self.forget)
        return task

    def forget(self, task: asyncio.Task[Any]) -> None:
        self.running.pop(task, None)

    def call(self, do: Callable[[], Any], name: str) -> None:
        """Call a user's function without waiting; start a task only if the result is awaitable."""
        try:
            result = do()
        except BaseException as error:
            log.exception("%s failed", name)
            pass_on(error)
        else:
            if is_awaitable(result):
                self.start(_logged(result, name), name, functools.partial(self._forget_call, result))

    def _forget_call(self, awaitable: Awaitable[Any], task: asyncio.Task[Any]) -> None:
        self.forget(task)
        give_up(awaitable)

    async def end(self, grace: float) -> None:
        """Cancel the running tasks, and wait for them for at most `grace` seconds."""
        deadline = self._loop.time() + grace
        stuck: set[asyncio.Task[Any]] = set()
        while self.running and not stuck:  # the end of one may start another
            for task in self.running:
                task.cancel()
            _, stuck = await asyncio.wait(self.running, timeout=deadline - self._loop.time())
        if stuck:
            more = f", nor do {len(stuck) - 1:,} more" if len(stuck) > 1 else ""
            log.warning("%s does not end when it is cancelled%s", next(iter(stuck)).get_name(), more)


async def _logged(awaitable: Awaitable[Any], name: str) -> None:
    try:
        await awaitable
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        log.exception("%s failed", name)
        pass_on(error)


# A user's plain function that answers a question may block, so it is called in a thread (`in_thread`). A function
# that is only notified is called in the event loop, where it sees events in order.
#
# In a program without coroutines, the thread that waits for the connection is the better one: `accord.sync` sets
# `elsewhere` in the context of its event loops, and everything that a connection does inherits it. A client's
# function that answers goes through `in_thread_of_user`. An `async` function is always called in the event loop.


def is_async(function: Callable[..., Any]) -> bool:
    """Whether this is an `async` function, an object that is called like one, or a wrapper of one."""
    either = function, inspect.unwrap(function), getattr(function, "__call__", None)  # noqa: B004
    return any(inspect.iscoroutinefunction(it) or inspect.isasyncgenfunction(it) for it in either)


def name_of(function: Callable[..., Any]) -> str:
    """The function's name, as a thread shows it."""
    return getattr(function, "__qualname__", type(function).__name__)


def start_thread(work: Callable[[], object], name: str) -> None:
    """Run this in a thread that has the caller's context variables and does not keep the program alive."""
    threading.Thread(target=copy_context().run, args=(work,), name=name, daemon=True).start()


def in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an `async` function as it is, and a plain one as an `async` function that calls it in a thread.

    A cancel does not stop the thread: its result is dropped.
    """
    if is_async(function):
        return function

    @functools.wraps(function)
    async def called(*arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

        def work() -> None:
            try:
                ended: tuple[Any, BaseException | None] = function(*arguments), None
            except BaseException as error:
                ended = None, error
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_set_unless_done, outcome, ended)

        start_thread(work, f"accord {name_of(function)}")
        return await finished(outcome_of(*await outcome))

    return called


def outcome_of(result: Any, error: BaseException | None) -> Any:
    """Return the result, or raise the error; no frame keeps the error, because its traceback leads back to the
    frame.
    """
    try:
        if error is not None:
            raise error
        return result
    finally:
        del error


def _set_unless_done(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


Caller: TypeAlias = "Callable[[Callable[..., Any], tuple[Any, ...]], Awaitable[Any]]"
"""Calls a function with these arguments in another thread, and returns its result."""

elsewhere: ContextVar[Caller | None] = ContextVar("accord_elsewhere", default=None)
"""Calls a client's plain functions in a thread that waits for this event loop; None if no thread does."""


def in_thread_of_user(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `in_thread`, for a client's function: if `elsewhere` is set, it calls the function in a waiting thread."""
    call = elsewhere.get()
    if call is None or inspect.iscoroutinefunction(function):
        return in_thread(function)

    @functools.wraps(function)
    async def called(*arguments: Any) -> Any:
        return await finished(await call(function, arguments))

    return called


async def within(seconds: float, awaitable: Awaitable[object]) -> bool:
    """Wait at most this many seconds; return whether it finished in time."""
    try:
        async with asyncio.timeout(seconds):
            await awaitable
    except TimeoutError:
        return False
    return True


async def first_of(*awaitables: Awaitable[Any], seconds: float | None = None) -> None:
    """Wait until one of these is done or the time is over, then cancel the rest. All have ended on return.

    To learn which one was done, or its error, pass a future and inspect it afterwards.
    """
    doing = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(doing, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in doing:
            one.cancel()
        await asyncio.gather(*doing, return_exceptions=True)


async def to_the_end(task: asyncio.Task[Any]) -> None:
    """Wait until `task` is done. If the caller is cancelled meanwhile, the cancellation is raised afterwards.

    `asyncio.shield` protects the task but returns at once: a cancelled `async with` would leave its task running.
    """
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    if not task.cancelled():
        task.result()  # the caller sees the error


class IdleTimer:
    """Calls `on_idle` after every `seconds` without `touch`, until `stop`."""

    __slots__ = ("_loop", "_on_idle", "_seconds", "_since", "_timer")

    def __init__(self, seconds: float, on_idle: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._on_idle = on_idle
        self._since = self._loop.time()
        self._timer = self._loop.call_at(self._since + seconds, self._look)

    def touch(self) -> None:
        """Restart the timer."""
        self._since = self._loop.time()

    def stop(self) -> None:
        """Stop the timer; idempotent."""
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        is_silent = now >= self._since + self._seconds
        if is_silent:
            self._since = now
        self._timer = self._loop.call_at(self._since + self._seconds, self._look)
        if is_silent:
            self._on_idle()


# `LightEvent` does what `asyncio.Event` does, and takes 56 bytes instead of 800 while no task waits for it.
#
# asyncio's keeps a deque, for which Python allocates a block of 64 places at once. A connection over HTTP has eleven
# events, most of which are never waited for: so each thousand connections kept 8 MiB of empty places.


class LightEvent:
    """An event for which tasks wait until it is set."""

    __slots__ = ("_is_set", "_waiting")

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[asyncio.Future[None]] | None = None

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Set it: all waiting tasks continue, also if it is cleared before that."""
        self._is_set = True
        if self._waiting is not None:
            for future in self._waiting:
                if not future.done():
                    future.set_result(None)

    def clear(self) -> None:
        """Tasks that wait from now on wait until it is set again."""
        self._is_set = False

    async def wait(self) -> None:
        """Wait until it is set."""
        if self._is_set:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting = self._waiting or []
        waiting.append(future)
        try:
            await future
        finally:
            waiting.remove(future)
            if not waiting:
                self._waiting = None
