"""Transports over the objects that a program of the official SDK opens itself: asyncio's streams, or an object of
messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from accord.jsonrpc.line_frames import LIMIT, FrameReader, Oversized, joined
from accord.schema import codec
from accord.transports import HIGH_WATER, End, Receiver, Transport
from accord.transports.wrapped_transport import WrappedTransport

CHUNK = 256 * 1024


class Messages(Protocol):
    """Moves messages as dictionaries: the SDK's interface of a transport, from release 0.12 on."""

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; raises an error if that fails."""
        ...

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end."""
        ...

    async def close(self) -> None:
        """End both directions."""
        ...


class _TaskTransport(Transport):
    """The common part of both transports: reading in a task, which waits while reading is paused."""

    def __init__(self) -> None:
        self._receiver: Receiver | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: asyncio.Task[None] | None = None
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._end: End | None = None
        self.error: Exception | None = None
        """The error that broke the reading; None if it ended normally, or continues."""

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._tasks.append(asyncio.create_task(self._read_all(receiver), name=f"read {self.name}"))

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    async def close(self, grace: float = 2.0) -> End:
        self._closing = self._closing or asyncio.create_task(self._close(grace), name=f"close {self.name}")
        await asyncio.shield(self._closing)  # it continues if the caller is cancelled
        return self._end or End("closed")

    async def _close(self, grace: float) -> None:
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self.flush()
        finally:
            for task in self._tasks:
                task.cancel()
            self._finish(End("closed"))

    async def _read_all(self, receiver: Receiver) -> None:
        end = End("peer_closed")
        try:
            await self._read(receiver)
        except Exception as error:
            self.error = error
            end = End("broken", f"the input broke: {error or type(error).__name__}")
        self._finish(end)

    async def _read(self, receiver: Receiver) -> None:
        """Deliver all messages, up to the end."""
        raise NotImplementedError

    def _finish(self, end: End) -> None:
        if self._end is None:
            self._end = end
            if self._receiver is not None:
                self._receiver.ended(end)


class StreamTransport(_TaskTransport):
    """Frames over a `StreamReader` and a `StreamWriter`. The reader's own limit does not apply: lines may be longer."""

    name = "streams"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._frames = FrameReader(LIMIT)
        self._draining: asyncio.Task[None] | None = None

    async def start(self, receiver: Receiver) -> None:
        await super().start(receiver)
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

    async def _read(self, receiver: Receiver) -> None:
        try:
            while chunk := await self._next_chunk():
                self._deliver(receiver, self._frames.feed(chunk))
        finally:
            self._deliver(receiver, self._frames.finish())

    async def _next_chunk(self) -> bytes:
        await self._may_read.wait()
        return await self._reader.read(CHUNK)

    def _deliver(self, receiver: Receiver, frames: Sequence[bytes | Oversized]) -> None:
        if frames and self._end is None:
            receiver.received(frames)

    def _watch_output(self) -> None:
        """Notify the receiver when much output waits, and when there is room again."""
        if self._receiver is not None and self._draining is None and self.unsent > HIGH_WATER:
            self._receiver.paused()
            self._draining = asyncio.create_task(self._drain(self._receiver), name=f"drain {self.name}")
            self._tasks.append(self._draining)

    async def _drain(self, receiver: Receiver) -> None:
        with suppress(OSError):
            await self._writer.drain()
        if self._draining is not None:
            self._tasks.remove(self._draining)
            self._draining = None
        receiver.resumed()


class MessageTransport(_TaskTransport):
    """Frames over a `Messages` object: one task reads from it, and one writes to it, message by message.

    `undelivered` is called with a message that could not be sent, and with the error.
    """

    name = "messages"

    def __init__(self, messages: Messages, undelivered: Callable[[dict[str, Any], Exception], None]) -> None:
        super().__init__()
        self._messages = messages
        self._undelivered = undelivered
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue()
        self._unsent = 0
        self._is_full = False

    async def start(self, receiver: Receiver) -> None:
        await super().start(receiver)
        self._tasks.append(asyncio.create_task(self._write(receiver), name=f"write {self.name}"))

    def send(self, frames: Sequence[bytes]) -> None:
        if self._end is not None and self._end.reason != "peer_closed":
            return
        for frame in frames:
            self._waiting.put_nowait(frame)
            self._unsent += len(frame)
        if self._unsent > HIGH_WATER and not self._is_full and self._receiver is not None:
            self._is_full = True
            self._receiver.paused()

    @property
    def unsent(self) -> int:
        return self._unsent

    async def flush(self) -> None:
        await self._waiting.join()

    async def _close(self, grace: float) -> None:
        try:
            await super()._close(grace)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(grace):
                    await self._messages.close()

    async def _read(self, receiver: Receiver) -> None:
        while (message := await self._next()) is not None:
            receiver.received([codec.encode(message)])

    async def _next(self) -> dict[str, Any] | None:
        await self._may_read.wait()
        return await self._messages.receive()

    async def _write(self, receiver: Receiver) -> None:
        while True:
            frame = await self._waiting.get()
            message: Any = codec.loads(frame)
            try:
                await self._messages.send(message)
            except Exception as error:
                self._undelivered(message, error)
            finally:
                self._unsent -= len(frame)
                self._waiting.task_done()
            if self._is_full and self._unsent < HIGH_WATER // 4:
                self._is_full = False
                receiver.resumed()


class ReadTimeout(WrappedTransport):
    """Ends the connection when no message arrives for this many seconds while it is read."""

    def __init__(self, inner: Transport, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self.has_expired = False

    async def start(self, receiver: Receiver) -> None:
        await super().start(receiver)
        self._wait()

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        self._wait()
        super().received(frames)

    def pause_reading(self) -> None:
        self._stop()
        super().pause_reading()

    def resume_reading(self) -> None:
        self._wait()
        super().resume_reading()

    def ended(self, end: End) -> None:
        self._stop()
        if not self.has_expired:
            super().ended(end)

    def _wait(self) -> None:
        self._stop()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self.ended(End("broken", f"no message arrived for {self._seconds:g} seconds"))
        self.has_expired = True
