"""The group of an agent's process: to wait for, to signal as a whole, and to end without leaving anybody behind.

Agents are often started by a wrapper (npx, uvx, a shell script). Ending the wrapper alone leaves the agent running, so
everything here is about the group that the wrapper leads. What leaves the group on purpose (a daemon) is not followed.

A group's number is free for others once all of its members are gone and reaped; until then no process can get it. So a
group that was seen empty once is never signalled again, nor is one whose number another process has now.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from accord.transports.closing import within
from accord.transports.guard_process import birth_of, recycled

LEFT_BEHIND = 0.25
"""Seconds that the rest of a group has, once its leader is gone: to end by itself, or to finish its output."""

LAST_STEPS = 1.0
"""Seconds between the end of its output and its own, in which it counts as ending: a busy machine makes them long."""

REAP = 1.0
"""Seconds that a killed process has at least to be gone: nothing it does can delay that, only the machine's load."""


class ExitWatch:
    """Waits for a process without a thread where the platform can, and reaps it."""

    def __init__(self, process: subprocess.Popen[bytes], on_exit: Callable[[], None] | None = None) -> None:
        self._process = process
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._pidfd = _pidfd(process.pid)
        self._thread: threading.Thread | None = None
        self.exited = asyncio.Event()
        if self._pidfd is not None:
            self._loop.add_reader(self._pidfd, self.look)
        else:
            self._thread = threading.Thread(target=self._wait, name=f"wait-{process.pid}", daemon=True)
            self._thread.start()

    def _wait(self) -> None:
        self._process.wait()
        with suppress(RuntimeError):  # the loop is closed and nobody listens
            self._loop.call_soon_threadsafe(self.look)

    def look(self) -> None:
        """Has it ended?"""
        if not self.exited.is_set() and self._process.poll() is not None:
            self.close()
            self.exited.set()
            if self._on_exit is not None:
                self._on_exit()

    def close(self) -> None:
        """Watch no longer."""
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._thread is not None and self._process.returncode is not None:
            self._thread.join()


class ProcessGroup:
    """A process that leads a group of its own, and what it started inside of it."""

    def __init__(self, leader: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> None:
        self._leader = leader
        self._birth = birth_of(leader.pid)
        self._empty = False
        self._watch = ExitWatch(leader, on_exit)
        self.exited = self._watch.exited

    @property
    def exit_code(self) -> int | None:
        """The leader's; negative when a signal ended it, None while it runs."""
        return self._leader.returncode

    async def is_ending(self) -> bool:
        """Whether the leader ends within a moment, or has: the kernel closes a process's files before it is over."""
        await within(LAST_STEPS, self.exited.wait())
        self._watch.look()  # this loop may have been kept from hearing of it for all that time
        return self.exited.is_set()

    async def end(self, grace: float) -> None:
        """The rest of the ladder whose first step was to close their input: wait, ask, wait, kill, reap."""
        if await within(grace, self.exited.wait()) and await within(LEFT_BEHIND, self._gone()):
            return
        await self.stop(grace)
        self._watch.close()

    async def stop(self, grace: float) -> None:
        """Ask everybody in it to end, and kill who does not."""
        self.terminate()
        if not await within(grace, self._gone()):
            self.kill()
            await within(max(grace, REAP), self._gone())

    async def _gone(self) -> None:
        await self.exited.wait()
        pause = 0.002
        while self.has_members():
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.1)

    def abandon(self) -> None:
        """Kill at once what still lives, without an event loop to wait in: for when the waiting itself is cancelled."""
        if not self.exited.is_set() or self.has_members():
            self.kill()
            with suppress(subprocess.TimeoutExpired):
                self._leader.wait(timeout=REAP)
        self._watch.close()

    if sys.platform == "win32":

        def terminate(self) -> None:
            self._leader.terminate()

        def kill(self) -> None:
            self._leader.kill()

        def has_members(self) -> bool:
            return self._leader.poll() is None

    else:

        def terminate(self) -> None:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # a stopped process hears SIGTERM only when it goes on

        def kill(self) -> None:
            self._signal(signal.SIGKILL)

        def _signal(self, number: int) -> None:
            if not self._is_over():
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._leader.pid, number)

        def has_members(self) -> bool:
            """Whether somebody we may signal is left; asked only once the leader is reaped."""
            self._reap_orphans()
            if not self._is_over():
                try:
                    os.killpg(self._leader.pid, 0)
                except (ProcessLookupError, PermissionError):
                    self._empty = True
                else:
                    self._empty = _only_zombies(self._leader.pid)
            return not self._empty

        def _is_over(self) -> bool:
            """Whether its number may belong to others: nobody of it was left, or somebody else leads such a group."""
            if self.exited.is_set() and recycled(self._leader.pid, self._birth):
                self._empty = True
            return self._empty

        def _reap_orphans(self) -> None:
            # Where we are a container's first process, orphans become our children and nobody else reaps them.
            with suppress(ChildProcessError):
                while os.waitpid(-self._leader.pid, os.WNOHANG)[0]:
                    pass


def _pidfd(pid: int) -> int | None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # an old kernel, or a sandbox that does not know it
            return os.pidfd_open(pid)
    return None


def _only_zombies(group: int) -> bool:
    """Whether all that is left of a group waits for an init that does not reap, as in many containers."""
    if sys.platform != "linux":
        return False
    return all(state in "ZX" for state, its_group in _processes() if its_group == group)


def _processes() -> Iterator[tuple[str, int]]:
    """The state and the group of every process."""
    from pathlib import Path

    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                # The command stands second, in parentheses, and may itself hold parentheses and blanks.
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                yield fields[0], int(fields[2])
