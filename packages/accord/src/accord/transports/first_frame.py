"""`FirstFrame`: a transport whose first frame can be looked at before it is decided who receives it."""

from __future__ import annotations

from collections.abc import Sequence

from accord.jsonrpc.line_frames import Oversized
from accord.transports.base import End, Receiver, Transport
from accord.transports.light_event import LightEvent
from accord.transports.wrapped import WrappedTransport


class FirstFrame(WrappedTransport):
    """Wraps a transport; `first` comes before `start`."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self._kept: list[bytes | Oversized] = []
        self._end: End | None = None
        self._arrived = LightEvent()

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

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        if self._receiver is not None:
            self._receiver.received(frames)
            return
        self._inner.pause_reading()
        self._kept += frames
        self._arrived.set()

    def ended(self, end: End) -> None:
        self._end = end
        self._arrived.set()
        super().ended(end)
