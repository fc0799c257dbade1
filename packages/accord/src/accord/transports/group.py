"""The process group of an agent: waits for it, signals it as a whole, and ends all of its members.

Agents are often started by a wrapper (npx, uvx, a shell script). Ending the wrapper alone would leave the agent
running, so this module ends the group that the wrapper leads. A process that leaves the group on purpose (a daemon) is
not followed here; see `strays`.

The kernel reuses a group's number only after all members have ended and are reaped. So a group that was once seen empty
is never signalled again, nor is one whose number another process has by now.
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
from accord.transports.light_event import LightEvent

if sys.platform == "win32":
    from accord.windows.processes import contained

LEFT_BEHIND = 0.25
"""Seconds that the other members have to end, or to finish their output, after the leader has ended."""

LAST_STEPS = 1.0
"""Seconds in which a process that closed its output may still end by itself: long, for busy machines."""

REAP = 1.0
"""Least seconds to wait for a killed process to be gone: only the machine's load can delay that."""


class ExitWatch:
    """Waits for a process and reaps it, without a thread if the platform can."""

    def __init__(self, process: subprocess.Popen[bytes], on_exit: Callable[[], None] | None = None) -> None:
        self._process = process
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._pidfd = _pidfd(process.pid)
        self._thread: threading.Thread | None = None
        self.exited = LightEvent()
        if self._pidfd is not None:
            self._loop.add_reader(self._pidfd, self.look)
        else:
            self._thread = threading.Thread(target=self._wait, name=f"wait-{process.pid}", daemon=True)
            self._thread.start()

    def _wait(self) -> None:
        self._process.wait()
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.look)

    def look(self) -> None:
        """Check whether the process has ended."""
        if not self.exited.is_set() and self._process.poll() is not None:
            self.close()
            self.exited.set()
            if self._on_exit is not None:
                self._on_exit()

    def close(self) -> None:
        """Stop watching. A process that still runs, although it was killed, is reaped when it ends."""
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
            if self._process.poll() is None:  # a full disk or a dead network drive can keep it
                threading.Thread(target=self._process.wait, name=f"reap-{self._process.pid}", daemon=True).start()
        if self._thread is not None and self._process.returncode is not None:
            self._thread.join()


class ProcessGroup:
    """A process that leads its own group, and the other members of the group."""

    def __init__(self, leader: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> None:
        self._leader = leader
        self._birth = birth_of(leader.pid)
        self._empty = False
        self._watch = ExitWatch(leader, on_exit)
        self.exited = self._watch.exited

    @property
    def exit_code(self) -> int | None:
        """The leader's exit code; negative if a signal ended it, None while it runs."""
        return self._leader.returncode

    async def is_ending(self) -> bool:
        """Whether the leader has ended or ends within a moment: the kernel closes its files before it ends."""
        await within(LAST_STEPS, self.exited.wait())
        self._watch.look()  # a blocked event loop may not have noticed the end yet
        return self.exited.is_set()

    async def end(self, grace: float) -> None:
        """End the group after its input was closed: wait, terminate, wait, kill, reap."""
        if await within(grace, self.exited.wait()) and await within(LEFT_BEHIND, self._gone()):
            return
        await self.stop(grace)
        self._watch.close()

    async def stop(self, grace: float) -> None:
        """Send SIGTERM to all members, and SIGKILL to those that do not end within `grace` seconds."""
        self.terminate()
        if not await within(grace, self._gone()):
            self.kill()
            await within(max(grace, REAP), self._gone())

    def close(self) -> None:
        """Stop watching, after `stop`."""
        self._watch.close()

    async def _gone(self) -> None:
        await self.exited.wait()
        pause = 0.002
        while self.has_members():
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.1)

    def abandon(self) -> None:
        """Kill all members at once, and block until the leader is reaped: for when waiting itself is cancelled."""
        if not self.exited.is_set() or self.has_members():
            self.kill()
            with suppress(subprocess.TimeoutExpired):
                self._leader.wait(timeout=REAP)
        self._watch.close()

    if sys.platform == "win32":

        def interrupt(self) -> None:
            contained(self._leader).ask_to_end()

        def terminate(self) -> None:
            contained(self._leader).ask_to_end()

        def kill(self) -> None:
            contained(self._leader).job.terminate()

        def has_members(self) -> bool:
            return not contained(self._leader).job.is_empty()

    else:

        def interrupt(self) -> None:
            """Interrupt all members, as a terminal does for Ctrl-C (on Windows for Ctrl-Break)."""
            self._signal(signal.SIGINT)

        def terminate(self) -> None:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # a stopped process handles SIGTERM only after SIGCONT

        def kill(self) -> None:
            self._signal(signal.SIGKILL)

        def _signal(self, number: int) -> None:
            if not self._is_over():
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._leader.pid, number)

        def has_members(self) -> bool:
            """Whether members are left that we may signal; call it only after the leader is reaped."""
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
            """Whether the group's number may belong to others: the group was empty, or the number was reused."""
            if self.exited.is_set() and recycled(self._leader.pid, self._birth):
                self._empty = True
            return self._empty

        def _reap_orphans(self) -> None:
            # If we are a container's first process, orphans become our children, and only we can reap them.
            with suppress(ChildProcessError):
                while os.waitpid(-self._leader.pid, os.WNOHANG)[0]:
                    pass


if sys.platform == "win32":

    def kill_group(leader: subprocess.Popen[bytes]) -> None:
        """Kill a process that `launch` has started, and the members of its group (on Windows: of its job)."""
        contained(leader).job.terminate()

else:

    def kill_group(leader: subprocess.Popen[bytes]) -> None:
        """Kill a process that `launch` has started, and the members of its group (on Windows: of its job)."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader.pid, signal.SIGKILL)


def _pidfd(pid: int) -> int | None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # an old kernel, or a sandbox without pidfd
            return os.pidfd_open(pid)
    return None


def _only_zombies(group: int) -> bool:
    """Whether all members are zombies, which an init process does not reap in many containers."""
    if sys.platform != "linux":
        return False
    return all(state in "ZX" for state, its_group in _processes() if its_group == group)


def _processes() -> Iterator[tuple[str, int]]:
    """The state and the group of every process on the machine."""
    from pathlib import Path

    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                # The second field is the command in parentheses; it may contain parentheses and spaces.
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                yield fields[0], int(fields[2])
