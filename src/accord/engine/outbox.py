"""Output: written at once when nothing waits, joined when there is more, and a brake for senders.

The first frame of a turn of the event loop goes out at once, for the sake of latency, and so does its first answer,
which is most often the last that is said; what else there is in the same turn is gathered and goes out at its end, or
as soon as there is enough of it for a write of its own. While a delivery is being handled everything is gathered
(`corked`), so that a hundred answers are one write.

A call that is the first thing to be said after a delivery is most often all that is said: who asks waits for the
answer. It goes out without a look at the end of the turn, which would cost a dialogue a turn of the loop a question.
"""

from __future__ import annotations

import asyncio

from accord.engine.backlog import Backlog
from accord.engine.intake import Intake
from accord.trace import OUT, Watch
from accord.transports.base import Transport

FLUSH_AT = 64 * 1024


class Outbox:
    """Where frames wait for the end of the turn, and senders for room."""

    __slots__ = (
        "_askers",
        "_backlog",
        "_due",
        "_has_answered",
        "_has_the_word",
        "_intake",
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
        self.full = False
        self.frames_out = self.bytes_out = 0
        self.watch: Watch | None = None
        self._transport = transport
        self._intake = intake
        self._backlog = backlog
        self._loop = loop
        self._due = False
        self._has_answered = False
        self._has_the_word = True
        """Whether nothing was asked since something was received."""
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
        if self.corked or self._has_answered:
            self.put(frame)
        else:
            self._has_answered = True
            self.put(frame)
            self.flush()  # what was gathered before it as well
        if self.full:
            self._backlog.answered_while_full(len(frame))

    def ask(self, frame: bytes) -> bool:
        """Send the frame of a call. True if there is no room."""
        if self._has_the_word and not (self._due or self.corked):
            self._has_the_word = False
            if self.watch is not None:
                self.watch.frame(OUT, frame)
            self.frames.append(frame)
            self._size += len(frame)
            self.flush()
        else:
            self.put(frame)
        return self.full

    def flush(self) -> None:
        frames = self.frames
        if frames:
            self.frames = []
            self.frames_out += len(frames)
            self.bytes_out += self._size
            self._size = 0
            self._transport.send(frames)

    def uncork(self) -> None:
        self.corked = False
        self._has_the_word = True
        if self.frames:
            self.flush()

    def _end_of_turn(self) -> None:
        self._due = self._has_answered = False
        self.flush()

    async def breathe(self) -> None:
        """Let others run; and while the other side does not take what we send, wait for room."""
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
        """Somebody who waits for an answer anyway waits, until then, for room as well."""
        self._askers += 1
        self._intake.senders += 1
        self._intake.decide()

    def filled(self) -> None:
        self.full = True
        self._room.clear()

    def emptied(self) -> None:
        self.full = False
        self._room.set()
        self._backlog.has_room()
        if self._askers:
            self._intake.senders -= self._askers
            self._askers = 0
            self._intake.decide()
