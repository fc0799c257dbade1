"""`accord.run`: runs a program on uvloop if that is installed, and ends it in order on Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from accord.transports.stdio import fill_closed_streams

T = TypeVar("T")


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


def loop_factory(*, uvloop: bool | None = None) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's loop where it may be used, else asyncio's own."""
    if uvloop is False:
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        if uvloop:
            raise
        return None
    return new_event_loop
