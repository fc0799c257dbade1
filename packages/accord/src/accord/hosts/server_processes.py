"""Several server processes of one machine on one listening socket: starts, restarts and ends them.

    parent ──▶ the first process, until it is ready ──▶ the others
       ├── a process has died ──▶ another one, after a pause if it lived only for a moment
       ├── SIGTERM, SIGINT ──▶ SIGTERM to all, which end in order; a second one ends them at once
       └── the parent dies ──▶ a pipe ends in every process ──▶ they end in order

The parent forks before it has an event loop or a thread, so a process inherits the parsed options, and starts in some
milliseconds. The parent runs no event loop: it waits for signals. All processes accept connections on the one socket
that it has opened, so a process that is frozen or killed leaves no connections waiting in a queue of its own.

A terminal sends Ctrl-C to all processes of its foreground group. So each process leads its own group, and gets Ctrl-C
once, from the parent.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from accord.errors import AccordError

if TYPE_CHECKING:
    from accord.http import Server

BRIEF = 5.0
"""Seconds that a process must live before the next one is started without a pause."""

PAUSE = 1.0

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD) if sys.platform != "win32" else ()

NOT_WAITED_FOR = -1
"""Instead of a descriptor: the parent does not wait for this process."""

log = logging.getLogger("accord.hosts")


def run_processes(
    count: int,
    run: Callable[[socket.socket, Callable[[Server], None]], int | None],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    path: str = "/acp",
    tls: bool = False,
    on_ready: Callable[[str], None] | None = None,
    on_restart: Callable[[str], None] | None = None,
) -> int:
    """Run a server in several processes of this machine until a signal ends them; returns the exit status.

        def run(listening, on_ready):
            hosts = accord.Hosts("hosts.sqlite3")
            asyncio.run(accord.http.serve(agent, hosts=hosts, listening=listening, on_ready=on_ready))

        sys.exit(run_processes(4, run, on_ready=print))

    Each process calls `run` with the socket at `host` and `port` that all of them accept connections on, and with the
    `on_ready` for `serve`. It may return an exit status. Give `serve` the same directory of hosts in each, so that they
    find each other's connections. `on_ready` is called here with the URL once the first process can be reached; `tls`
    and `path` are for that URL. A process that dies is started again; `on_restart` is called with a line about it,
    which is logged otherwise. Call this before the program has an event loop or a thread. Raises AccordError on
    Windows, and if it cannot listen.
    """
    from accord.http.server.serve import listening_socket, url_of

    if not hasattr(os, "fork"):
        raise AccordError("several processes are not available on Windows: start several servers with accord.Hosts")
    listening = listening_socket(host, port)

    def run_one(lifeline: Lifeline) -> int:
        def ready(_: Server) -> None:
            lifeline.end_with_parent()
            lifeline.tell_ready()

        try:
            return run(listening, ready) or 0
        except Exception:
            log.exception("a process of the server has failed")
            return 1

    url = url_of("https" if tls else "http", host, listening, path)
    processes = ServerProcesses(count, run_one, on_restart or log.warning)
    return processes.run(lambda: None if on_ready is None else on_ready(url))


@dataclass(frozen=True, slots=True)
class Lifeline:
    """A process's connection to its parent: reports that it is ready, and notices the parent's end."""

    ready: int
    parent: int

    def tell_ready(self) -> None:
        """Report to the parent that clients can connect."""
        if self.ready != NOT_WAITED_FOR:
            os.write(self.ready, b".")

    def end_with_parent(self) -> None:
        """End in order when the parent dies; called in the process's event loop."""
        asyncio.get_running_loop().add_reader(self.parent, self._parent_has_ended)

    def _parent_has_ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self.parent)
        os.kill(os.getpid(), signal.SIGTERM)


class ServerProcesses:
    """A number of processes that run the same function.

    `run` gets a `Lifeline` and returns the exit status. `tell` is called with a line for the operator.
    """

    def __init__(self, count: int, run: Callable[[Lifeline], int], tell: Callable[[str], None]) -> None:
        self._count = count
        self._run = run
        self._tell = tell
        self._started: dict[int, float] = {}
        """The running processes, and when each was started."""
        self._due: list[float] = []
        """The times at which further processes are to be started."""
        self._is_ending = False
        self._status = 0

    def run(self, on_ready: Callable[[], None]) -> int:
        """Run them until a signal ends them; returns the exit status. `on_ready` is called when the first is ready."""
        with _Signals() as self._signals:
            self._living, self._parent_end = os.pipe()
            try:
                return self._run_all(on_ready)
            finally:
                os.close(self._living)
                os.close(self._parent_end)

    def _run_all(self, on_ready: Callable[[], None]) -> int:
        if not self._start_first():
            return self._reap(0)
        on_ready()
        self._due = [0.0] * (self._count - 1)
        while self._started or self._due:
            self._step()
        return self._status

    def _start_first(self) -> bool:
        """Start one process and wait until it is ready; False if it ends before."""
        ready, tells = os.pipe()
        with os.fdopen(ready, "rb", buffering=0) as reading:
            self._start(Lifeline(tells, self._living))
            os.close(tells)
            return reading.read(1) == b"."

    def _step(self) -> None:
        assert sys.platform != "win32"
        now = time.monotonic()
        for due in [due for due in self._due if due <= now]:
            self._due.remove(due)
            self._start(Lifeline(NOT_WAITED_FOR, self._living))
        caught = self._signals.wait(max(0.0, min(self._due) - now) if self._due else None)
        for number in caught:
            if number != signal.SIGCHLD:
                self._end()
        self._reap(os.WNOHANG)

    def _end(self) -> None:
        self._is_ending = True
        self._due.clear()
        for process in self._started:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def _reap(self, flags: int) -> int:
        """Note the processes that have ended; returns the exit status of the last."""
        assert sys.platform != "win32"
        status = 0
        while self._started:
            process, ended = os.waitpid(-1, flags)
            if not process:
                break
            began = self._started.pop(process, None)
            if began is None:
                continue
            status = os.waitstatus_to_exitcode(ended)
            if self._is_ending:
                self._status = self._status or (0 if status == -signal.SIGTERM else abs(status))
            elif flags:
                self._start_again(process, status, time.monotonic() - began)
        return status

    def _start_again(self, process: int, status: int, lived: float) -> None:
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        self._tell(f"process {process} has ended ({how}); another one is started")
        self._due.append(time.monotonic() + (PAUSE if lived < BRIEF else 0.0))

    def _start(self, lifeline: Lifeline) -> None:
        assert sys.platform != "win32"
        sys.stdout.flush()
        sys.stderr.flush()
        with self._signals.held():
            process = os.fork()
            if process:
                self._started[process] = time.monotonic()
                return
            self._signals.restore()
        status = 1
        try:
            os.close(self._parent_end)
            os.setpgid(0, 0)
            status = self._run(lifeline)
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)  # the parent's exit handlers must not run twice


class _Signals:
    """The signals that the parent waits for, as the numbers that arrive in a pipe."""

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, _ignored) for number in SIGNALS}
        self._arrived, self._wakes = os.pipe()
        if sys.platform != "win32":
            for descriptor in (self._arrived, self._wakes):
                os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wakes)
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def wait(self, seconds: float | None) -> bytes:
        """Return the numbers of the pending signals; waits for one, at most this many seconds."""
        select.select([self._arrived], [], [], seconds)
        try:
            return os.read(self._arrived, 4096)
        except BlockingIOError:
            return b""

    @contextmanager
    def held(self) -> Generator[None]:
        """Block signals during this block: between a fork and `restore` one would be lost."""
        assert sys.platform != "win32"
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def restore(self) -> None:
        """Handle signals as before."""
        signal.set_wakeup_fd(-1)
        os.close(self._arrived)
        os.close(self._wakes)
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _ignored(number: int, frame: object) -> None:
    """Do nothing: the wake-up descriptor reports the signal."""
