"""Runs an agent behind a tap: bytes, signals and the end pass through, and everything is recorded.

    editor  ──▶  tap (this process)  ──▶  agent
                   └──▶ recorder (a process of its own) ──▶ trace

The tap must not change what it records. It forwards bytes before anyone parses them, and parsing is done in another
process: in this one it would hold the interpreter while a message waits. The agent leads its own session, so signals
are passed to all its processes. If the tap is killed, the guard ends the agent, and the recorder sees its pipe close
and completes the trace. If the recorder fails, the conversation continues without it.

A client that disconnects closes its end of both streams. An agent that reads notices that, and may take its time. One
that does not read cannot notice it, and would stay for ever, so the tap ends it.

`Feed` passes the bytes to the recorder's process, and never lets the recorder slow the tap down. The threads that
forward bytes only append to a queue. One thread of the feed writes the queue to a pipe, in batches. If the recorder is
too slow, the queue is full at some point: then bytes are dropped and counted, and the trace has a note about it. If the
recorder dies, everything is dropped from then on.

`Forwarder` forwards the bytes of one stream, unread and unchanged. Each stream has a thread that reads and writes, and
waits in both. So the tap has the backpressure of a pipe: while one side does not read, the other is not read either.
Bytes are queued for the recorder before they are written, because the other side may answer before this thread runs
again, and a trace has the question first.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from accord import AccordError
from accord.installation import own_command
from accord.trace import exit_event, signal_name
from accord.trace.trace_file import now, open_private
from accord.transports.guard import OrphanGuard
from accord.transports.launch import Environment, Pipes, environment, launch
from accord.transports.process_group import LEFT_BEHIND, signal_group
from accord.transports.stdio_transport import fill_closed_streams
from accord_tools.tap.recorder_protocol import (
    FROM_AGENT,
    LOST,
    PLAN,
    PROCESS,
    STDERR,
    TO_AGENT,
    Parcel,
    RecordingPlan,
    pack,
)

MOST = 64 * 1024 * 1024
"""Bytes that may wait for the recorder."""
BATCH = 0.003
"""Seconds in which parcels are collected for one write: a thread that wakes for each would compete with forwarding."""
RECORDER_PATIENCE = 5.0
"""Seconds that the recorder has to finish at the end, before the tap leaves it."""


class Feed:
    """Sends parcels to the recorder. `add` never waits."""

    def __init__(self, plan: RecordingPlan) -> None:
        self.problem: str | None = None
        """Why the recording is incomplete; None if it is not, as far as the recorder has reported."""
        self._queue: deque[Parcel] = deque()
        self._waiting = 0
        self._dropped: dict[bytes, int] = {}
        self._lock = threading.Lock()
        self._bell = threading.Semaphore(0)
        self._has_rung = self._is_over = self._is_closing = False
        self._recorder = self._start()
        self.add(PLAN, msgspec.json.encode(plan))
        self._thread = threading.Thread(target=self._send_all, name="accord tap feed", daemon=True)
        self._thread.start()

    def add(self, kind: bytes, content: bytes) -> None:
        """Queue a parcel; `wake` sends it. The order of the calls is the order in the trace."""
        with self._lock:
            if self._is_over or self._waiting > MOST:
                self._dropped[kind] = self._dropped.get(kind, 0) + len(content)
                return
            now = time.monotonic()
            if self._dropped and (lost := self._dropped.pop(kind, 0)):
                self._queue.append(Parcel(LOST, now, b"%b%d" % (kind, lost)))
            self._queue.append(Parcel(kind, now, content))
            self._waiting += len(content)

    def wake(self) -> None:
        """Send the added parcels."""
        if not self._has_rung:
            self._has_rung = True
            self._bell.release()

    def tell(self, **event: object) -> None:
        """Queue an event of the agent's process."""
        self.add(PROCESS, msgspec.json.encode(event))
        self.wake()

    def close(self) -> None:
        """Send the rest, and wait a bounded time until the recorder has written it."""
        self._is_closing = True
        self._bell.release()
        self._thread.join(RECORDER_PATIENCE)
        if self._recorder is not None:
            self._wait_for(self._recorder)

    def _wait_for(self, recorder: subprocess.Popen[bytes]) -> None:
        try:
            recorder.wait(RECORDER_PATIENCE)  # its output is one line, which fits into the pipe
        except subprocess.TimeoutExpired:
            self.problem = "the recorder has not finished; it continues in the background"
            return
        assert recorder.stdout is not None
        with recorder.stdout as stdout:
            said = stdout.read()
        if said:
            self.problem = said.decode("utf-8", "replace").strip()
        elif recorder.returncode:
            self.problem = f"the recorder ended with {_described(recorder.returncode)}"

    def _start(self) -> subprocess.Popen[bytes] | None:
        try:
            return subprocess.Popen(
                own_command("accord_tools.tap.recorder"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C at our terminal must not end it
            )
        except OSError as error:
            self._is_over = True
            self.problem = f"the recorder cannot be started: {error.strerror}"
            return None

    def _send_all(self) -> None:
        if self._recorder is None or self._recorder.stdin is None:
            return
        pipe = self._recorder.stdin.fileno()
        while not self._is_over:
            self._bell.acquire()
            if not self._is_closing:
                time.sleep(BATCH)
            self._has_rung = False
            is_last = self._is_closing
            try:
                self._send_queue(pipe)
            except OSError:  # the recorder is dead
                self._end()
            if is_last:
                break
        with suppress(OSError):
            self._recorder.stdin.close()

    def _send_queue(self, pipe: int) -> None:
        while self._queue:
            batch, size = bytearray(), 0
            while self._queue and size < 1 << 20:
                parcel = self._queue.popleft()
                batch += pack(parcel)
                size += len(parcel.content)
            rest = memoryview(batch)
            while rest:
                rest = rest[os.write(pipe, rest) :]
            with self._lock:
                self._waiting -= size

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            self._queue.clear()


def _described(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


SIZE = 256 * 1024
"""Bytes of one read at most."""
STANDARD = 3
"""Descriptors below are the standard streams, whose numbers must stay in use."""


class Forwarder(threading.Thread):
    """Forwards from one descriptor to another until one of them ends; both are then released, unless `keeps`."""

    def __init__(
        self, source: int, target: int, feed: Feed, kind: bytes, on_end: Callable[[], None], *, keeps: bool = False
    ) -> None:
        super().__init__(name=f"accord tap {source} to {target}", daemon=True)
        self._source = source
        self._target = target
        self._feed = feed
        self._kind = kind
        self._on_end = on_end
        self._keeps = keeps
        self._is_reading = False
        self.moved = 0
        """How many reads were forwarded, or are being forwarded."""

    def run(self) -> None:
        """Forward until one side ends."""
        while data := self._read():
            self.moved += 1
            self._feed.add(self._kind, data)
            if not _write(self._target, data):
                break
            self._feed.wake()
        self._on_end()
        if not self._keeps:
            _release(self._target)
        _release(self._source)

    def finish(self, patience: float) -> None:
        """Wait for the end, once the agent has exited: a process that it left may hold the stream open endlessly.

        It waits for output that the other side does not read, but for silence at most `patience` seconds.
        """
        while self.is_alive():
            before = self.moved
            self.join(patience)
            if self._is_reading and self.moved == before:
                return

    def _read(self) -> bytes:
        self._is_reading = True
        try:
            return os.read(self._source, SIZE)
        except BlockingIOError:  # another process has made it non-blocking
            select.select([self._source], [], [])
            return self._read()
        except OSError:  # a terminal whose other side is closed
            return b""
        finally:
            self._is_reading = False


def _write(target: int, data: bytes) -> bool:
    """Write all of this; returns whether the other side still reads."""
    try:
        written = os.write(target, data)
        if written == len(data):
            return True
        rest = memoryview(data)[written:]
    except BlockingIOError:
        rest = memoryview(data)
    except OSError:
        return False
    while rest:
        try:
            rest = rest[os.write(target, rest) :]
        except BlockingIOError:
            select.select([], [target], [])
        except OSError:
            return False
    return True


def _release(fd: int) -> None:
    """Close the stream for the other side. A standard stream becomes the null device: no file of ours may get its
    number.
    """
    if fd >= STANDARD:
        os.close(fd)
        return
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd, inheritable=False)
    os.close(null)


PATIENCE = 2.0
"""Seconds without a read for an agent whose client has disconnected; after them, seconds between SIGTERM and
SIGKILL.
"""

PASSED_ON = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
"""Signals that are passed on to the agent."""


def run_tapped(
    command: Sequence[str], plan: RecordingPlan, *, cwd: str | None = None, env: Environment | None = None
) -> tuple[int, str | None]:
    """Run a command at this process's standard streams, and record them.

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
    """Return the exit code of a command as our own; a signal that ended it ends this process as well."""
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
        """A pipe into which a signal writes; None outside of the main thread, which gets no signals."""
        with Pipes(command[0]) as pipes:
            guard = OrphanGuard(pipes.theirs[0])
            undo.callback(guard.release_now)
            self._process = launch(command, pipes.theirs, cwd=cwd, env=environment(env))
            guard.leads(self._process.pid)
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
        """Whether the agent gets all its input and the end of it within a while, or has exited."""
        self._input.join(PATIENCE)
        return not self._input.is_alive()

    def wait(self) -> int:
        """Wait until the agent has ended and all its output is forwarded."""
        code = self._exit_code()
        self._output.finish(LEFT_BEHIND)
        self._errors.finish(LEFT_BEHIND)
        self._feed.tell(**exit_event(code))
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
            signal_group(self._process, number)


def _wait_for_hang_ups(*streams: int) -> None:
    """Wait until the other sides of these pipes, sockets or terminals have disconnected, even with unread data.

    `select.poll` would hold a stream open that is closed meanwhile, so that its other side does not notice.
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
    try:
        open_private(path).close()
    except OSError as error:
        raise AccordError(f"cannot record in {path}: {error.strerror}") from error
