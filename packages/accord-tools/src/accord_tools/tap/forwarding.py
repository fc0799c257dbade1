"""Forwards the bytes of one stream to another, unread and unchanged, and shows them to the feed.

Each stream has a thread that reads and writes, and waits in both. So the tap has the backpressure of a pipe: while one
side does not read, the other is not read either. What is read is queued for the recorder before it is written, because
the other side may answer before this thread runs again, and a trace has the question first.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

from accord_tools.tap.feed import Feed

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
        """Wait for the end, once the agent has exited: a process that it left may hold the stream open for ever.

        Output that the other side does not read is waited for; silence is not, longer than `patience` seconds.
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
    """Let the other side see the end. A standard stream becomes the null device: no file of ours may get its number."""
    if fd >= STANDARD:
        os.close(fd)
        return
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd, inheritable=False)
    os.close(null)
