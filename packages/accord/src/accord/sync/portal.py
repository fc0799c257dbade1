"""`Portal`: an event loop in its own thread, for one connection, and the way into it from other threads.

    with connect(...) ──▶ Portal.open ──▶ thread: loop: `async with accord.connect(...)`: one task, from start to end
    session.prompt    ──▶ Portal.do   ──▶ a function that is called in the loop; the thread waits for its result
    reply.outcome     ──▶ Portal.wait ──▶ a task in the loop; the thread waits for its end (see `waiting_threads`)
    end of the block  ──▶ Portal.close ─▶ the task leaves its block, the loop is closed, the thread is joined

Everything of the connection lives in the loop and is touched only there. What threads hold are faces: a Portal and an
object of the loop.

Ctrl-C reaches the main thread only. If it waits, its task is cancelled, as if a task of the loop had been: a prompt's
turn is cancelled, an agent that starts is ended. The thread waits for that, and then KeyboardInterrupt goes on. While
the connection closes, Ctrl-C ends the agent at once; a second one during a wait leaves the wait.

The thread refers to its `ConnectionThread`, never to the Portal. So a Portal that no face refers to is collected, and
that ends the connection with a ResourceWarning. The end of the program does the same for all that are left.

Threads hand functions over to the loop, each with a `Waiter`, under a lock; so none is lost when the loop ends: who
waits then is told.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context, copy_context
from typing import Any, TypeVar

from accord._internal.tasks import elsewhere
from accord.client.remote_agent import RemoteAgent
from accord.errors import ConnectionClosed
from accord.program import loop_factory
from accord.sync.waiting_threads import UserCalls, Waiter, is_answering

T = TypeVar("T")
Block = AbstractAsyncContextManager[RemoteAgent]

_END: Any = object()

CALLS_END_WITHIN = 1.0
"""Seconds that functions of the user, which run in their own threads, have to return when the connection ends."""

EXIT_WITHIN = 15.0
"""Seconds that the end of the program waits for one connection that was not closed."""


class EndedError(ConnectionClosed):
    """The event loop of a connection has ended."""

    def __init__(self) -> None:
        super().__init__("closed", "the connection was closed: its `with` block has ended, or `close` was called")


class ConnectionThread:
    """The thread and its loop; nothing in it refers to the Portal."""

    def __init__(self, block: Block) -> None:
        self.opened: Future[RemoteAgent] = Future()
        self._block = block
        self._process = os.getpid()
        self._calls = UserCalls(self)
        self._lock = threading.RLock()  # a collected Portal may post inside of a locked block
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop while it accepts work; the lock guards it and `_waiting`."""
        self._waiting: set[Waiter] = set()
        self._life: asyncio.Task[None] | None = None
        self._leave = False
        self._left: asyncio.Event | None = None
        self._error: BaseException | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="accord connection", daemon=True)

    # From other threads

    @property
    def is_ours(self) -> bool:
        """Whether this process started the thread; a forked child has no copy of it."""
        return self._process == os.getpid()

    @property
    def is_inside(self) -> bool:
        """Whether the calling thread is the loop's."""
        return threading.current_thread() is self._thread

    def must_be_ours(self) -> None:
        if not self.is_ours:
            raise RuntimeError(
                "a connection of accord.sync cannot be used in a forked process: its thread exists only in the parent. "
                "Connect in the child, or start it with multiprocessing's method 'spawn'"
            )

    def must_not_be_inside(self, action: str) -> None:
        """Raise RuntimeError where waiting would never end, because the loop or the agent waits for the caller."""
        if self.is_inside:
            raise RuntimeError(
                f"cannot {action} here: this function is called in the connection's own thread (on_change, trace, "
                "Restart.on_event), and must return first. Use a queue to tell another thread"
            )
        if is_answering(self):
            raise RuntimeError(
                f"cannot {action} in a function that answers this agent: the agent waits for its answer. Return the "
                "answer first, or use another connection"
            )

    def start(self) -> None:
        _running.add(self)
        self._thread.start()

    def stop(self) -> None:
        """Make the connection end; while it is being opened, cancel that."""
        self._leave = True
        self.post(self._stop)

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._ended.wait()  # a `join` that Ctrl-C interrupts takes the thread for ended (Python 3.11)
        self._thread.join()
        self._calls.join(CALLS_END_WITHIN)

    def take_error(self) -> BaseException | None:
        """The error that the connection's end raised; None the second time."""
        error, self._error = self._error, None
        return error

    def post(self, function: Callable[[], object]) -> None:
        """Call this in the loop without waiting; does nothing after the end."""
        with self._lock:
            if self._loop is not None and self.is_ours:
                self._loop.call_soon_threadsafe(function)

    def submit(self, function: Callable[[], Any], waiter: Waiter, *, awaits: bool = False) -> Any:
        """Call this in the loop, and await the result there if it `awaits`; returns it, or raises its error.

        Raises EndedError after the end.
        """
        context = copy_context()
        context.run(elsewhere.set, self._calls.make)
        begin = self._begin if awaits else self._call
        try:
            self._hand_over(begin, function, waiter, context)
            return waiter.wait()
        except BaseException:
            if not waiter.is_over and waiter in self._waiting:
                self.post(lambda: waiter.task and waiter.task.cancel())
                waiter.wait_only()
            raise

    def _hand_over(self, begin: Callable[..., None], function: Callable[[], Any], waiter: Waiter, it: Context) -> None:
        with self._lock:
            if self._loop is None:
                raise EndedError
            self._loop.call_soon_threadsafe(begin, function, waiter, it)
            self._waiting.add(waiter)

    def abandon(self) -> None:
        """End the connection because nothing refers to it any more; it was never closed."""
        if self.is_ours and self._thread.is_alive():
            _warn_of_abandoned()
            self.stop()

    def end_at_exit(self) -> None:
        """End the connection because the program ends."""
        if self.is_ours and self._thread.is_alive():
            _warn_of_abandoned()
            self.stop()
            if self._ended.wait(EXIT_WITHIN):
                self._thread.join()

    # In the loop

    def _run(self) -> None:
        elsewhere.set(self._calls.make)
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._live())
        except BaseException as error:
            if self.opened.done():
                self._error = error
            else:
                self.opened.set_exception(error)
        finally:
            with self._lock:
                self._loop = None
                waiting, self._waiting = self._waiting, set()
            for waiter in waiting:
                waiter.finish(None, EndedError())
            _running.discard(self)
            self._ended.set()

    async def _live(self) -> None:
        """Be in the block from the connection's start to its end, in one task."""
        self._life, self._left = asyncio.current_task(), asyncio.Event()
        with self._lock:
            self._loop = asyncio.get_running_loop()
        try:
            if self._leave:
                raise asyncio.CancelledError
            async with self._block as remote:
                self._remote = remote
                self.opened.set_result(remote)
                await self._left.wait()
        finally:
            with self._lock:
                self._loop = None

    def _stop(self) -> None:
        assert self._life is not None
        assert self._left is not None
        if self.opened.done():
            self._left.set()
        else:
            self._life.cancel()

    def kill(self) -> None:
        """End the agent's process at once."""
        self._remote.kill()

    def cancel_turns(self) -> None:
        """Ask the agent to stop working on prompts, without waiting."""
        for session in self._remote.open_sessions.values():
            if session.is_busy:
                asyncio.ensure_future(session.cancel()).add_done_callback(_ignore_error)

    def _call(self, function: Callable[[], Any], waiter: Waiter, context: Context) -> None:
        if not self._accept(waiter):
            return
        self._waiting.discard(waiter)
        try:
            result = context.run(function)
        except Exception as error:
            waiter.finish(None, error)
        else:
            waiter.finish(result)

    def _begin(self, function: Callable[[], Awaitable[Any]], waiter: Waiter, context: Context) -> None:
        if not self._accept(waiter):
            return
        waiter.task = asyncio.get_running_loop().create_task(awaited(function), context=context)
        self._calls.begin(waiter)
        waiter.task.add_done_callback(lambda task: self._done(task, waiter))

    def _accept(self, waiter: Waiter) -> bool:
        """Whether the loop may still do this; past the connection's end, `_run` tells those who wait."""
        with self._lock:
            return self._loop is not None and waiter in self._waiting

    def _done(self, task: asyncio.Future[Any], waiter: Waiter) -> None:
        self._calls.end(waiter)
        with self._lock:
            if waiter not in self._waiting:
                return
            self._waiting.discard(waiter)
        if task.cancelled():
            waiter.finish(None, EndedError())
        elif error := task.exception():
            waiter.finish(None, error)
        else:
            waiter.finish(task.result())


async def awaited(function: Callable[[], Awaitable[T]]) -> T:  # a coroutine, whatever awaitable the function returns
    return await function()


def _ignore_error(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()


def _warn_of_abandoned() -> None:
    warnings.warn(
        "a connection of accord.sync was not closed; use `with accord.sync.connect(...)`, or call `remote.close()`",
        ResourceWarning,
        stacklevel=3,
    )


_running: set[ConnectionThread] = set()
"""The connections that have not ended."""


@atexit.register
def _end_all() -> None:
    for connection in list(_running):
        with suppress(Exception):
            connection.end_at_exit()


class Portal:
    """An event loop in its own thread, in which one connection lives."""

    def __init__(self, block: Block) -> None:
        self._thread = ConnectionThread(block)
        self.faces: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        """The faces that are in use, by the ids of what they stand for, which they keep alive."""
        self.making = threading.RLock()
        """Held while a face is looked up and made."""
        self._finalizer = weakref.finalize(self, self._thread.abandon)
        self._finalizer.atexit = False  # `_end_all` waits for the end, which a finalizer cannot

    # Life

    def open(self) -> RemoteAgent:
        """Start the thread and connect; raises the error that connecting fails with."""
        thread = self._thread
        thread.start()
        try:
            return thread.opened.result()
        except BaseException:
            thread.stop()
            thread.join()
            self._finalizer.detach()
            raise

    def close(self, *, interrupted: bool = False) -> None:
        """End the connection and the thread; raises the error that this raised. Does nothing the second time.

        After Ctrl-C (`interrupted`), agents are told to cancel their turns first.
        """
        thread = self._thread
        if not thread.is_ours:
            return
        thread.must_not_be_inside("close the connection")
        self._finalizer.detach()
        if interrupted:
            thread.post(thread.cancel_turns)
        thread.stop()
        try:
            thread.join()
        except KeyboardInterrupt:
            thread.post(thread.kill)
            thread.join()
            raise
        if error := thread.take_error():
            raise error

    # Ways in

    def read(self, function: Callable[[], T]) -> T:
        """Call this in the loop, between two of its steps, so that it sees nothing half done; returns its result."""
        thread = self._thread
        if thread.is_inside or not thread.is_ours:
            return function()
        try:
            result: T = thread.submit(function, Waiter(thread, None))
        except EndedError:
            return function()  # nothing changes any more
        return result

    def do(self, function: Callable[[], T]) -> T:
        """Like `read`, for what changes something: raises ConnectionClosed after the end."""
        thread = self._thread
        thread.must_be_ours()
        if thread.is_inside:
            return function()
        result: T = thread.submit(function, Waiter(thread, None))
        return result

    def wait(self, function: Callable[[], Awaitable[T]], session: str | None = None) -> T:
        """Await the function's result in the loop; this thread waits, and answers the agent's questions meanwhile."""
        thread = self._thread
        thread.must_be_ours()
        thread.must_not_be_inside("wait for the agent")
        try:
            result: T = thread.submit(function, Waiter(thread, session), awaits=True)
        except EndedError:
            return _at_once(function)
        return result

    def iterate(self, function: Callable[[], AsyncIterator[T]], session: str | None = None) -> Generator[T]:
        """Iterate in this thread over what the function gives in the loop."""
        source = function()
        try:
            while (item := self.wait(lambda: anext(source, _END), session)) is not _END:
                yield item
        finally:
            if (close := getattr(source, "aclose", None)) is not None:
                self._thread.post(lambda: asyncio.ensure_future(close()))


def _at_once(function: Callable[[], Awaitable[T]]) -> T:
    """What this gives without waiting, as the outcome of a turn that has ended; raises EndedError if it waits."""
    work = awaited(function)
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    except RuntimeError:
        raise EndedError from None  # it needs the loop
    finally:
        work.close()
    raise EndedError
