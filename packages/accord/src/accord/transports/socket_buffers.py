"""Buffers of sockets: one that all reads share, and a queue of output with its level.

asyncio's streaming protocols allocate 256 KiB before every read, which takes longer than the rest of the work for a
small message. So all sockets of an event loop read into one buffer (`SharedBufferProtocol`).

The rule: one buffer per loop, and nothing stays in it. A loop asks for the buffer (`get_buffer`), reads into it and
returns it (`buffer_updated`) without running anything else in between: asyncio's selector and proactor loops do, with
TLS and without, and so does libuv, which calls `alloc` and `read` of one read back to back. Loops in two threads must
not share a buffer: a read releases the interpreter lock, and the other loop would read into the same bytes.

Transports whose writes are awaited put their output into an `OutputQueue`, from which a task takes it:

    send ──▶ put ──▶ [frame, frame, ...] ──▶ take (the task that writes) ──▶ written

Past the high-water mark the receiver gets `paused`, below a quarter of it `resumed`. A frame counts as waiting until
`written` reports that it is on its way.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from accord._internal.tasks import LightEvent
from accord.transports import HIGH_WATER, Receiver

SIZE = 256 * 1024
"""The most bytes of one read."""

_buffers: WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview] = WeakKeyDictionary()


class SharedBufferProtocol(asyncio.BufferedProtocol):
    """A protocol with `data_received`, like `asyncio.Protocol`, that reads into the shared buffer."""

    __slots__ = ("__weakref__", "_shared_buffer")

    _shared_buffer: memoryview

    @abstractmethod
    def data_received(self, data: bytes) -> None: ...

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        try:
            return self._shared_buffer
        except AttributeError:  # only at the first read: a lookup takes a third of the time of a read
            self._shared_buffer = buffer = _buffer_of(asyncio.get_running_loop())
            return buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._shared_buffer[:nbytes]))


def _buffer_of(loop: asyncio.AbstractEventLoop) -> memoryview:
    buffer = _buffers.get(loop)
    if buffer is None:
        buffer = _buffers[loop] = memoryview(bytearray(SIZE))
    return buffer


class OutputLevel:
    """Counts the bytes of waiting output, and pauses the receiver when there are too many."""

    def __init__(self, high_water: int = HIGH_WATER) -> None:
        self.size = 0
        self._high_water = high_water
        self._receiver: Receiver | None = None
        self._full = False
        self._is_discarded = False
        self._empty = LightEvent()
        self._empty.set()

    def start(self, receiver: Receiver) -> None:
        """Pause and resume this receiver from now on."""
        self._receiver = receiver

    def add(self, size: int) -> None:
        """Note that this many bytes wait."""
        if self._is_discarded:
            return
        self.size += size
        self._empty.clear()
        if not self._full and self.size > self._high_water and self._receiver is not None:
            self._full = True
            self._receiver.paused()

    def written(self, size: int) -> None:
        """Note that this many bytes were written."""
        self.size = 0 if self._is_discarded else self.size - size
        if self.size == 0:
            self._empty.set()
        if self._full and self.size <= self._high_water // 4 and self._receiver is not None:
            self._full = False
            self._receiver.resumed()

    async def flush(self) -> None:
        """Wait until all output is written, or can no longer be written."""
        await self._empty.wait()

    def give_up(self) -> None:
        """Stop: no more output is written."""
        self._is_discarded = True
        self.written(self.size)


class OutputQueue(OutputLevel):
    """Keeps the waiting frames as well as their count."""

    def __init__(self, high_water: int = HIGH_WATER) -> None:
        super().__init__(high_water)
        self._frames: list[bytes] = []
        self._finished = False
        self._filled = LightEvent()

    def put(self, frames: Sequence[bytes]) -> None:
        """Add these frames; after the end they are dropped."""
        if frames and not self._finished:
            self._frames.extend(frames)
            self._filled.set()
            self.add(sum(map(len, frames)))

    async def take(self) -> list[bytes]:
        """Wait for frames and take all of them; an empty result means the end."""
        while not self._frames and not self._finished:
            self._filled.clear()
            await self._filled.wait()
        frames, self._frames = self._frames, []
        return frames

    def give_up(self) -> None:
        self._finished = True
        self._frames.clear()
        self._filled.set()
        super().give_up()
