"""An event loop that never waits.

Its clock stands still while anything can happen and then jumps to the next timer, so that deadlines cost nothing and no
test depends on the machine's speed. When everybody waits and there is no timer either, that is an error at once: what
would hang for ever elsewhere is `Stalled` here, with the same certainty on every machine.

It is for programs that only speak to themselves: no sockets, no threads, no processes.
"""

from __future__ import annotations

import asyncio
import selectors

NEVER = 24 * 3600
"""Seconds after which a timer counts as none."""


class Stalled(AssertionError):
    """Everybody waits, and nothing will ever happen again."""


class _Selector(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout=None):
        if (ready := super().select(0)) or timeout == 0:
            return ready
        if timeout is None or timeout >= NEVER:
            raise Stalled(f"nothing will ever happen again; waiting: {self.loop.who_waits()}")
        self.loop.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """See above; `now` is the time, and starts at 0."""

    def __init__(self):
        self.now = 0.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self):
        return self.now

    def who_waits(self):
        return ", ".join(sorted(task.get_name() for task in asyncio.all_tasks(self)))


async def settle():
    """Let everything happen that can happen before the next timer."""
    loop = asyncio.get_running_loop()
    settled = loop.create_future()
    loop.call_later(1e-6, settled.set_result, None)
    await settled
