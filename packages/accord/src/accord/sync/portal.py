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
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any, TypeVar

from accord.client.remote_agent import RemoteAgent
from accord.sync.connection_thread import Block, ConnectionThread, EndedError, awaited
from accord.sync.waiting_threads import Waiter

T = TypeVar("T")

_END: Any = object()


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
