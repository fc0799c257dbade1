"""Waiting in a way that neither hangs nor leaves a job half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any


async def within(seconds: float, awaitable: Awaitable[object]) -> bool:
    """Wait for it, but no longer than this; tells whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await awaitable
    except TimeoutError:
        return False
    return True


async def first_of(*awaitables: Awaitable[Any], seconds: float | None = None) -> None:
    """Wait until one of these is done, or for so long, and cancel the rest: all have come to their end then.

    Whoever needs to know which it was, or its error, gives a future and looks at it.
    """
    doing = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(doing, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in doing:
            one.cancel()
        await asyncio.gather(*doing, return_exceptions=True)


async def to_the_end(task: asyncio.Task[Any]) -> None:
    """Wait until `task` is done, whatever happens to the caller: a cancellation comes through, but only then.

    `asyncio.shield` protects the task and still returns at once; whoever leaves an `async with` because it was
    cancelled would then leave the task behind.
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
