"""Waiting for what no event tells, such as the end of somebody else's process."""

import asyncio
import time

DEADLINE = 30.0
"""Seconds until a wait for something that should happen is a failure; generous, as machines are shared."""

PAUSE = 0.005


async def eventually(condition):
    """Until this holds, while the event loop goes on."""
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(PAUSE)


def wait_until(condition):
    """Until this holds, where there is no event loop."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {DEADLINE:.0f} s"
        time.sleep(PAUSE)
