"""Starts the guard: a small process that ends our agents if we are killed.

The problem: `kill -9`, the out-of-memory killer or a crash give us no chance to run any code. The kernel's parent-death
signal reaches only direct children (not what a wrapper started), and it fires as soon as the *thread* that started them
ends. So each of our processes has one guard process. It starts before the first agent, ends after the last, and holds
the read end of a pipe. It knows the process groups of all our agents. If the pipe closes while it still knows some, it
ends them.

- There is one guard for all agents: it costs 10 ms of processor time and 8 MiB, and hosts have hundreds of agents.
- The guard is in its own session (Ctrl-C at our terminal does not reach it) and holds none of the agents' pipes.
- Only we hold the write end of the pipe: it is closed on exec, and in a child that we fork without exec.
- The guard learns of an agent *before* the agent starts, by the pipe that becomes one of its standard streams. So on
  Linux the guard finds an agent even if we are killed between its start and the line that names its group.
- A group's number comes with the start time of its leader, so a reused number is not mistaken for the group.

On Windows a job does this (`accord.windows.processes`). In a frozen application, where `sys.executable` is not an
interpreter, there is no guard.
"""

from __future__ import annotations

import itertools
import logging
import os
import select
import subprocess
import sys
import threading
from contextlib import suppress

from accord._internal.tasks import within
from accord.transports import guard_process
from accord.transports.process_group import ExitWatch

PATIENCE = 2.0
"""Seconds that the guard has to end when it has nothing to guard, before it is killed."""

READS_WITHIN = 2.0
"""Seconds for a new guard to make room in the pipe, if its list is longer than the pipe's buffer."""

_log = logging.getLogger("accord.transports")


class OrphanGuard:
    """The guard's entry of one agent, from before the agent's start until its group has ended."""

    def __init__(self, stream: int) -> None:
        """`stream` is the pipe that becomes the agent's standard input or output."""
        self._key = next(_keys)
        _guard.tell(self._key, f"expect {self._key} {os.fstat(stream).st_ino}")

    def leads(self, group: int) -> None:
        """The agent has started and leads this group."""
        _guard.tell(self._key, f"group {self._key} {group} {guard_process.birth_of(group)}")

    async def release(self) -> None:
        """The agent has ended with its group. The last ward waits until the guard has ended."""
        if ending := _guard.forget(self._key):
            watch = ExitWatch(ending)
            try:
                if not await within(PATIENCE, watch.exited.wait()):
                    ending.kill()
            finally:
                _reap(ending)
                watch.close()

    def release_now(self) -> None:
        """Like `release`, but blocks: for use without an event loop."""
        if ending := _guard.forget(self._key):
            _reap(ending)


class Guard:
    """Our end of the guard: its process and its pipe while there are agents, and the lines sent for each agent."""

    def __init__(self) -> None:
        self._lines: dict[int, list[str]] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._parents: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._lock = threading.Lock()  # event loops in several threads share one guard

    def tell(self, key: int, line: str) -> None:
        """Send the guard a line about an agent; starts the guard if necessary."""
        with self._lock:
            self._lines.setdefault(key, []).append(line)
            try:
                if self._process is None:
                    self._start()
                else:
                    self._write(line)
            except OSError:
                self._restart()

    def forget(self, key: int) -> subprocess.Popen[bytes] | None:
        """Remove an agent. Returns the guard's process if this was the last agent, so the guard is ending."""
        with self._lock:
            if self._lines.pop(key, None) is None or self._process is None:
                return None
            with suppress(OSError):  # the guard was killed; the next `tell` restarts it
                self._write(f"forget {key}")
            return None if self._lines else self._dismiss()

    def leave_to_the_parent(self) -> None:
        """Drop the guard in a child that was forked without exec: it belongs to the parent."""
        if self._process is not None:
            self._parents = self._dismiss()  # kept because its finalizer would warn that it still runs
        self._lines = {}
        self._lock = threading.Lock()  # another thread of the parent may have held the old lock at the fork

    def _start(self) -> None:
        if POSSIBLE:
            self._process, self._pipe = _spawn()
            self._write(*itertools.chain.from_iterable(self._lines.values()), patience=READS_WITHIN)

    def _restart(self) -> None:
        """Start a new guard: the old one was killed, or does not read its pipe, or could not be started."""
        if self._process is not None:
            self._process.kill()
            _reap(self._dismiss())
        try:
            self._start()
        except OSError as error:
            if self._process is not None:  # the new guard does not read; half a list is useless
                self._process.kill()
                _reap(self._dismiss())
            _log.warning(
                "cannot run the guard process (%s); agents may survive if this process is killed by SIGKILL", error
            )

    def _write(self, *lines: str, patience: float = 0.0) -> None:
        """Write all lines, or raise OSError: after half a list the guard would not know the other half.

        If the pipe is full, wait up to `patience` seconds for room, each time.
        """
        rest = memoryview("".join(f"{line}\n" for line in lines).encode())
        while rest:
            try:
                rest = rest[os.write(self._pipe, rest) :]
            except BlockingIOError:
                if not patience or not _has_room(self._pipe, patience):
                    raise

    def _dismiss(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        os.close(self._pipe)
        process, self._process, self._pipe = self._process, None, -1
        return process


def _spawn() -> tuple[subprocess.Popen[bytes], int]:
    assert sys.platform != "win32"
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard_process.__file__],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return process, writing


def _has_room(pipe: int, patience: float) -> bool:
    """Whether the pipe accepts data within this many seconds."""
    assert sys.platform != "win32"
    room = select.poll()  # unlike `select`, accepts any descriptor
    room.register(pipe, select.POLLOUT)
    return bool(room.poll(patience * 1000))


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


POSSIBLE = sys.platform != "win32" and bool(sys.executable) and not getattr(sys, "frozen", False)

_keys = itertools.count()
_guard = Guard()

if sys.platform != "win32":
    os.register_at_fork(after_in_child=_guard.leave_to_the_parent)
