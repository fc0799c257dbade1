"""Flow control: bounds the memory that a slow consumer takes here, and that a peer takes which does not read.

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
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

MARK = 4 * 1024 * 1024
"""Bytes past which reading pauses."""


class ReadPause:
    """Decides whether to read, whenever one of its counts has changed."""

    __slots__ = ("_pause", "_resume", "_size", "held", "impatient", "mark", "paused", "senders", "stopped", "unread")

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None], mark: int = MARK) -> None:
        self.mark = mark
        self.paused = False
        self.impatient = 0
        """Open requests that need their answer soon, and readers that wait."""
        self.senders = 0
        """Local senders that wait for room."""
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
        """The unread updates take so many more bytes, or fewer."""
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
        """Read nothing until `go_on`, even if local readers wait."""
        self.stopped = True
        self.decide()

    def go_on(self) -> None:
        """Read again after `stop`, unless another reason for a pause holds."""
        self.stopped = False
        self.decide()

    def hold(self) -> None:
        """Read nothing until `let_go`: a heavy message is being read."""
        self.held = True
        self.decide()

    def let_go(self) -> None:
        """Read again after `hold`, unless another reason for a pause holds."""
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


class Backlog:
    """Counts the bytes that wait because the peer does not read, and stops reading past the limit."""

    __slots__ = (
        "_limit",
        "_loop",
        "_made_while_full",
        "_on_stalled",
        "_read_pause",
        "_stalled",
        "_taken",
        "_timer",
        "size",
    )

    def __init__(
        self,
        read_pause: ReadPause,
        loop: asyncio.AbstractEventLoop,
        *,
        limit: int,
        stalled: float,
        taken: Callable[[], int],
        on_stalled: Callable[[], None],
    ) -> None:
        self.size = 0
        """Bytes of requests that wait, and of answers that were made while output was full."""
        self._read_pause = read_pause
        self._loop = loop
        self._limit = limit
        self._stalled = stalled
        self._taken = taken
        """How many bytes of our output the peer has read so far."""
        self._on_stalled = on_stalled
        self._made_while_full = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, size: int) -> None:
        """A request of so many bytes begins to wait."""
        self.size += size
        if self.size > self._limit and not self._read_pause.stopped:
            self._read_pause.stop()
            self._watch()

    def remove(self, size: int) -> None:
        """A request of so many bytes no longer waits."""
        self.size -= size
        if self._read_pause.stopped and self.size <= self._limit // 4:
            self.end()
            self._read_pause.go_on()

    def answered_while_full(self, size: int) -> None:
        """An answer of so many bytes was finished while output was full."""
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
        self._timer = self._loop.call_later(self._stalled, self._check_progress, self._taken())

    def _check_progress(self, taken_then: int) -> None:
        self._timer = None
        if self._taken() == taken_then:
            self._on_stalled()
        else:
            self._watch()
