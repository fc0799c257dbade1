"""A queue of outgoing frames with a task that writes them, for transports whose writes are awaited.

    send ──▶ put ──▶ [frame, frame, ...] ──▶ take (the task that writes) ──▶ written

Past the high-water mark the receiver gets `paused`, below a quarter of it `resumed`. A frame counts as waiting until
`written` says that it is on its way.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.transports.base import HIGH_WATER, Receiver
from accord.transports.light_event import LightEvent


class Level:
    """Counts the bytes of waiting output, and pauses the receiver when there are too many."""

    def __init__(self, high_water: int = HIGH_WATER) -> None:
        self.size = 0
        self._high_water = high_water
        self._receiver: Receiver | None = None
        self._full = False
        self._given_up = False
        self._empty = LightEvent()
        self._empty.set()

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def add(self, size: int) -> None:
        if self._given_up:
            return
        self.size += size
        self._empty.clear()
        if not self._full and self.size > self._high_water and self._receiver is not None:
            self._full = True
            self._receiver.paused()

    def written(self, size: int) -> None:
        """Note that so many bytes were written."""
        self.size = 0 if self._given_up else self.size - size
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
        self._given_up = True
        self.written(self.size)


class Outgoing(Level):
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
