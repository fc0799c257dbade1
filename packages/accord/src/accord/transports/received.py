"""Socket reads into one shared buffer, instead of a new buffer for each read.

asyncio's streaming protocols allocate 256 KiB before every read, which takes longer than everything else that a small
message needs. Here all sockets of an event loop share one buffer.

The rule: one buffer per loop, and nothing stays in it. A loop asks for the buffer (`get_buffer`), reads into it and
hands it back (`buffer_updated`) without running anything else in between: asyncio's selector and proactor loops do,
with TLS and without, and so does libuv, which calls `alloc` and `read` of one read back to back. Loops in two threads
must not share a buffer: a read releases the interpreter lock, and the other loop would read into the same bytes.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from weakref import WeakKeyDictionary

SIZE = 256 * 1024
"""The most bytes of one read."""

_buffers: WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview] = WeakKeyDictionary()


class Received(asyncio.BufferedProtocol):
    """A protocol with `data_received`, like `asyncio.Protocol`, that reads into the shared buffer."""

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
