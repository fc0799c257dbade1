"""Ends what an agent has started and what has left its process group: a daemon, a tmux server, `setsid`.

Such a process belongs to no group of ours, and its parent is `init` soon. But it has inherited its environment, which
the kernel shows in `/proc`. So each agent gets a mark in its environment, and when its group has ended, every process
that has the mark is ended, too. A process that clears its environment is not found, nor is one of another user. Only
Linux shows environments; elsewhere such processes survive.

One look at `/proc` takes about 15 µs for each process of ours. It is a look at a moment: processes can start others
meanwhile, so it is repeated until nothing is found.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress

MARK = "ACCORD_STARTED_BY"
"""The variable that holds the marks: of this agent, and of those that it was started by in turn."""

KILLED_WITHIN = 1.0
"""Seconds that killed processes have to be gone."""


class Strays:
    """The processes that one agent has started, wherever they are now."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self._sought = self._mark.encode()

    def marked(self, environment: dict[str, str]) -> dict[str, str]:
        """This environment with the mark of the agent, where the system can find it again."""
        if sys.platform != "linux":
            return environment
        outer = environment.get(MARK, "")
        return {**environment, MARK: f"{outer} {self._mark}".strip()}

    async def end(self, grace: float) -> None:
        """Send SIGTERM to all of them, and SIGKILL to those that do not end within `grace` seconds."""
        if sys.platform == "win32":  # a job ends them
            return
        if await self._signal_until_gone(signal.SIGTERM, grace):
            return
        await self._signal_until_gone(signal.SIGKILL, KILLED_WITHIN)

    def kill(self) -> None:
        """Kill all of them at once."""
        if sys.platform == "win32":  # a job ends them
            return
        for pid in self.pids():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    async def _signal_until_gone(self, number: int, seconds: float) -> bool:
        """Signal each of them once, also those that appear meanwhile; returns whether all are gone in time."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + seconds, 0.002
        asked: set[int] = set()
        while found := set(self.pids()):
            for pid in found - asked:
                with suppress(OSError):
                    os.kill(pid, number)
            asked |= found
            if loop.time() > deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.1)
        return True

    def pids(self) -> Iterator[int]:
        """The ids of all of them, the agent's own process included."""
        if sys.platform != "linux":
            return
        for name in os.listdir("/proc"):  # noqa: PTH208 (a Path for each process takes as long as all the rest)
            if name.isdecimal() and self._has_mark(name):
                yield int(name)

    def _has_mark(self, pid: str) -> bool:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                return self._sought in file.read()
        except OSError:  # it has ended, or belongs to another user
            return False
