"""Waiting for what no event tells, such as the end of somebody else's process."""

import asyncio
import time

DEADLINE = 100.0
"""Seconds until a wait for something that should happen is a failure; generous, as machines are shared."""

PAUSE, LONGEST_PAUSE = 0.005, 0.05
"""Seconds between two looks: they double. A look may cost a process, and a busy machine is made no busier."""


async def eventually(condition):
    """Until this holds, while the event loop goes on."""
    async with asyncio.timeout(DEADLINE):
        pause = PAUSE
        while not condition():
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def wait_until(condition):
    """Until this holds, where there is no event loop."""
    deadline = time.monotonic() + DEADLINE
    pause = PAUSE
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {DEADLINE:.0f} s"
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
