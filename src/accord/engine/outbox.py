"""Output: a single frame is written at once, several are joined into one write, and senders wait for room.

The first frame of a turn of the event loop is written at once, for low latency. So is its first answer, which is
usually also its last frame. Further frames of the same turn are collected and written at its end, or as soon as they
are large enough for a write of their own. While a delivery is handled, all frames are collected (`corked`), so that a
hundred answers become one write.

The first request after a delivery is usually this turn's only output, because its caller now waits. It is flushed at
once, and no callback is scheduled for the end of the turn: that would cost a dialogue one turn of the loop a request.
"""

from __future__ import annotations

import asyncio

from accord.engine.backlog import Backlog
from accord.engine.intake import Intake
from accord.trace.events import OUT, Watch
from accord.transports.base import Transport

FLUSH_AT = 64 * 1024


class Outbox:
    """Collects frames and writes them, and lets senders wait for room."""

    __slots__ = (
        "_askers",
        "_backlog",
        "_due",
        "_has_answered",
        "_intake",
        "_is_first_request",
        "_loop",
        "_room",
        "_size",
        "_transport",
        "bytes_out",
        "corked",
        "frames",
        "frames_out",
        "full",
        "watch",
    )

    def __init__(self, transport: Transport, intake: Intake, backlog: Backlog, loop: asyncio.AbstractEventLoop) -> None:
        self.frames: list[bytes] = []
        self.corked = False
        """Whether all frames are collected, because a delivery is being handled."""
        self.full = False
        """Whether output is past the high-water mark of the transport."""
        self.frames_out = self.bytes_out = 0
        self.watch: Watch | None = None
        self._transport = transport
        self._intake = intake
        self._backlog = backlog
        self._loop = loop
        self._due = False
        self._has_answered = False
        self._is_first_request = True
        """Whether no request was sent since the last delivery."""
        self._size = 0
        self._room = asyncio.Event()
        self._askers = 0

    def put(self, frame: bytes) -> bool:
        """Send this frame. True if the sender should `breathe` before it sends more."""
        if self.watch is not None:
            self.watch.frame(OUT, frame)
        self.frames.append(frame)
        self._size += len(frame)
        if self._due or self.corked:
            if self._size < FLUSH_AT:
                return self.full
            self.flush()
            return True
        self.flush()
        self._due = True
        self._loop.call_soon(self._end_of_turn)
        return self.full

    def answer(self, frame: bytes) -> None:
        """Send an answer."""
        if self.corked and self.watch is None and self._size < FLUSH_AT:  # like most: a handler without `await`
            self.frames.append(frame)
            self._size += len(frame)
        elif self.corked or self._has_answered:
            self.put(frame)
        else:
            self._has_answered = True
            self.put(frame)
            self.flush()  # with the frames that were collected before it
        if self.full:
            self._backlog.answered_while_full(len(frame))

    def collect(self) -> None:
        """Collect what this turn of the loop sends, answers too, and write it at its end."""
        self._has_answered = True
        if not self._due:
            self._due = True
            self._loop.call_soon(self._end_of_turn)

    def ask(self, frame: bytes) -> bool:
        """Send the frame of a request. True if there is no room."""
        if self._is_first_request and not (self._due or self.corked):
            self._is_first_request = False
            if self.watch is not None:
                self.watch.frame(OUT, frame)
            self.frames_out += 1
            self.bytes_out += len(frame)
            self._transport.send((frame,))  # nothing waits: what is collected is written before this turn ends
        else:
            self.put(frame)
        return self.full

    def flush(self) -> None:
        """Write the frames that were collected."""
        frames = self.frames
        if frames:
            self.frames = []
            self.frames_out += len(frames)
            self.bytes_out += self._size
            self._size = 0
            self._transport.send(frames)

    def uncork(self) -> None:
        """The delivery was handled: write the frames that were collected meanwhile."""
        self.corked = False
        self._is_first_request = True
        if self.frames:
            self.flush()

    def _end_of_turn(self) -> None:
        self._due = self._has_answered = False
        self.flush()

    async def breathe(self) -> None:
        """Let other tasks run; while the peer does not read, wait for room."""
        if not self.full:
            await asyncio.sleep(0)
            return
        self._intake.senders += 1
        self._intake.decide()
        try:
            await self._room.wait()
        finally:
            self._intake.senders -= 1
            self._intake.decide()

    def expect_room(self) -> None:
        """A request was sent while output is full: until there is room, its caller counts as a sender that waits."""
        self._askers += 1
        self._intake.senders += 1
        self._intake.decide()

    def filled(self) -> None:
        """The output is past the high-water mark of the transport."""
        self.full = True
        self._room.clear()

    def emptied(self) -> None:
        """The peer has read most of the output: wake the senders that wait."""
        self.full = False
        self._room.set()
        self._backlog.has_room()
        if self._askers:
            self._intake.senders -= self._askers
            self._askers = 0
            self._intake.decide()
