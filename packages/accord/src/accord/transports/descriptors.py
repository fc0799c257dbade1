"""Readers and writers of file descriptors. Both report the end of the other side once, from the event loop.

`PollReader` asks the event loop when there is something to read. It is as fast as the loop's own pipe transports, is
the same under asyncio and uvloop, and treats pipes, sockets and terminals alike, which those loops do not.

A paused reader would not learn that the other side has disconnected, and a program between two others would outlive its
client endlessly behind an agent that does not read. So while it is paused, `HangUp` watches. When the other side has
disconnected, the reader delivers the remaining data, which is no more than a pipe or a socket holds, and then the end.

`PollWriter` writes directly from `write` while nothing is waiting, and from the event loop's callbacks afterwards.
`PlainWriter` is for files and null devices, which always accept everything.

`ThreadReader` is for descriptors that no event loop can watch: regular files and null devices (epoll refuses them,
uvloop aborts the process over it), and everything on Windows. `ThreadWriter` is for Windows, whose pipes have no
non-blocking mode.
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import stat
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from accord._internal.tasks import LightEvent
from accord.transports import Receiver
from accord.transports.socket_buffers import OutputLevel

CHUNK = 64 * 1024
"""Bytes that a read requests: the size of a pipe. Larger buffers come from mmap each time and cost more than
they save.
"""

SWEEP = 64
"""Reads of one `drain`: more than any pipe holds, and a bound if the other side keeps writing."""

JOIN = 0.2
"""Seconds to wait for a thread's end; one that is stuck in a read which nothing can interrupt is a daemon."""


class HangUp:
    """Calls `gone` when the other side of a pipe or a socket has disconnected, even with unread data; needs Linux.

    epoll reports a hang-up without interest in data, which event loops cannot request. But they can watch an epoll.
    """

    def __init__(self, fd: int, gone: Callable[[], None]) -> None:
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._epoll: Any = None  # other systems have no such type
        if sys.platform == "linux":
            self._epoll = select.epoll()
            self._epoll.register(fd, select.EPOLLRDHUP)  # EPOLLHUP and EPOLLERR are always reported
            self._loop.add_reader(self._epoll.fileno(), self._happened)

    def _happened(self) -> None:
        self.stop()
        self._gone()

    def stop(self) -> None:
        """Stop watching. Idempotent."""
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None


class DescriptorReader(ABC):
    """Owns a descriptor; delivers what it reads, then the end once, with the error if there was one."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[OSError | None], None]) -> None:
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._paused = False
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self.ended = LightEvent()

    @abstractmethod
    def pause(self) -> None: ...

    @abstractmethod
    def resume(self) -> None: ...

    @abstractmethod
    def drain(self) -> None:
        """Deliver what can be read now, also while paused, without waiting for more."""

    @abstractmethod
    def close(self) -> None:
        """Deliver nothing more and close the descriptor. Idempotent."""

    def _finish(self, error: OSError | None) -> None:
        if not self.ended.is_set():
            self.ended.set()
            self._on_end(error)


class PollReader(DescriptorReader):
    """Reads whenever the event loop reports that there is something to read."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[OSError | None], None]) -> None:
        super().__init__(fd, on_data, on_end)
        if sys.platform != "win32":  # where no descriptor is pollable
            os.set_blocking(fd, False)
        self._hang_up: HangUp | None = None
        self._loop.add_reader(fd, self._readable)

    def _readable(self) -> bool:
        try:
            chunk = os.read(self._fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._finish(error)
            return False
        if not chunk:
            self._finish(None)
            return False
        self._on_data(chunk)
        return True

    def _finish(self, error: OSError | None) -> None:
        self._loop.remove_reader(self._fd)
        super()._finish(error)

    def pause(self) -> None:
        if not (self._paused or self._closed or self.ended.is_set()):
            self._paused = True
            self._loop.remove_reader(self._fd)
            self._hang_up = HangUp(self._fd, self.resume)

    def resume(self) -> None:
        self._stop_watching()
        if self._paused and not (self._closed or self.ended.is_set()):
            self._paused = False
            self._loop.add_reader(self._fd, self._readable)

    def _stop_watching(self) -> None:
        if self._hang_up is not None:
            self._hang_up.stop()
            self._hang_up = None

    def drain(self) -> None:
        for _ in range(SWEEP):
            if self._closed or self.ended.is_set() or not self._readable():
                return

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._stop_watching()
            self._loop.remove_reader(self._fd)
            os.close(self._fd)


class ThreadReader(DescriptorReader):
    """Reads in a thread, one chunk at a time: the next read waits until the chunk before has been taken."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[OSError | None], None]) -> None:
        super().__init__(fd, on_data, on_end)
        self._wanted = threading.Event()
        self._wanted.set()
        self._thread = threading.Thread(target=self._read, name=f"read-{fd}", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while self._wanted.wait() and not self._closed:
            self._wanted.clear()
            try:
                chunk = os.read(self._fd, CHUNK)
            except OSError as error:
                self._post(self._finish, error)
                break
            self._post(self._take, chunk)
            if not chunk:
                break
        # Closed by the thread that reads it: elsewhere the number could name another file while a read still uses it.
        os.close(self._fd)

    def _post(self, callback: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the loop is closed
            self._closed = True

    def _take(self, chunk: bytes) -> None:
        if self._closed:
            return
        if not self._paused:
            self._wanted.set()
        if chunk:
            self._on_data(chunk)
        else:
            self._finish(None)

    def _finish(self, error: OSError | None) -> None:
        if not self._closed:
            super()._finish(error)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._wanted.set()

    def drain(self) -> None:
        self.resume()

    def close(self) -> None:
        self._closed = True
        self._wanted.set()
        self._thread.join(JOIN)


def pollable(fd: int) -> bool:
    """Whether an event loop can report when this descriptor is ready."""
    if sys.platform == "win32":
        return False
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and os.isatty(fd))


def open_reader(
    fd: int, on_data: Callable[[bytes], None], on_end: Callable[[OSError | None], None]
) -> DescriptorReader:
    return (PollReader if pollable(fd) else ThreadReader)(fd, on_data, on_end)


class DescriptorWriter(OutputLevel, ABC):
    """Owns a descriptor and its waiting output."""

    def __init__(self, fd: int, receiver: Receiver, high_water: int, on_broken: Callable[[OSError], None]) -> None:
        super().__init__(high_water)
        self.start(receiver)
        self._fd = fd
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._gone = False

    @abstractmethod
    def write(self, data: bytes) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Drop the waiting output and close the descriptor. Idempotent."""

    def _break(self, error: OSError) -> None:
        if not self._gone:
            self._gone = True
            self._loop.call_soon(self._on_broken, error)  # not from inside a `send`
            self.give_up()


class PollWriter(DescriptorWriter):
    """Writes when it can; waits for the event loop while something is waiting."""

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
        if self.size:
            self._tail.append(data)
            self.add(len(data))
            return
        try:
            written = os.write(self._fd, data)
        except OSError as error:
            written = self._not_written(error, len(data))
        if written < len(data):
            self._head = memoryview(data)[written:]
            self._loop.add_writer(self._fd, self._writable)
            self.add(len(self._head))

    def _not_written(self, error: OSError, size: int) -> int:
        """Return how much of the data need not be written any more."""
        if isinstance(error, BlockingIOError | InterruptedError):
            return 0
        self._break(error)
        return size

    def _writable(self) -> None:
        # One write per iteration: a fast reader of a long queue must not keep the loop from everything else.
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
        self.written(written)

    def give_up(self) -> None:
        self._loop.remove_writer(self._fd)
        self._head = memoryview(b"")
        self._tail.clear()
        super().give_up()

    def close(self) -> None:
        if not self._closed:
            self._closed = self._gone = True
            self.give_up()
            os.close(self._fd)


class PlainWriter(DescriptorWriter):
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


class ThreadWriter(DescriptorWriter):
    """Writes in a thread, in order; the thread may be stuck for as long as the other side does not read."""

    def __init__(self, fd: int, receiver: Receiver, high_water: int, on_broken: Callable[[OSError], None]) -> None:
        super().__init__(fd, receiver, high_water, on_broken)
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name=f"write-{fd}", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        if not self._gone:
            self._queue.put(data)
            self.add(len(data))

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
            self.written(size)

    def close(self) -> None:
        self._gone = True
        self.give_up()
        self._queue.put(None)
        self._thread.join(JOIN)


def open_writer(fd: int, receiver: Receiver, high_water: int, on_broken: Callable[[OSError], None]) -> DescriptorWriter:
    kind = PollWriter if pollable(fd) else ThreadWriter if sys.platform == "win32" else PlainWriter
    return kind(fd, receiver, high_water, on_broken)
