"""What ends our agents when we cannot: a small process that waits for us to vanish.

`kill -9`, the out-of-memory killer or a crash give us no chance to run anything. The kernel's parent-death signal
reaches only direct children (not what a wrapper started) and fires already when the *thread* that spawned them ends.
So one process a process of ours, started before the first agent and ended with the last, holds the reading end of a
pipe and knows the groups of all our agents. When the pipe closes while it still knows some, it ends them.

- One for all agents rather than one each: it costs 10 ms of processor time and 8 MiB, and hosts have hundreds.
- It is in a session of its own (Ctrl-C at our terminal does not reach it) and holds none of the agents' pipes.
- Nobody but us holds the pipe's writing end: it is closed on exec, and in a child that we fork without exec.
- It is told of an agent *before* that is started, by the pipe that will be one of its standard streams. So an agent is
  found on Linux even when we are killed between its start and the line that names its group.
- A group's number comes with its leader's time of birth, so that a number in use again is not mistaken for it.

On Windows, and in a frozen application (where `sys.executable` is no interpreter), there is no guard.
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

from accord.transports import guard_process
from accord.transports.closing import within
from accord.transports.group import ExitWatch

PATIENCE = 2.0
"""Seconds that the guard has to end, once it has nothing to guard, before it is killed."""

READS_WITHIN = 2.0
"""Seconds that a guard which was just started has to begin reading its list, where that is longer than a pipe takes."""

_log = logging.getLogger("accord.transports")


class Ward:
    """One agent, as the guard knows it: from before its start until its group has ended."""

    def __init__(self, stream: int) -> None:
        """`stream` is the pipe that will be its standard input or output."""
        self._key = next(_keys)
        _guard.tell(self._key, f"expect {self._key} {os.fstat(stream).st_ino}")

    def leads(self, group: int) -> None:
        """It has started, and leads this group."""
        _guard.tell(self._key, f"group {self._key} {group} {guard_process.birth_of(group)}")

    async def release(self) -> None:
        """It has ended with its group. The last one to go waits for the guard's own end."""
        if ending := _guard.forget(self._key):
            watch = ExitWatch(ending)
            try:
                if not await within(PATIENCE, watch.exited.wait()):
                    ending.kill()
            finally:
                _bury(ending)
                watch.close()

    def release_now(self) -> None:
        """The same without an event loop to wait in."""
        if ending := _guard.forget(self._key):
            _bury(ending)


class Guard:
    """Our end of it: the process and the pipe while there is somebody to guard, and what was said about whom."""

    def __init__(self) -> None:
        self._said: dict[int, list[str]] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._parents: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._lock = threading.Lock()  # the event loops of several threads share one guard

    def tell(self, key: int, line: str) -> None:
        with self._lock:
            self._said.setdefault(key, []).append(line)
            try:
                if self._process is None:
                    self._start()
                else:
                    self._write(line)
            except OSError:
                self._restart()

    def forget(self, key: int) -> subprocess.Popen[bytes] | None:
        """Returns the guard's process if this was the last to be guarded, and the guard is therefore ending."""
        with self._lock:
            if self._said.pop(key, None) is None or self._process is None:
                return None
            with suppress(OSError):  # somebody ended it; the next `tell` will see to that
                self._write(f"forget {key}")
            return None if self._said else self._dismiss()

    def leave_to_the_parent(self) -> None:
        """In a child that was forked and not executed: the guard waits for our parent's end, not for ours."""
        if self._process is not None:
            self._parents = self._dismiss()  # kept, as its finalizer would complain that it still runs
        self._said = {}
        self._lock = threading.Lock()  # another thread of the parent's may have held the old one

    def _start(self) -> None:
        if POSSIBLE:
            self._process, self._pipe = _spawn()
            self._write(*itertools.chain.from_iterable(self._said.values()), patience=READS_WITHIN)

    def _restart(self) -> None:
        """Somebody ended the guard, or stopped it long enough to fill the pipe, or it could not be started at all."""
        if self._process is not None:
            self._process.kill()
            _bury(self._dismiss())
        try:
            self._start()
        except OSError as error:
            if self._process is not None:  # it does not read: half a list is worth less than a new try
                self._process.kill()
                _bury(self._dismiss())
            _log.warning("no guard process: agents may survive a kill -9 of this one (%s)", error)

    def _write(self, *lines: str, patience: float = 0.0) -> None:
        """Write all of it, or raise OSError: after half a list, the guard would not know the other half.

        A guard that is behind is waited for `patience` seconds for each pipe full of lines.
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
    """Whether something can be written within so many seconds."""
    room = select.poll()  # takes a descriptor of any number
    room.register(pipe, select.POLLOUT)
    return bool(room.poll(patience * 1000))


def _bury(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


POSSIBLE = sys.platform != "win32" and bool(sys.executable) and not getattr(sys, "frozen", False)

_keys = itertools.count()
_guard = Guard()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_guard.leave_to_the_parent)
