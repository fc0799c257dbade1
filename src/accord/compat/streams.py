"""`StreamTransport`: frames over the two streams of asyncio that a program has opened itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from accord.jsonrpc.frames import LIMIT, FrameReader, Oversized, joined
from accord.transports.base import HIGH_WATER, End, Receiver, Transport
from accord.transports.closing import to_the_end, within

CHUNK = 256 * 1024


class StreamTransport(Transport):
    """Frames over a `StreamReader` and a `StreamWriter`, whose own limit does not count: lines may be longer."""

    name = "streams"

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, read_timeout: float | None = None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._read_timeout = read_timeout
        self._frames = FrameReader(LIMIT)
        self._receiver: Receiver | None = None
        self._reading: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._end: End | None = None
        self.error: Exception | None = None
        """What broke the reading; None if it ended by itself, or goes on."""

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._reading = asyncio.create_task(self._read(receiver), name=f"read {self.name}")
        self._watch_output()

    def send(self, frames: Sequence[bytes]) -> None:
        if frames and not self._writer.is_closing():
            self._writer.write(joined(frames))
            self._watch_output()

    @property
    def unsent(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    async def flush(self) -> None:
        self._writer.transport.set_write_buffer_limits(high=0)  # so `drain` waits until all of it is written
        with suppress(OSError):
            await self._writer.drain()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    async def close(self, grace: float = 2.0) -> End:
        self._closing = self._closing or asyncio.create_task(self._close(grace), name=f"close {self.name}")
        await to_the_end(self._closing)
        return self._end or End("closed")

    async def _close(self, grace: float) -> None:
        try:
            await within(grace, self.flush())
        finally:
            for task in (self._reading, self._draining):
                if task is not None:
                    task.cancel()
            self._finish(End("closed"))

    async def _read(self, receiver: Receiver) -> None:
        try:
            while chunk := await self._next_chunk():
                frames = self._frames.feed(chunk)
                if frames:
                    receiver.received(frames)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.error = error
            self._deliver(receiver, self._frames.finish())
            self._finish(End("broken", f"the input broke: {error or type(error).__name__}"))
        else:
            self._deliver(receiver, self._frames.finish())
            self._finish(End("peer_closed"))

    async def _next_chunk(self) -> bytes:
        await self._may_read.wait()
        if self._read_timeout is None:
            return await self._reader.read(CHUNK)
        async with asyncio.timeout(self._read_timeout):
            return await self._reader.read(CHUNK)

    def _deliver(self, receiver: Receiver, frames: Sequence[bytes | Oversized]) -> None:
        if frames:
            receiver.received(frames)

    def _watch_output(self) -> None:
        """Tell the receiver when much output waits, and when there is room again."""
        if self._receiver is not None and self._draining is None and self.unsent > HIGH_WATER:
            self._receiver.paused()
            self._draining = asyncio.create_task(self._drain(self._receiver), name=f"drain {self.name}")

    async def _drain(self, receiver: Receiver) -> None:
        with suppress(OSError):
            await self._writer.drain()
        self._draining = None
        receiver.resumed()

    def _finish(self, end: End) -> None:
        if self._end is None:
            self._end = end
            if self._receiver is not None:
                self._receiver.ended(end)
