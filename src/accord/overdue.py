"""Ends a program that something keeps from ending, and says what it was.

Python waits for ever, at the end of an event loop, for tasks that swallow their cancellation and for functions in
threads (`asyncio.to_thread`). A program whose client has gone must end all the same: nothing reads its output any more,
and the client counts on it. So when its service has ended in order, with all that it keeps written, the rest has a few
seconds. Then a daemon thread says what still runs, and ends the process at once.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ENDS_WITHIN = 3.0
"""Seconds that tasks and threads have to end after the service has, and that the event loop has to notice SIGTERM."""

_ASYNCIO = str(Path(asyncio.__file__).parent)


class LastResort:
    """Ends the process unless it is called off in time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._timer: threading.Timer | None = None

    def start(self, exit_code: int, what_holds_it: Callable[[], list[str]], since: str) -> None:
        """End the process with this code in `ENDS_WITHIN` seconds, and say what holds it, and since when."""
        self.call_off()
        self._timer = threading.Timer(ENDS_WITHIN, self._end, (exit_code, what_holds_it, since))
        self._timer.daemon = True  # it must not hold the process itself
        self._timer.start()

    def call_off(self) -> None:
        """The process ends by itself, or does what it should."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, exit_code: int, what_holds_it: Callable[[], list[str]], since: str) -> None:
        try:
            held_by = " and ".join(what_holds_it()) or "something that has no name"
            late = f"{ENDS_WITHIN:g} seconds after {since}"
            print(f"{self._name}: ended by force, {late}, because of {held_by}", file=sys.stderr, flush=True)
        finally:
            os._exit(exit_code)


class Remains:
    """The tasks and threads that run at this moment; call it later for those of them that still do, in words."""

    def __init__(self) -> None:
        self._tasks = asyncio.all_tasks()
        # Daemons do not hold the process, and the main thread is what is being held.
        self._threads = [it for it in threading.enumerate() if not it.daemon and it is not threading.main_thread()]

    def __call__(self) -> list[str]:
        tasks = [f"the task {it.get_name()!r}{_place_of_task(it)}" for it in self._tasks if not it.done()]
        return [*tasks, *(f"the thread {it.name!r}{_place_of_thread(it)}" for it in self._threads if it.is_alive())]


def what_blocks() -> list[str]:
    """The function that keeps the main thread from its event loop, in words."""
    return [f"the main thread{_place_of_thread(threading.main_thread())}"]


def _place_of_thread(thread: threading.Thread) -> str:
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    frame = frames.get(thread.ident or 0)
    return "" if frame is None else _place(frame.f_code, frame.f_lineno)


def _place_of_task(task: asyncio.Task[Any]) -> str:
    """Where a task waits: the innermost function that is not of asyncio."""
    place = ""
    for frame in _frames(task.get_coro()):
        if not frame.f_code.co_filename.startswith(_ASYNCIO):
            place = _place(frame.f_code, frame.f_lineno)
    return place


def _frames(coroutine: Any) -> Iterator[FrameType]:
    """The frames of a suspended coroutine and of those that it awaits, from the outermost on."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is not None:
            yield frame
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)


def _place(code: CodeType, line: int | None) -> str:
    return f" (in {code.co_qualname}, {code.co_filename}:{line})"
