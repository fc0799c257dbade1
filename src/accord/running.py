"""Running a program: on uvloop where it is installed and not refused. Signals end an agent in order."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from accord.errors import AccordError, ConnectionClosed, StoreError
from accord.extras import missing_extra
from accord.transports.stdio import fill_closed_streams

T = TypeVar("T")

OWNER = "ACCORD_OWNER"
"""The variable that tells an agent's program who owns its sessions, where a server runs it for many users."""

UNWRITABLE = 5
"""The exit code of a program whose output cannot be written."""


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


def run_until_the_end(serving: Awaitable[None], name: str, *, uvloop: bool | None) -> None:
    """Serve until the end. A signal ends the service as its client would, and then the program with its exit code.

    Output that cannot be written, or a store that cannot be used, ends the program with an exit code of its own and one
    line on standard error.
    """
    try:
        ended_by = run(_until_terminated(serving), uvloop=uvloop)
    except KeyboardInterrupt:
        ended_by = signal.SIGINT
    except (StoreError, ConnectionClosed) as error:
        raise SystemExit(f"{name}: {error}") from None
    except Unwritable as error:
        print(f"{name}: {error}", file=sys.stderr)
        raise SystemExit(UNWRITABLE) from None
    if ended_by is not None:
        raise SystemExit(128 + ended_by)


async def _until_terminated(serving: Awaitable[None]) -> int | None:
    """Serve, and return the signal that ended it, if one did."""
    task = asyncio.ensure_future(serving)
    loop, terminated = asyncio.get_running_loop(), asyncio.Event()

    def terminate() -> None:
        terminated.set()
        task.cancel()

    with suppress(NotImplementedError, RuntimeError, ValueError):  # on Windows, or beside the main thread
        loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        await task
    except asyncio.CancelledError:
        if not terminated.is_set():
            raise
    return signal.SIGTERM if terminated.is_set() else None


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
