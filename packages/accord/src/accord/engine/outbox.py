"""Output: the frames of one turn of the event loop are joined into one write, and senders wait for room.

Frames are collected and written at the end of the turn, or as soon as they are large enough for a write of their own.
The first answer of a turn is usually also its last frame: it is written at once, with what was collected before it. So
an update and the answer after it are one write, and wake the other process once. While a delivery is handled, all
frames are collected (`corked`), so that a hundred answers become one write.

An author's function may block the event loop between two updates. The turn then does not end, so a frame that comes
late in it is written at once, with what was collected before it.

A sender that never waits for anything else lets other tasks run after its share of a write. The senders of one turn of
the loop share it, so that a turn has about one write: with ten that stream, a request that arrives waits for one write,
and not for ten.

The first request after a delivery is usually this turn's only output, because its caller now waits. It is flushed at
once, and no callback is scheduled for the end of the turn: that would cost a dialogue one turn of the loop a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Protocol

from accord._internal.light_event import LightEvent
from accord.engine.flow_control import Backlog, ReadPause
from accord.trace.trace_events import OUT, Watch

FLUSH_AT = 64 * 1024

LEAST_SHARE = 2 * 1024
"""The least bytes that one of many senders may send before it lets the others run."""

BLOCKED = 0.02
"""Seconds in which a turn of the event loop ends, unless something blocks it."""


class Wire(Protocol):
    """Where frames go."""

    def send(self, frames: Sequence[bytes]) -> None:
        """Take these frames, in this order."""
        ...


class Early:
    """Keeps the frames that are sent before the transport is open."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def send(self, frames: Sequence[bytes]) -> None:
        self.frames += frames


class Outbox:
    """Collects frames and writes them, and lets senders wait for room."""

    __slots__ = (
        "_askers",
        "_backlog",
        "_due",
        "_has_answered",
        "_is_first_request",
        "_late_from",
        "_loop",
        "_mark",
        "_read_pause",
        "_room",
        "_senders",
        "_share",
        "_size",
        "_wire",
        "bytes_out",
        "corked",
        "frames",
        "frames_out",
        "full",
        "watch",
    )

    def __init__(self, wire: Wire, read_pause: ReadPause, backlog: Backlog, loop: asyncio.AbstractEventLoop) -> None:
        self.frames: list[bytes] = []
        self.corked = False
        """Whether all frames are collected, because a delivery is being handled."""
        self.full = False
        """Whether output is past the high-water mark of the transport."""
        self.frames_out = self.bytes_out = 0
        self.watch: Watch | None = None
        self._wire = wire
        self._read_pause = read_pause
        self._backlog = backlog
        self._loop = loop
        self._due = False
        self._late_from = 0.0
        """When the next frame of this turn of the loop is late."""
        self._has_answered = False
        self._is_first_request = True
        """Whether no request was sent since the last delivery."""
        self._size = 0
        self._mark = self._share = FLUSH_AT
        """How many collected bytes are enough for the sender that runs; 0 while output is full. And its share."""
        self._senders = 0
        """How many senders have let others run in this turn of the loop."""
        self._room = LightEvent()
        self._askers = 0

    def lead_to(self, wire: Wire) -> None:
        """Write to this from now on, first what was kept meanwhile."""
        kept, self._wire = self._wire, wire
        if isinstance(kept, Early) and kept.frames:
            wire.send(kept.frames)

    @property
    def is_early(self) -> bool:
        """Whether frames wait for the transport to be open."""
        return isinstance(self._wire, Early)

    def put(self, frame: bytes) -> bool:
        """Send this frame. True if the sender should `breathe` before it sends more."""
        if self.watch is not None:
            self.watch.frame(OUT, frame)
        self.frames.append(frame)
        self._size += len(frame)
        if self._size >= FLUSH_AT:
            self.flush()
            return True
        if self._due:
            if (now := monotonic()) > self._late_from:
                self._late_from = now + BLOCKED
                self.flush()
        elif not self.corked:
            self._collect()
        return self._size >= self._mark

    def _collect(self) -> None:
        self._due = True
        self._late_from = monotonic() + BLOCKED
        self._loop.call_soon(self._end_of_turn)

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
            self._collect()

    def ask(self, frame: bytes) -> bool:
        """Send the frame of a request. True if there is no room."""
        if self._is_first_request and not (self._due or self.corked):
            self._is_first_request = False
            if self.watch is not None:
                self.watch.frame(OUT, frame)
            self.frames_out += 1
            self.bytes_out += len(frame)
            self._wire.send((frame,))  # nothing waits: what is collected is written before this turn ends
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
            self._wire.send(frames)

    def uncork(self) -> None:
        """The delivery was handled: write the frames that were collected meanwhile."""
        self.corked = False
        self._is_first_request = True
        if self.frames:
            self.flush()

    def _end_of_turn(self) -> None:
        self._due = self._has_answered = False
        self._share = FLUSH_AT if self._senders < 2 else max(LEAST_SHARE, FLUSH_AT // self._senders)
        self._senders = 0
        if self.frames:
            self.flush()
        self._mark = 0 if self.full else self._share

    def _begin_share(self) -> None:
        self._mark = 0 if self.full else self._size + self._share

    async def breathe(self) -> None:
        """Let other tasks run; while the peer does not read, wait for room."""
        self._senders += 1
        if not self.full:
            await asyncio.sleep(0)
            self._begin_share()
            return
        self._read_pause.senders += 1
        self._read_pause.decide()
        try:
            await self._room.wait()
        finally:
            self._read_pause.senders -= 1
            self._read_pause.decide()
        self._begin_share()

    def expect_room(self) -> None:
        """A request was sent while output is full: until there is room, its caller counts as a sender that waits."""
        self._askers += 1
        self._read_pause.senders += 1
        self._read_pause.decide()

    def filled(self) -> None:
        """The output is past the high-water mark of the transport."""
        self.full = True
        self._mark = 0
        self._room.clear()

    def emptied(self) -> None:
        """The peer has read most of the output: wake the senders that wait."""
        self.full = False
        self._begin_share()
        self._room.set()
        self._backlog.has_room()
        if self._askers:
            self._read_pause.senders -= self._askers
            self._askers = 0
            self._read_pause.decide()
