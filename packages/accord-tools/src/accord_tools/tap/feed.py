"""`Feed`: hands what passes through a tap to the recorder's process, and never lets the recorder slow the tap down.

The threads that forward bytes only append to a queue. One thread of the feed writes the queue to a pipe, in batches. If
the recorder is too slow, the queue is full at some point: then bytes are dropped and counted, and the trace has a note
that says so. If the recorder dies, everything is dropped from then on.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import deque
from contextlib import suppress

import msgspec

from accord.extras import own_command
from accord_tools.tap.parcels import LOST, PLAN, PROCESS, Parcel, packed
from accord_tools.tap.plan import RecordingPlan

MOST = 64 * 1024 * 1024
"""Bytes that may wait for the recorder."""
BATCH = 0.003
"""Seconds in which parcels are collected for one write: a thread that wakes for each would compete with forwarding."""
PATIENCE = 5.0
"""Seconds that the recorder has to finish at the end, before the tap leaves it alone with the rest."""


class Feed:
    """The way to the recorder. `add` never waits."""

    def __init__(self, plan: RecordingPlan) -> None:
        self.problem: str | None = None
        """Why the recording is incomplete; None if it is not, as far as the recorder said."""
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
        """Let the feed send what was added."""
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
        self._thread.join(PATIENCE)
        if self._recorder is not None:
            self._wait_for(self._recorder)

    def _wait_for(self, recorder: subprocess.Popen[bytes]) -> None:
        try:
            recorder.wait(PATIENCE)  # its output is one line, which fits into the pipe
        except subprocess.TimeoutExpired:
            self.problem = "the recorder has not finished; it goes on by itself"
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
                batch += packed(parcel)
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
