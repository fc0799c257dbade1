"""Both ends of a connection in one process: for tests, and for agents in the process of their client.

    here, there = pair()

It behaves as a pair of pipes would. Frames arrive in order, after the sender's iteration of the event loop and never
inside its `send`; frames sent during one iteration arrive together. A side that pauses reading makes the other side's
output wait, count and pause. Frames sent before `close` still arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from accord._internal.tasks import LightEvent, to_the_end, within
from accord.transports import HIGH_WATER, End, Receiver, Transport


def pair(*, high_water: int = HIGH_WATER) -> tuple[MemoryTransport, MemoryTransport]:
    """Two connected transports."""
    there, back = Pipe(), Pipe()
    return MemoryTransport(back, there, high_water), MemoryTransport(there, back, high_water)


class Pipe:
    """One direction: the frames that one side has sent and the other has not yet received."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.size = 0
        self.finished = False  # no more frames are sent
        self.abandoned = False  # no more frames are received
        self.on_change: Callable[[], None] = _nothing  # the reading side's
        self.on_taken: Callable[[], None] | None = None  # the writing side's, while it waits for that

    def put(self, frames: Sequence[bytes]) -> None:
        if not (self.finished or self.abandoned):
            self.frames.extend(frames)
            self.size += sum(map(len, frames))
            self.on_change()

    def finish(self) -> None:
        self.finished = True
        self.on_change()

    def abandon(self) -> None:
        self.abandoned = True
        self.frames, self.size = [], 0
        if self.on_taken is not None:
            self.on_taken()


class MemoryTransport(Transport):
    """One side of a `pair`."""

    name = "memory"

    def __init__(self, incoming: Pipe, outgoing: Pipe, high_water: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._high_water = high_water
        self._full = False
        self._empty = LightEvent()
        """Set when the other side has taken all output; used only while someone waits for that."""
        self._reading = True
        self._receiver: Receiver | None = None
        self._delivery: asyncio.Handle | None = None
        self._end: End | None = None
        self._closing: asyncio.Task[None] | None = None
        incoming.on_change = self._expect_delivery

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._expect_delivery()

    def send(self, frames: Sequence[bytes]) -> None:
        self._outgoing.put(frames)
        if self._outgoing.size > self._high_water and self._receiver is not None and not self._full:
            self._full = True
            self._outgoing.on_taken = self._output_was_taken
            self._receiver.paused()

    @property
    def unsent(self) -> int:
        return self._outgoing.size

    async def flush(self) -> None:
        if self._outgoing.size and self._end is None:
            self._outgoing.on_taken = self._output_was_taken
            self._empty.clear()
            await self._empty.wait()

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._expect_delivery()

    async def close(self, grace: float = 2.0) -> End:
        self._closing = self._closing or asyncio.create_task(self._close(grace), name="close memory")
        await to_the_end(self._closing)
        return self._end or End("closed")

    async def _close(self, grace: float) -> None:
        try:
            await within(grace, self.flush())
        finally:
            self._outgoing.finish()
            self._finish(End("closed"))

    def _expect_delivery(self) -> None:
        # Through the event loop, because a direct call could re-enter the handler that sends.
        if self._delivery is None and self._receiver is not None and self._end is None:
            self._delivery = asyncio.get_running_loop().call_soon(self._deliver, self._receiver)

    def _deliver(self, receiver: Receiver) -> None:
        self._delivery = None
        if self._end is not None:
            return
        incoming = self._incoming
        if self._reading and (frames := incoming.frames):
            incoming.frames, incoming.size = [], 0
            receiver.received(frames)
            if incoming.on_taken is not None:
                incoming.on_taken()
        if incoming.finished and not incoming.frames:
            self._finish(End("peer_closed"))

    def _output_was_taken(self) -> None:
        self._outgoing.on_taken = None
        self._empty.set()
        if self._full and self._receiver is not None:
            self._full = False
            self._receiver.resumed()

    def _finish(self, end: End) -> None:
        if self._end is None:
            self._end = end
            self._incoming.abandon()
            self._empty.set()
            if self._receiver is not None:
                self._receiver.ended(end)


def _nothing() -> None: ...
