"""Running a program: on uvloop where it is installed and not refused. Signals end an agent in order."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from accord.errors import AccordError, ConnectionClosed, StoreError
from accord.extras import missing_extra
from accord.mistakes import forgotten_awaits_are_logged
from accord.overdue import LastResort, Remains, what_blocks
from accord.printable import printable
from accord.transports.stdio import fill_closed_streams

T = TypeVar("T")

OWNER = "ACCORD_OWNER"
"""The variable that tells an agent's program who owns its sessions, where a server runs it for many users."""

STORE = "ACCORD_STORE"
"""The variable that tells an agent's program where to keep sessions, unless its author says it: a path or a URL."""

UNWRITABLE = 5
"""The exit code of a program whose output cannot be written."""


TERMINATIONS = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGBREAK") if hasattr(signal, name))
"""Signals that tell an agent to end. On Windows, Ctrl-Break is the one that reaches a process in a group of its own."""


class Unwritable(AccordError):
    """Standard output cannot be written, and its reader is still there: the disk is full, for instance."""


def run(main: Coroutine[Any, Any, T], *, uvloop: bool | None = None, debug: bool = False) -> T:
    """Run this to its end, like `asyncio.run`.

    `uvloop` is used if it is installed; True insists on it, False refuses it.

    >>> async def hello() -> str:
    ...     return "hello"
    >>> run(hello())
    'hello'
    """
    fill_closed_streams()
    with asyncio.Runner(loop_factory=loop_factory(uvloop=uvloop), debug=debug or None) as runner:
        return runner.run(main)


def explain_at_a_terminal(name: str) -> None:
    """Tell a user who started an agent by hand what it waits for; does nothing if a client has started it."""
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
    """Serve until the end. A signal ends the service as its client would, and then the program with its exit code.

    Output that cannot be written, or a store that cannot be used, ends the program with an exit code of its own and one
    line on standard error. What does not end with the service is ended by force, see `accord.overdue`.
    """
    _check_no_loop_runs(serving)
    last_resort = LastResort(name)
    try:
        with forgotten_awaits_are_logged():
            ended_by = run(_until_terminated(serving, last_resort), uvloop=uvloop)
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
    """Raise RuntimeError inside of a running event loop; asyncio would speak of a coroutine that nobody wrote."""
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
    """Call this when the process is told to end, where that can be arranged: not beside the main thread."""
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
    """uvloop's loop where it may be used, else asyncio's own."""
    if uvloop is False:
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        if uvloop:
            raise missing_extra("uvloop", "uvloop=True") from None
        return None
    return new_event_loop
