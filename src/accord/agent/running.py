"""An agent as a program: over standard input and output, ended in order by signals."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable
from contextlib import suppress

from accord.errors import AccordError, ConnectionClosed, StoreError
from accord.running import run

OWNER = "ACCORD_OWNER"
"""The variable in which the program of an agent finds whose sessions these are, where it is hosted for many users."""


UNWRITABLE = 5
"""The exit code of a program whose output cannot be written."""


class Unwritable(AccordError):
    """Standard output cannot be written, and not because its reader has gone: the disk is full, for instance."""


def run_until_the_end(serving: Awaitable[None], name: str, *, uvloop: bool | None) -> None:
    """Run this, an agent's service, to its end. A signal ends it as its client would, and the program with its code.

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
    """Serve; the signal that ended it, if one did."""
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
