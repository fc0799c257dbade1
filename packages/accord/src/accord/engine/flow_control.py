"""Flow control: output in large writes, and bounds for the memory of slow consumers and of peers that do not read.

**Messages** (`ReadPause`). A slow consumer slows the peer instead of growing our memory.
Notifications that wait for their handlers are counted in bytes, and so are the updates that wait in a Reply for its
reader. Past a mark that is larger than one read, reading pauses; it resumes below a quarter of the mark. If everything
else waited for what a pause leaves unread, the program would hang. So reading pauses only

- while each open request of ours is *patient* (a prompt, whose updates fill the memory): any other request needs its
  answer, and the slow handler may be waiting for that answer;
- while no reader waits for an update, and no caller for the end of a prompt whose updates it does not iterate: what
  they wait for may still be unread. Each such reader or caller counts as a request that is not patient;
- while no sender here waits for room: the peer may be waiting as well, and one of the two has to read.

When reading cannot pause, the hard limits of the lanes and of each Reply bound the memory. In one case reading stops
whatever waits: when a peer sends requests and does not read the answers.

**Answers** (`Backlog`). Our sender waits for room. An answer cannot wait: it is made because a request was read,
so a peer that sends requests and does not read their answers would fill the memory. The rule:

1. While output is full (past the transport's high-water mark), requests that arrive are *held*: kept unread, in order,
   and started once there is room. All other messages are still handled: answers, notifications, cancellations. A
   request is small and its answer may be large, so holding costs little.
2. The bytes of held requests are counted, and so are those of answers that are finished while output is full. Past
   `Limits.backlog` reading stops, whatever waits for messages, and resumes below a quarter of it.
3. If reading stays stopped for `Limits.stalled` seconds and the peer read none of our output, the connection ends.

Why two honest peers do not deadlock: this rule stops reading only where more than `backlog` bytes of *requests* wait at
one side, or that many bytes of answers were finished while output was full. As long as one of two peers reads, the
output of the other drains, and then the other reads as well. For both to stop, each must have sent megabytes of
requests without reading the answers. Rule 3 ends such a connection and says why.

Messages that wait for `initialize` to be answered are counted here as well.

**Heavy frames** (`DecodeThread`) are parsed and decoded in a thread. Reading is held meanwhile, and what arrives all
the same waits, so that the order of the wire stays:

    receive ─▶ a heavy frame ─▶ `read`: in a thread ─▶ its message is handled ─▶ the frames that waited, one of which
               and those that follow it: `wait`                                   may be heavy again
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from accord._internal.tasks import LightEvent
from accord.errors import INVALID_REQUEST
from accord.jsonrpc import chunked_decode
from accord.jsonrpc.line_frames import Oversized
from accord.jsonrpc.wire_messages import Malformed, Message
from accord.trace import OUT, Watch

if TYPE_CHECKING:
    from accord.transports import Transport

log = logging.getLogger("accord")

MARK = 4 * 1024 * 1024
"""Bytes past which reading pauses."""


class ReadPause:
    """Decides whether to read, whenever one of its counters has changed."""

    __slots__ = ("_pause", "_resume", "_size", "held", "impatient", "mark", "paused", "senders", "stopped", "unread")

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None], mark: int = MARK) -> None:
        self.mark = mark
        self.paused = False
        self.impatient = 0
        """Open requests that need their answer soon, and readers that wait."""
        self.senders = 0
        """How many local senders wait for room."""
        self.unread = 0
        """Bytes of updates in Replies that have not been read."""
        self.stopped = False
        """Whether reading has stopped until the peer reads its answers."""
        self.held = False
        """Whether a heavy message is being read, and later ones wait for it."""
        self._size = 0
        self._pause = pause
        self._resume = resume

    def resized(self, size: int) -> None:
        """The notifications that wait for their handlers take this many bytes now."""
        self._size = size
        if self.paused or size + self.unread > self.mark:
            self.decide()

    def unread_resized(self, by: int) -> None:
        """The unread updates take this many more bytes, or fewer."""
        self.unread += by
        if self.paused or self.unread > self.mark:
            self.decide()

    def wait(self) -> None:
        """A reader begins to wait for a message that may be unread; `waited` ends this."""
        self.impatient += 1
        if self.paused:
            self.decide()

    def waited(self) -> None:
        """A reader no longer waits."""
        self.impatient -= 1
        if not self.paused and self.unread > self.mark:
            self.decide()

    def stop(self) -> None:
        """Stop reading until `go_on`, even if local readers wait."""
        self.stopped = True
        self.decide()

    def go_on(self) -> None:
        """Resume reading after `stop`, unless there is another reason for a pause."""
        self.stopped = False
        self.decide()

    def hold(self) -> None:
        """Stop reading until `let_go`: a heavy message is being read."""
        self.held = True
        self.decide()

    def let_go(self) -> None:
        """Resume reading after `hold`, unless there is another reason for a pause."""
        self.held = False
        self.decide()

    def decide(self) -> None:
        """Pause or resume reading, if one of the counts has made that necessary."""
        may_pause = not self.impatient and not self.senders
        waiting = self._size + self.unread
        if self.paused:
            if not (self.stopped or self.held) and (not may_pause or waiting <= self.mark // 4):
                self.paused = False
                self._resume()
        elif self.stopped or self.held or (may_pause and waiting > self.mark):
            self.paused = True
            self._pause()


BACKLOG = 16 * 1024 * 1024
"""Bytes past which reading stops."""
STALLED = 60.0
"""Seconds that reading may stay stopped while the peer reads nothing."""


class Backlog(msgspec.Struct, eq=False):
    """Counts the bytes that wait because the peer does not read, and stops reading past the limit."""

    read_pause: ReadPause
    loop: asyncio.AbstractEventLoop
    limit: int
    stalled: float
    taken: Callable[[], int]
    """Returns how many bytes of our output the peer has read so far."""
    on_stalled: Callable[[], None]
    size: int = 0
    """Bytes of requests that wait, and of answers that were made while output was full."""
    _made_while_full: int = 0
    _timer: asyncio.TimerHandle | None = None

    def add(self, size: int) -> None:
        """A request of this many bytes begins to wait."""
        self.size += size
        if self.size > self.limit and not self.read_pause.stopped:
            self.read_pause.stop()
            self._watch()

    def remove(self, size: int) -> None:
        """A request of this many bytes no longer waits."""
        self.size -= size
        if self.read_pause.stopped and self.size <= self.limit // 4:
            self.end()
            self.read_pause.go_on()

    def answered_while_full(self, size: int) -> None:
        """An answer of this many bytes was finished while output was full."""
        self._made_while_full += size
        self.add(size)

    def has_room(self) -> None:
        """The peer has read most of our output."""
        made, self._made_while_full = self._made_while_full, 0
        if made:
            self.remove(made)

    def end(self) -> None:
        """Cancel the deadline."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        self._timer = self.loop.call_later(self.stalled, self._check_progress, self.taken())

    def _check_progress(self, taken_then: int) -> None:
        self._timer = None
        if self.taken() == taken_then:
            self.on_stalled()
        else:
            self._watch()


# Output: the frames of one turn of the event loop are joined into one write, and senders wait for room.
#
# Frames are collected and written at the end of the turn, or as soon as they are large enough for a write of their own.
# The first answer of a turn is usually also its last frame: it is written at once, with what was collected before it.
# So an update and the answer after it are one write, and wake the other process once. While a delivery is handled, all
# frames are collected (`corked`), so that a hundred answers become one write.
#
# An author's function may block the event loop between two updates. The turn then does not end, so a frame that comes
# late in it is written at once, with what was collected before it.
#
# A sender that never waits for anything else lets other tasks run after its share of a write. The senders of one turn
# of the loop share it, so that a turn has about one write: with ten that stream, a request that arrives waits for one
# write, and not for ten.
#
# The first request after a delivery is usually this turn's only output, because its caller now waits. It is flushed at
# once, and no callback is scheduled for the end of the turn: that would cost a dialogue one turn of the loop a request.


FLUSH_AT = 64 * 1024

LEAST_SHARE = 2 * 1024
"""The fewest bytes that one of many senders may send before it lets the others run."""

BLOCKED = 0.02
"""Seconds in which a turn of the event loop ends, unless something blocks it."""


class Early:
    """Keeps the frames that are sent before the transport is open."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def send(self, frames: Sequence[bytes]) -> None:
        """Keep these frames, in this order."""
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

    def __init__(
        self, wire: Early | Transport, read_pause: ReadPause, backlog: Backlog, loop: asyncio.AbstractEventLoop
    ) -> None:
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
        """When the next frame of this iteration of the loop counts as late."""
        self._has_answered = False
        self._is_first_request = True
        """Whether no request was sent since the last delivery."""
        self._size = 0
        self._mark = self._share = FLUSH_AT
        """How many collected bytes are enough for the running sender; 0 while output is full. And its share."""
        self._senders = 0
        """How many senders have let others run in this iteration of the loop."""
        self._room = LightEvent()
        self._askers = 0

    def lead_to(self, wire: Early | Transport) -> None:
        """Write to this transport from now on, first the frames that were kept meanwhile."""
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
        """Collect the frames of this iteration of the loop, including answers, and write them at its end."""
        self._has_answered = True
        if not self._due:
            self._collect()

    def ask(self, frame: bytes) -> bool:
        """Send the frame of a request. Returns True if there is no room."""
        if self._is_first_request and not (self._due or self.corked):
            self._is_first_request = False
            if self.watch is not None:
                self.watch.frame(OUT, frame)
            self.frames_out += 1
            self.bytes_out += len(frame)
            self._wire.send((frame,))  # nothing waits: the collected frames are written before this iteration ends
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
        """Count the caller of a request that was sent while output is full as a waiting sender, until there is room."""
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


START = 1024
"""Bytes of a frame that are kept for log messages about it."""


class DecodeThread(msgspec.Struct, eq=False):
    """Reads the heavy frames of one connection, one after the other."""

    _read_pause: ReadPause
    _loop: asyncio.AbstractEventLoop
    _handle: Callable[[Message | Malformed, bytes, int], None]
    _receive: Callable[[Sequence[bytes | Oversized]], None]
    busy: bool = False
    """Whether a frame is being read, so that later frames have to wait."""
    on_idle: Callable[[], object] | None = None
    """Called once, when no frame is left."""
    _waiting: list[bytes | Oversized] = []
    _has_ended: bool = False

    def read(self, frame: bytes, *, keep: bool) -> None:
        """Read this frame and handle it afterwards. Only its start is kept unless the whole is needed."""
        self.busy = True
        self._read_pause.hold()
        args = ([frame], frame if keep else frame[:START], len(frame), contextvars.copy_context())
        threading.Thread(target=self._read, args=args, name="accord reads a heavy message", daemon=True).start()

    def wait(self, frames: Sequence[bytes | Oversized]) -> None:
        """Queue these frames behind the one that is being read."""
        self._waiting += frames

    def end(self) -> None:
        """Drop the frames that are not handled yet: the connection has ended."""
        self._has_ended = True
        self._waiting.clear()

    def _read(self, frames: list[bytes], kept: bytes, size: int, context: contextvars.Context) -> None:
        try:
            message = chunked_decode.read(frames)
        except Exception as error:
            log.exception("reading a message of %s bytes failed", f"{size:,}")
            message = Malformed(INVALID_REQUEST, f"it could not be read: {error}")
        with contextlib.suppress(RuntimeError):  # the program has closed the loop
            self._loop.call_soon_threadsafe(self._was_read, message, kept, size, context=context)

    def _was_read(self, message: Message | Malformed, kept: bytes, size: int) -> None:
        if self._has_ended:
            return
        self._handle(message, kept, size)
        self.busy = False
        frames, self._waiting = self._waiting, []
        if frames:
            self._receive(frames)
        if not self.busy:
            self._read_pause.let_go()
            if (on_idle := self.on_idle) is not None:
                self.on_idle = None
                on_idle()
