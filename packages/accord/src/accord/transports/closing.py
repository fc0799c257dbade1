"""Helpers for waiting with a deadline, and for waiting in spite of a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any


async def within(seconds: float, awaitable: Awaitable[object]) -> bool:
    """Wait for this at most so many seconds; returns whether it finished in time."""
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
        task.result()  # an error is the caller's to see
