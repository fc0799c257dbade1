"""The process group of an agent, and the processes that left it: waits for them, signals them and ends them all.

Agents are often started by a wrapper (npx, uvx, a shell script). Ending the wrapper alone would leave the agent
running, so `ProcessGroup` ends the group that the wrapper leads.

The kernel reuses a group's number only after all members have ended and are reaped. So a group that was once seen empty
is never signalled again, nor is one whose number another process has by now.

`EscapedProcesses` ends processes that have left the group: a daemon, a tmux server, `setsid`. Such a process belongs to
no group of ours, and its parent is `init` soon. But it has inherited its environment, which the kernel shows in
`/proc`. So each agent gets a mark in its environment, and when its group has ended, every process that has the mark is
ended, too. A process that clears its environment is not found, nor is one of another user. Only Linux shows
environments; elsewhere such processes survive.

A scan of `/proc` takes about 15 µs for each process of ours. It shows one moment: processes can start others meanwhile,
so it is repeated until nothing is found.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress

from accord._internal.tasks import LightEvent, within
from accord.transports.guard_process import birth_of, recycled

if sys.platform == "win32":
    from accord.windows.processes import contained

LEFT_BEHIND = 0.25
"""Seconds that the other members have to end, or to finish their output, after the leader has ended."""

LAST_STEPS = 1.0
"""Seconds within which a process that closed its output may still end on its own: long, for busy machines."""

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
            """Whether there are members that we may signal; call it only after the leader is reaped."""
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

    def signal_group(leader: subprocess.Popen[bytes], number: int) -> None:  # noqa: ARG001
        """Send a signal to the group of a process that `launch` has started; on Windows, any is Ctrl-Break."""
        contained(leader).ask_to_end()

else:

    def kill_group(leader: subprocess.Popen[bytes]) -> None:
        """Kill a process that `launch` has started, and the members of its group (on Windows: of its job)."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader.pid, signal.SIGKILL)

    def signal_group(leader: subprocess.Popen[bytes], number: int) -> None:
        """Send a signal to the group of a process that `launch` has started; on Windows, any is Ctrl-Break."""
        os.killpg(leader.pid, number)


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


MARK = "ACCORD_STARTED_BY"
"""The variable with the marks: of this agent, and of the agents that started it, directly or not."""

KILLED_WITHIN = 1.0
"""Seconds that killed processes have to be gone."""


class EscapedProcesses:
    """The processes that one agent has started, wherever they are now."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self._sought = self._mark.encode()

    def marked(self, environment: dict[str, str]) -> dict[str, str]:
        """Return this environment with the mark of the agent, if the system can find it again."""
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
        """Signal each of them once, including new ones; returns whether all are gone in time."""
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
        """Return the ids of all of them, including the agent's own process."""
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
