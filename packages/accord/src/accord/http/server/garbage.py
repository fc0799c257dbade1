"""When a server looks for cyclic garbage: once enough connections have ended, and not while they are opened.

Python looks at all objects whenever their number has grown by a quarter. With thousands of connections that takes
seconds, in which the server does nothing else: clients wait, and other hosts declare it dead. A connection leaves
garbage only when it ends. So this looks once as many connections have ended as half of those that are open, or once
there are many new objects that no open connection accounts for. Young objects are collected as always.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

LOOK_EVERY = 1.0
"""Seconds between two decisions."""

LEAST_ENDED = 500
"""Connections that must have ended."""

OF_A_CONNECTION = 2_000
"""Objects that an open connection accounts for. It has some 800, and half as many for its streams on other hosts."""

LEAST_NEW = 1_000_000
"""Objects that no connection accounts for; they take about 100 MB."""

NEVER = 2**31 - 1


class Counted(Protocol):
    """A server whose connections are counted: `App`."""

    ended: int
    """How many connections have ended since it was made."""

    @property
    def connections(self) -> int:
        """How many are open."""
        ...


class Garbage:
    """Decides when to look for garbage. PURE."""

    def __init__(self, server: Counted) -> None:
        self._server = server
        self._ended, self._open = server.ended, server.connections

    def is_due(self, new: int) -> bool:
        """Whether to look now, when so many objects have become old since the last time."""
        ended = self._server.ended - self._ended
        opened = max(0, self._server.connections - self._open)
        is_much = ended >= max(LEAST_ENDED, self._server.connections // 2)
        return is_much or new - OF_A_CONNECTION * opened >= LEAST_NEW

    def collected(self) -> None:
        """All garbage was collected."""
        self._ended, self._open = self._server.ended, self._server.connections


@contextmanager
def collected_for(server: Counted) -> Generator[None]:
    """Collect garbage in this process as suits this server, for as long as the block lasts. Needs a running loop."""
    young, middle, old = gc.get_threshold()
    if not gc.isenabled() or not old:  # the program has its own way
        yield
        return
    gc.set_threshold(young, middle, NEVER)
    looking = asyncio.get_running_loop().create_task(_look(server, young * middle), name="accord http: garbage")
    try:
        yield
    finally:
        looking.cancel()
        gc.set_threshold(young, middle, old)


async def _look(server: Counted, of_a_pass: int) -> None:
    garbage = Garbage(server)
    while True:
        await asyncio.sleep(LOOK_EVERY)
        if garbage.is_due(gc.get_count()[2] * of_a_pass):
            gc.collect()
            garbage.collected()
