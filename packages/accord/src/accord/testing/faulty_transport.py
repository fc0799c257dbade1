"""`FaultyTransport`: a transport that misbehaves at random, with a seed, and on command.

    link = FaultyTransport(here, incoming=Faults(duplicate=0.1, delay=0.01), seed=7)
    async with Peer(link, handlers, role="client") as client:
        ...
        await link.cut()

It wraps the transport of one side, so that this side sees the faults and the other side sees the consequences. The
same seed and the same frames give the same faults.

| at random, each way | |
|---|---|
| `drop`, `duplicate`, `corrupt` | the chance that a frame is lost, arrives twice, or has one byte changed |
| `reorder` | the chance that a frame lets the next one go first |
| `delay` | the seconds that a frame takes at most; the order stays |

| on command | |
|---|---|
| `hold(way)`, `release(way)` | frames of one way wait here until they are released |
| `stop_reading()`, `go_on_reading()` | the other side is not read from, so that it has to wait |
| `silence(way)` | all frames of one way are lost, and neither side is told |
| `await cut()` | the connection breaks, and both sides learn it |
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from accord.jsonrpc.line_frames import Oversized
from accord.transports import HIGH_WATER, End, Transport
from accord.transports.wrapped_transport import WrappedTransport

Way = Literal["in", "out"]
"""The direction, as seen by the side that uses the transport."""

Frame = bytes | Oversized

LATEST = 0.1
"""Seconds that a reordered frame waits for the next one; then it is sent first after all."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The random faults of one direction; chances are from 0 to 1."""

    drop: float = 0.0
    """The chance that a frame is lost."""
    duplicate: float = 0.0
    """The chance that a frame arrives twice."""
    corrupt: float = 0.0
    """The chance that one byte of a frame is changed."""
    reorder: float = 0.0
    """The chance that a frame arrives after the next one."""
    delay: float = 0.0
    """The most seconds by which a frame is delayed; the order stays."""


@dataclass(slots=True)
class Tally:
    """How many frames each fault has hit so far, in both directions together."""

    passed: int = 0
    """Frames that were delivered, duplicates included."""
    dropped: int = 0
    """Frames that were lost, by chance or because a direction is silent."""
    duplicated: int = 0
    """Frames that were delivered twice."""
    corrupted: int = 0
    """Frames with one byte changed."""
    reordered: int = 0
    """Frames that were delivered after the next one."""


class FaultyTransport(WrappedTransport):
    """A transport with faults, around another one; without any it changes nothing.

        transport = FaultyTransport(inner, incoming=Faults(drop=0.1), seed=7)

    `incoming` and `outgoing` are the random faults of each direction, `seed` makes them repeatable, and `high_water` is
    how many bytes may wait here before the sender is paused.
    """

    def __init__(
        self,
        inner: Transport,
        *,
        incoming: Faults | None = None,
        outgoing: Faults | None = None,
        seed: int = 0,
        high_water: int = HIGH_WATER,
    ) -> None:
        super().__init__(inner)
        self.name = f"faulty {inner.name}"
        self.inner = inner
        """The transport that is wrapped."""
        self.tally = Tally()
        """The faults so far."""
        self._high_water = high_water
        self._end: End | None = None
        self._cut: End | None = None
        self._full = {"here": False, "inner": False}
        chance = random.Random(seed)
        self._ways: dict[Way, _Way] = {
            "in": _Way(incoming or Faults(), chance, self.tally, self._arrive, self._news),
            "out": _Way(outgoing or Faults(), chance, self.tally, self._leave, self._news),
        }

    # By hand

    def hold(self, way: Way) -> None:
        """Hold the frames of this direction from now on, until `release`."""
        self._ways[way].held = True

    def release(self, way: Way) -> None:
        """Deliver the held frames, all at once."""
        self._ways[way].held = False
        # Not from inside a delivery: a receiver is never called again while it runs.
        asyncio.get_running_loop().call_soon(self._ways[way].pump)

    def stop_reading(self) -> None:
        """Stop reading from the other side, even if the user of this transport wants to read."""
        self.hold_reading()

    def go_on_reading(self) -> None:
        """Read from the other side again, after `stop_reading`."""
        self.let_read()

    def silence(self, way: Way) -> None:
        """Lose all frames of this direction from now on, including held ones; neither side learns of it."""
        self._ways[way].silence()

    async def cut(self) -> End:
        """Break the connection: frames in transit are lost, and both sides learn that it has ended."""
        self.silence("in")
        self.silence("out")
        self._cut = End("broken", "the connection was cut")
        return await self.close(0)

    # As a transport

    def send(self, frames: Sequence[bytes]) -> None:
        """Send these frames with faults."""
        if self._end is None:
            self._ways["out"].put(frames)

    @property
    def unsent(self) -> int:
        """Return how many bytes wait here and in the wrapped transport."""
        return self._ways["out"].size + self.inner.unsent

    async def flush(self) -> None:
        """Wait until all frames have left; endlessly while they are held."""
        await self._ways["out"].empty.wait()
        await self.inner.flush()

    async def close(self, grace: float = 2.0) -> End:
        """Send the waiting frames, for at most `grace` seconds, and close the wrapped transport."""
        out = self._ways["out"]
        try:
            async with asyncio.timeout(grace):
                await out.empty.wait()
        except TimeoutError:
            out.silence()
        end = await self.inner.close(grace)
        self._finish(self._cut or end)
        return self._end or end

    # Between the two

    def _arrive(self, frames: Sequence[Frame]) -> None:
        if self._receiver is not None and self._end is None:
            self._receiver.received(frames)

    def _leave(self, frames: Sequence[Frame]) -> None:
        self.inner.send([frame for frame in frames if isinstance(frame, bytes)])

    def _news(self) -> None:
        """Pause or resume the sender, because frames entered or left a direction."""
        size = self._ways["out"].size
        if size > self._high_water:
            self._fullness("here", full=True)
        elif size <= self._high_water // 4:
            self._fullness("here", full=False)

    def _fullness(self, where: Literal["here", "inner"], *, full: bool) -> None:
        before = any(self._full.values())
        self._full[where] = full
        after = any(self._full.values())
        if self._receiver is not None and before != after:
            (self._receiver.paused if after else self._receiver.resumed)()

    def received(self, frames: Sequence[Frame]) -> None:
        """Deliver frames of the wrapped transport, with faults."""
        self._ways["in"].put(frames)

    def paused(self) -> None:
        """Pause the sender: the wrapped transport is full."""
        self._fullness("inner", full=True)

    def resumed(self) -> None:
        """Let the sender go on, unless too much waits here."""
        self._fullness("inner", full=False)

    def ended(self, end: End) -> None:
        """End this transport, too, when all frames have arrived."""
        # Delayed frames still arrive, and so do held ones: after the end they might never be released.
        way = self._ways["in"]
        if way.silent:
            return
        way.held = False
        way.when_empty(lambda: self._finish(end))
        way.pump()

    def _finish(self, end: End) -> None:
        if self._end is None:
            self._end = end
            for way in self._ways.values():
                way.silence()
            if self._receiver is not None:
                self._receiver.ended(end)


class _Way:
    """One direction of the connection: the frames in it, and its faults."""

    def __init__(
        self,
        faults: Faults,
        chance: random.Random,
        tally: Tally,
        deliver: Callable[[Sequence[Frame]], None],
        changed: Callable[[], None],
    ) -> None:
        self.held = False
        self.silent = False
        self.size = 0
        self.empty = asyncio.Event()
        self.empty.set()
        self._faults = faults
        self._chance = chance
        self._tally = tally
        self._deliver = deliver
        self._changed = changed
        self._queue: deque[tuple[float, Frame]] = deque()
        self._late: Frame | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._once_empty: Callable[[], None] | None = None

    def put(self, frames: Sequence[Frame]) -> None:
        if self.silent:
            self._tally.dropped += len(frames)
            return
        now = asyncio.get_running_loop().time()
        for frame in frames:
            self._misbehave(frame, now)
        self.pump()

    def pump(self) -> None:
        """Deliver the frames that are due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        if not self.held:
            due: list[Frame] = []
            while self._queue and self._queue[0][0] <= loop.time():
                due.append(self._queue.popleft()[1])
            if due:
                self._tally.passed += len(due)
                self.size -= sum(map(_length, due))
                self._deliver(due)
            if self._queue:
                self._timer = loop.call_at(self._queue[0][0], self.pump)
        self._note()

    def when_empty(self, do: Callable[[], None]) -> None:
        self._once_empty = do

    def silence(self) -> None:
        self.silent = True
        self._tally.dropped += len(self._queue) + (self._late is not None)
        self._queue.clear()
        self._late = None
        self.size = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._note()

    def _note(self) -> None:
        if self._queue or self._late is not None:
            self.empty.clear()
        else:
            self.empty.set()
            do, self._once_empty = self._once_empty, None
            if do is not None:
                do()
        self._changed()

    def _misbehave(self, frame: Frame, now: float) -> None:
        if self._happens(self._faults.drop):
            self._tally.dropped += 1
            return
        if isinstance(frame, bytes) and self._happens(self._faults.corrupt):
            self._tally.corrupted += 1
            frame = self._corrupted(frame)
        if self._late is None and self._happens(self._faults.reorder):
            self._tally.reordered += 1
            self._late = frame
            asyncio.get_running_loop().call_later(LATEST, self._late_at_last, frame)
            self.size += _length(frame)
            return
        self._append(frame, now)
        if self._happens(self._faults.duplicate):
            self._tally.duplicated += 1
            self._append(frame, now)
        if self._late is not None:
            self._let_late_go(now)

    def _append(self, frame: Frame, now: float) -> None:
        # Not before the frame ahead of it: a delay keeps the order.
        due = now + self._chance.random() * self._faults.delay if self._faults.delay else now
        self._queue.append((max(due, self._queue[-1][0]) if self._queue else due, frame))
        self.size += _length(frame)

    def _let_late_go(self, now: float) -> None:
        late, self._late = self._late, None
        if late is not None:
            self.size -= _length(late)
            self._append(late, now)

    def _late_at_last(self, frame: Frame) -> None:
        if self._late is frame:
            self._let_late_go(asyncio.get_running_loop().time())
            self.pump()

    def _happens(self, likely: float) -> bool:
        return likely > 0 and self._chance.random() < likely

    def _corrupted(self, frame: bytes) -> bytes:
        """Return this frame with one byte changed; it stays one line."""
        at = self._chance.randrange(len(frame)) if frame else 0
        other = self._chance.choice([byte for byte in range(32, 256) if byte != frame[at]]) if frame else 0
        return frame[:at] + bytes([other]) + frame[at + 1 :]


def _length(frame: Frame) -> int:
    return frame.length if isinstance(frame, Oversized) else len(frame)
