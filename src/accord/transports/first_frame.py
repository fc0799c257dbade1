"""`FirstFrame`: a transport whose first frame can be looked at before it is decided who receives it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from accord.jsonrpc.frames import Oversized
from accord.transports.base import End, Receiver, Transport


class FirstFrame(Transport):
    """Wraps a transport; `first` comes before `start`."""

    def __init__(self, inner: Transport) -> None:
        self.name = inner.name
        self._inner = inner
        self._kept: list[bytes | Oversized] = []
        self._end: End | None = None
        self._arrived = asyncio.Event()
        self._receiver: Receiver | None = None

    async def first(self) -> bytes | None:
        """Open the connection, and wait for the first frame; None if there is none, or if it is too long."""
        await self._inner.start(self)
        await self._arrived.wait()
        frame = self._kept[0] if self._kept else None
        return frame if isinstance(frame, bytes) else None

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        kept, self._kept = self._kept, []
        if kept:
            receiver.received(kept)
        if self._end is not None:
            receiver.ended(self._end)
        else:
            self._inner.resume_reading()

    def send(self, frames: Sequence[bytes]) -> None:
        self._inner.send(frames)

    @property
    def unsent(self) -> int:
        return self._inner.unsent

    async def flush(self) -> None:
        await self._inner.flush()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    async def close(self, grace: float = 2.0) -> End:
        return await self._inner.close(grace)

    # What the wrapped transport calls

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        """Frames have arrived; the transport calls this."""
        if self._receiver is not None:
            self._receiver.received(frames)
            return
        self._inner.pause_reading()
        self._kept += frames
        self._arrived.set()

    def paused(self) -> None:
        """The output is full; the transport calls this."""
        if self._receiver is not None:
            self._receiver.paused()

    def resumed(self) -> None:
        """The output has room again; the transport calls this."""
        if self._receiver is not None:
            self._receiver.resumed()

    def ended(self, end: End) -> None:
        """The link is gone; the transport calls this once."""
        self._end = end
        self._arrived.set()
        if self._receiver is not None:
            self._receiver.ended(end)
