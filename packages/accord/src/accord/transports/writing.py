"""Writers to a file descriptor: they write at once if the other side takes it, otherwise in order as soon as it does.

`PollWriter` writes straight from `write` while nothing is waiting, and from the event loop's callbacks afterwards.
`PlainWriter` is for files and null devices, which always take what they get. `ThreadWriter` is for Windows, whose
pipes know no "not now".

None of them raises when the other side is gone: they report it once, from the event loop, and drop later output.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from accord.transports.base import Receiver
from accord.transports.light_event import LightEvent
from accord.transports.reading import JOIN, pollable


class Writer(ABC):
    """Owns a descriptor and the output that waits for it."""

    def __init__(self, fd: int, receiver: Receiver, high_water: int, on_broken: Callable[[OSError], None]) -> None:
        self._fd = fd
        self._receiver = receiver
        self._high_water = high_water
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._gone = False
        self._full = False
        self._idle = LightEvent()
        self._idle.set()
        self.unsent = 0

    @abstractmethod
    def write(self, data: bytes) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Drop the waiting output and close the descriptor. Idempotent."""

    async def flush(self) -> None:
        """Wait until all output is written, or can no longer be written."""
        await self._idle.wait()

    def _count(self, change: int) -> None:
        self.unsent += change
        if self.unsent == 0:
            self._idle.set()
        else:
            self._idle.clear()
        if not self._full and self.unsent > self._high_water:
            self._full = True
            self._receiver.paused()
        elif self._full and self.unsent <= self._high_water // 4:
            self._full = False
            self._receiver.resumed()

    def _break(self, error: OSError) -> None:
        if not self._gone:
            self._gone = True
            self._loop.call_soon(self._on_broken, error)  # not from inside a `send`
            self._drop()

    def _drop(self) -> None:
        # Wake the tasks that wait for room: later output is dropped and needs none.
        self._count(-self.unsent)


class PollWriter(Writer):
    """Writes when it can; asks the event loop when that is while something is waiting."""

    def __init__(self, fd: int, receiver: Receiver, high_water: int, on_broken: Callable[[OSError], None]) -> None:
        super().__init__(fd, receiver, high_water, on_broken)
        if sys.platform != "win32":  # where no descriptor is pollable
            os.set_blocking(fd, False)
        self._head = memoryview(b"")
        self._tail: list[bytes] = []
        self._closed = False

    def write(self, data: bytes) -> None:
        if self._gone:
            return
        if self.unsent:
            self._tail.append(data)
            self._count(len(data))
            return
        try:
            written = os.write(self._fd, data)
        except OSError as error:
            written = self._not_written(error, len(data))
        if written < len(data):
            self._head = memoryview(data)[written:]
            self._loop.add_writer(self._fd, self._writable)
            self._count(len(self._head))

    def _not_written(self, error: OSError, size: int) -> int:
        """How much of the data need not be written any more."""
        if isinstance(error, BlockingIOError | InterruptedError):
            return 0
        self._break(error)
        return size

    def _writable(self) -> None:
        # One write a turn: a fast reader of a long queue must not keep the loop from everything else.
        try:
            written = os.write(self._fd, self._head)
        except OSError as error:
            written = self._not_written(error, len(self._head))
        if self._gone:
            return
        self._head = self._head[written:]
        if not self._head and self._tail:
            self._head = memoryview(b"".join(self._tail))
            self._tail.clear()
        if not self._head:
            self._loop.remove_writer(self._fd)
        self._count(-written)

    def _drop(self) -> None:
        self._loop.remove_writer(self._fd)
        self._head = memoryview(b"")
        self._tail.clear()
        super()._drop()

    def close(self) -> None:
        if not self._closed:
            self._closed = self._gone = True
            self._drop()
            os.close(self._fd)


class PlainWriter(Writer):
    """Writes all of it, now."""

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and not self._gone:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except OSError as error:
                self._break(error)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd, self._gone = -1, True


class ThreadWriter(Writer):
    """Writes in a thread, in order; the thread may be stuck for as long as the other side does not read."""

    def __init__(self, fd: int, receiver: Receiver, high_water: int, on_broken: Callable[[OSError], None]) -> None:
        super().__init__(fd, receiver, high_water, on_broken)
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name=f"write-{fd}", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        if not self._gone:
            self._queue.put(data)
            self._count(len(data))

    def _write(self) -> None:
        while (data := self._queue.get()) is not None and not self._gone:
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError as error:
                self._post(self._break, error)
                break
            self._post(self._wrote, len(data))
        os.close(self._fd)

    def _post(self, callback: Callable[..., None], argument: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, argument)
        except RuntimeError:  # the loop is closed
            self._gone = True

    def _wrote(self, size: int) -> None:
        if not self._gone:
            self._count(-size)

    def close(self) -> None:
        self._gone = True
        self._drop()
        self._queue.put(None)
        self._thread.join(JOIN)


def open_writer(fd: int, receiver: Receiver, high_water: int, on_broken: Callable[[OSError], None]) -> Writer:
    kind = PollWriter if pollable(fd) else ThreadWriter if sys.platform == "win32" else PlainWriter
    return kind(fd, receiver, high_water, on_broken)
