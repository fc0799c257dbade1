"""The processes that an agent leaves when it ends. They are seen before its transport ends them.

A process of the agent has some seconds to end after the agent, because it may learn of the end from a closed pipe. The
kernel tells when it ends, so only one that stays is waited for. Linux shows which processes an agent has started.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from accord import ProcessTransport
from accord.transports.transport_interface import Transport

_SHOWN = 3
"""The most processes that a finding names."""


class Leftovers:
    """Looks for the processes of one agent, once the agent has ended by itself."""

    def __init__(self, transport: Transport, patience: float) -> None:
        self.left: list[str] | None = None
        """The commands of the processes that are left; None if nothing tells them."""
        self._patience = patience
        if isinstance(transport, ProcessTransport):
            self._transport = transport
            if sys.platform == "linux":
                transport.before_cleanup = self._look

    @property
    def problem(self) -> str | None:
        """What is wrong, in words; None if no process is left."""
        if not self.left:
            return None
        more = f" and {len(self.left) - _SHOWN} more" if len(self.left) > _SHOWN else ""
        what = "processes that the agent started run" if len(self.left) > 1 else "a process that the agent started runs"
        return f"{what} on {self._patience:g} s after its end: {', '.join(self.left[:_SHOWN])}{more}"

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                while pids := self._transport.started():
                    await _ended(pids[0])
        except TimeoutError:
            self.left = [name for pid in self._transport.started() if (name := _command_of(pid))]
        except OSError:  # a sandbox that does not let us watch processes
            return
        else:
            self.left = []


async def _ended(pid: int) -> None:
    """Wait for the end of a process that is not our child."""
    if sys.platform != "linux":
        raise OSError("only Linux tells of processes that are not our children")
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(watched, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def _command_of(pid: int) -> str:
    """The command line of a process, shortened; empty for one that has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", "replace").strip()[:80]
