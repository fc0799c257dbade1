"""Runs an agent behind a tap: bytes, signals and the end pass through, and everything is recorded.

    editor  ──▶  tap (this process)  ──▶  agent
                   └──▶ recorder (a process of its own) ──▶ trace

The tap must not change what it records. It forwards bytes before anyone parses them, and parsing is done in another
process: in this one it would hold the interpreter while a message waits. The agent leads a session of its own, so
signals are passed to all its processes. If the tap is killed, the guard ends the agent, and the recorder sees its pipe
close and completes the trace. If the recorder fails, the conversation goes on without it.

A client that leaves closes its end of both streams. An agent that reads sees that by itself, and may take its time. One
that does not read cannot see it, and would be left for ever, so the tap ends it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from accord import AccordError
from accord.trace.events import exited, signal_name
from accord.trace.header import now
from accord.transports.guard import Ward
from accord.transports.launch import Environment, Pipes, environment, launch
from accord.transports.process_group import LEFT_BEHIND
from accord.transports.stdio_transport import fill_closed_streams
from accord_tools.tap.feed import Feed
from accord_tools.tap.forwarding import Forwarder
from accord_tools.tap.parcels import FROM_AGENT, STDERR, TO_AGENT
from accord_tools.tap.plan import RecordingPlan

if sys.platform == "win32":
    from accord.windows.processes import ask_to_end

PATIENCE = 2.0
"""Seconds without a read for an agent whose client has left; after them, seconds between SIGTERM and SIGKILL."""

PASSED_ON = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
"""Signals that the agent gets in place of the tap."""


def run_tapped(
    command: Sequence[str], plan: RecordingPlan, *, cwd: str | None = None, env: Environment | None = None
) -> tuple[int, str | None]:
    """Run a command at this process's standard streams, and record what passes.

    Returns the command's exit code, negative for the number of a signal that ended it, and why the recording is
    incomplete, if it is. Raises ConnectionClosed if the command cannot be started.
    """
    fill_closed_streams()
    plan = msgspec.structs.replace(
        plan,
        command=tuple(command),
        cwd=_folder(cwd),
        started=now(),
        began=time.monotonic(),
        pid=os.getpid(),
    )
    feed = Feed(plan)
    try:
        with ExitStack() as undo:
            code = _Tapped(command, feed, cwd, env, undo).wait()
    finally:
        feed.close()
    return code, feed.problem


def end_like(code: int) -> int:
    """The exit code of a command as our own; a signal that ended it ends this process as well."""
    if code >= 0 or sys.platform == "win32":
        return code
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the core of interest is the agent's
    with suppress(OSError, ValueError):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code


class _Tapped:
    """A running agent, and the threads that forward its streams."""

    def __init__(
        self, command: Sequence[str], feed: Feed, cwd: str | None, env: Environment | None, undo: ExitStack
    ) -> None:
        self._feed = feed
        self._passed_on: deque[int] = deque()
        """Signals that are still to be recorded."""
        self._signals: tuple[int, int] | None = None
        """A pipe that a signal writes into; None if this is not the main thread, which gets no signals."""
        with Pipes(command[0]) as pipes:
            ward = Ward(pipes.theirs[0])
            undo.callback(ward.release_now)
            self._process = launch(command, pipes.theirs, cwd=cwd, env=environment(env))
            ward.leads(self._process.pid)
            stdin, stdout, stderr = pipes.keep()
        feed.tell(event="started", pid=self._process.pid, command=[_text(word) for word in command])
        self._pass_signals_on(undo)
        self._input = Forwarder(0, stdin, feed, TO_AGENT, lambda: feed.tell(event="closed", stream="stdin"))
        self._output = Forwarder(stdout, 1, feed, FROM_AGENT, lambda: feed.tell(event="closed", stream="stdout"))
        self._errors = Forwarder(stderr, 2, feed, STDERR, feed.wake, keeps=True)
        for forwarder in (self._input, self._output, self._errors):
            forwarder.start()
        if sys.platform == "linux":
            threading.Thread(target=self._end_after_client, name="accord tap client", daemon=True).start()

    def _end_after_client(self) -> None:
        """End an agent that does not read, once its client has left."""
        if sys.platform == "win32":  # it has no hang-ups to wait for, and no process groups
            return
        try:
            _wait_for_hang_ups(0, 1)
        except OSError:
            return  # a file or a null device has no other side
        moved = -1
        while moved != self._input.moved:  # it reads
            moved = self._input.moved
            if self._input_ends():
                return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(OSError):
                os.killpg(self._process.pid, number)
            if self._input_ends():
                return

    def _input_ends(self) -> bool:
        """Whether within a while the agent has got all its input and the end of it, or has exited."""
        self._input.join(PATIENCE)
        return not self._input.is_alive()

    def wait(self) -> int:
        """Wait until the agent has ended and all its output is forwarded."""
        code = self._exit_code()
        self._output.finish(LEFT_BEHIND)
        self._errors.finish(LEFT_BEHIND)
        self._feed.tell(**exited(code))
        return code

    def _exit_code(self) -> int:
        """Wait for the agent's end, in a way that a signal always interrupts.

        A signal that arrives just before a system call, such as `waitpid`, does not interrupt it, and its handler would
        run after the agent's end. So this thread reads a pipe into which each signal writes, and another one waits.
        """
        if self._signals is None:
            return self._process.wait()
        reads, writes = self._signals

        def wait() -> None:
            self._process.wait()
            with suppress(OSError):
                os.write(writes, b"\0")

        threading.Thread(target=wait, name="accord tap wait", daemon=True).start()
        while (code := self._process.returncode) is None:
            os.read(reads, 64)
            self._tell_signals()
        self._tell_signals()
        return code

    def _tell_signals(self) -> None:
        while self._passed_on:
            self._feed.tell(event="signalled", signal=signal_name(self._passed_on.popleft()))

    def _pass_signals_on(self, undo: ExitStack) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._signals = os.pipe()
        if sys.platform != "win32":
            os.set_blocking(self._signals[1], False)
        undo.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(self._signals[1], warn_on_full_buffer=False))
        for name in PASSED_ON:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
                undo.callback(signal.signal, number, signal.signal(number, self._pass_on))

    def _pass_on(self, number: int, _frame: object) -> None:
        # It is recorded later: the signal may have interrupted this thread while it held a lock, such as the feed's or
        # the one under which threads start.
        self._passed_on.append(number)
        if self._process.returncode is not None:
            return
        with suppress(OSError):
            if sys.platform == "win32":
                ask_to_end(self._process)
            else:
                os.killpg(self._process.pid, number)


def _wait_for_hang_ups(*streams: int) -> None:
    """Wait until the other sides of these pipes, sockets or terminals have gone, whatever waits to be read.

    `select.poll` would keep a stream open that is closed meanwhile, so that its other side is not told.
    """
    assert sys.platform == "linux"
    with select.epoll() as watch:
        for stream in streams:
            watch.register(stream, select.EPOLLRDHUP | select.EPOLLONESHOT)  # EPOLLHUP and EPOLLERR always count
        left = set(streams)
        while left:
            left -= {stream for stream, _ in watch.poll()}


def _folder(cwd: str | None) -> str:
    try:
        return _text(str(Path(cwd or ".").absolute()))
    except OSError:  # the folder was removed
        return ""


def _text(given: str) -> str:
    """An argument as text: its bytes may be no UTF-8."""
    return given.encode("utf-8", "replace").decode("utf-8")


def check_writable(path: str) -> None:
    """Raise AccordError if this file must not or cannot hold a trace; it is emptied."""
    from accord.trace.private import open_private

    try:
        open_private(path).close()
    except OSError as error:
        raise AccordError(f"cannot record in {path}: {error.strerror}") from error
