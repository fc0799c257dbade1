"""Runs a program: on uvloop if it is installed and not refused. Signals end an agent in order.

A program that something keeps alive is ended by force, with a message that names the cause. Python waits for ever, at
the end of an event loop, for tasks that swallow their cancellation and for functions in threads (`asyncio.to_thread`).
A program whose client has disconnected must end all the same: nothing reads its output any more, and the client counts
on it. So when its service has ended in order, with all its data written, the rest has a few seconds (`ENDS_WITHIN`).
Then a daemon thread reports what still runs, and ends the process at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

from accord.errors import AccordError, ConnectionClosed, StoreError
from accord.installation import missing_extra
from accord.mistakes import forgotten_awaits_are_logged
from accord.printable import printable

T = TypeVar("T")

OWNER = "ACCORD_OWNER"
"""The variable with the owner of the sessions of an agent's program, if a server runs it for many users."""

STORE = "ACCORD_STORE"
"""The variable with the store of the sessions of an agent's program, unless its author sets one: a path or a URL."""

UNWRITABLE = 5
"""The exit code of a program whose output cannot be written."""


TERMINATIONS = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGBREAK") if hasattr(signal, name))
"""Signals that end an agent. On Windows, Ctrl-Break is the one that reaches a process in its own group."""


loop_watchers: list[Callable[[asyncio.AbstractEventLoop, str | None], object]] = []
"""Called with each event loop that `run` starts, and with the name of the agent that it serves; None for a client.

`accord dev` watches the programs that it starts with this.
"""


class Unwritable(AccordError):
    """Standard output cannot be written, and its reader is still there: the disk is full, for instance."""


def run(main: Coroutine[Any, Any, T], *, uvloop: bool | None = None, debug: bool = False) -> T:
    """Run this to its end, like `asyncio.run`.

    `uvloop` is used if it is installed; True requires it, False forbids it.

    >>> async def hello() -> str:
    ...     return "hello"
    >>> run(hello())
    'hello'
    """
    return _run(main, None, uvloop=uvloop, debug=debug)


def _run(main: Coroutine[Any, Any, T], serves: str | None, *, uvloop: bool | None = None, debug: bool = False) -> T:
    from accord.transports.stdio_transport import fill_closed_streams

    fill_closed_streams()
    with asyncio.Runner(loop_factory=loop_factory(uvloop=uvloop), debug=debug or None) as runner:
        for watch in loop_watchers:
            watch(runner.get_loop(), serves)
        return runner.run(main)


def explain_at_a_terminal(name: str) -> None:
    """Explain to a user who started an agent by hand what it waits for; does nothing if a client has started it."""
    if sys.stdin is None or not sys.stdin.isatty() or sys.stderr is None:
        return
    command = printable(_own_command())
    print(
        f"{printable(name)} is an agent. It waits for a client that speaks the Agent Client Protocol "
        "on standard input.\n"
        f'To talk to it here, use: accord run "Say hello" -- {command}\n'
        f"In an editor's settings, enter the command: {command}\n"
        "Press Ctrl-D to end it.",
        file=sys.stderr,
    )


def _own_command() -> str:
    """The command that started this program, as a user would type it."""
    words = list(sys.orig_argv)
    if len(words) > 1 and Path(words[1]).name == "accord":  # the script that is on PATH
        words = ["accord", *words[2:]]
    import shlex  # only for words to a person at a terminal

    return shlex.join(words)


def run_until_the_end(serving: Awaitable[None], name: str, *, uvloop: bool | None) -> None:
    """Serve until the end. A signal ends the service like its client would, and then the program with its exit code.

    Output that cannot be written, or a store that cannot be used, ends the program with its own exit code and one line
    on standard error. Tasks and threads that do not end with the service are ended by force, see `LastResort`.
    """
    _check_no_loop_runs(serving)
    last_resort = LastResort(name)
    try:
        with forgotten_awaits_are_logged():
            ended_by = _run(_until_terminated(serving, last_resort), name, uvloop=uvloop)
    except KeyboardInterrupt:
        ended_by = signal.SIGINT
    except (StoreError, ConnectionClosed) as error:
        raise SystemExit(f"{name}: {error}") from None
    except Unwritable as error:
        print(f"{name}: {error}", file=sys.stderr)
        raise SystemExit(UNWRITABLE) from None
    finally:
        last_resort.call_off()
    if ended_by is not None:
        raise SystemExit(128 + ended_by)


def _check_no_loop_runs(serving: Awaitable[None]) -> None:
    """Raise RuntimeError inside of a running event loop; asyncio's error would name a coroutine that the user did not
    write.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if isinstance(serving, Coroutine):
        serving.close()
    raise RuntimeError(
        "run() starts an event loop, and one is running already: call it outside of async code, or write "
        "`await agent.serve(accord.StdioTransport.standard())`"
    )


async def _until_terminated(serving: Awaitable[None], last_resort: LastResort) -> int | None:
    """Serve, and return the signal that ended it, if one did."""
    task = asyncio.ensure_future(serving)
    loop, terminated = asyncio.get_running_loop(), asyncio.Event()

    def terminate() -> None:
        last_resort.call_off()
        terminated.set()
        task.cancel()

    def received(_: int, __: object) -> None:
        # Python calls this also while a function blocks the event loop, which would never see the signal then.
        last_resort.start(128 + signal.SIGTERM, what_blocks, "SIGTERM")
        loop.call_soon_threadsafe(terminate)

    def served(task: asyncio.Future[None]) -> None:
        code = 128 + (signal.SIGTERM if terminated.is_set() else signal.SIGINT) if task.cancelled() else 0
        failed = not task.cancelled() and task.exception() is not None
        last_resort.start(1 if failed else code, Remains(), "it had stopped serving")

    task.add_done_callback(served)
    with _on_sigterm(received):
        try:
            await task
        except asyncio.CancelledError:
            if not terminated.is_set():
                raise
    return signal.SIGTERM if terminated.is_set() else None


@contextmanager
def _on_sigterm(handle: Callable[[int, object], None]) -> Generator[None]:
    """Call this when the process gets SIGTERM, if that can be arranged: only in the main thread."""
    before: dict[signal.Signals, Any] = {}
    try:
        for number in TERMINATIONS:
            before[number] = signal.signal(number, handle)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def loop_factory(*, uvloop: bool | None = None) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop's loop if it may be used, else of asyncio's own."""
    if uvloop is False:
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        if uvloop:
            raise missing_extra("uvloop", "uvloop=True") from None
        return None
    return new_event_loop


ENDS_WITHIN = 3.0
"""Seconds that tasks and threads have to end after the service has, and that the event loop has to notice SIGTERM."""

_ASYNCIO = str(Path(asyncio.__file__).parent)


class LastResort:
    """Ends the process unless it is called off in time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._timer: threading.Timer | None = None

    def start(self, exit_code: int, what_holds_it: Callable[[], list[str]], since: str) -> None:
        """End the process with this code in `ENDS_WITHIN` seconds, and report what holds it, and since when."""
        self.call_off()
        self._timer = threading.Timer(ENDS_WITHIN, self._end, (exit_code, what_holds_it, since))
        self._timer.daemon = True  # it must not hold the process itself
        self._timer.start()

    def call_off(self) -> None:
        """Cancel the timer: the process ends normally."""
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
    """The tasks and threads that run at this moment; call it later for a description of those that still do."""

    def __init__(self) -> None:
        self._tasks = asyncio.all_tasks()
        # Daemons do not hold the process, and the main thread is the one that is held.
        self._threads = [it for it in threading.enumerate() if not it.daemon and it is not threading.main_thread()]

    def __call__(self) -> list[str]:
        tasks = [f"the task {it.get_name()!r}{_place_of_task(it)}" for it in self._tasks if not it.done()]
        return [*tasks, *(f"the thread {it.name!r}{_place_of_thread(it)}" for it in self._threads if it.is_alive())]


def what_blocks() -> list[str]:
    """Describe the function that keeps the main thread from its event loop."""
    return [f"the main thread{_place_of_thread(threading.main_thread())}"]


def _place_of_thread(thread: threading.Thread) -> str:
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    frame = frames.get(thread.ident or 0)
    return "" if frame is None else _place(frame.f_code, frame.f_lineno)


def _place_of_task(task: asyncio.Task[Any]) -> str:
    """Describe where a task waits: the innermost function that is not of asyncio."""
    place = ""
    for frame in _frames(task.get_coro()):
        if not frame.f_code.co_filename.startswith(_ASYNCIO):
            place = _place(frame.f_code, frame.f_lineno)
    return place


def _frames(coroutine: Any) -> Iterator[FrameType]:
    """Yield the frames of a suspended coroutine and of those that it awaits, from the outermost on."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is not None:
            yield frame
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)


def _place(code: CodeType, line: int | None) -> str:
    return f" (in {code.co_qualname}, {code.co_filename}:{line})"


@contextmanager
def on_signals(numbers: Iterable[signal.Signals], do: Callable[[], object]) -> Generator[None]:
    """Call `do` in the event loop for each of these signals inside this block. Only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    taken: list[signal.Signals] = []
    before: dict[signal.Signals, Any] = {}

    def handle(_: int, __: FrameType | None) -> None:
        loop.call_soon_threadsafe(do)

    try:
        for number in numbers:
            try:
                loop.add_signal_handler(number, do)
                taken.append(number)
            except NotImplementedError:  # Windows
                before[number] = signal.signal(number, handle)
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
        for number, handler in before.items():
            signal.signal(number, handler)
