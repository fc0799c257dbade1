"""Flow control for answers: bounds what a peer requests without reading the answers.

A sender of ours waits for room. An answer cannot wait: it is made because a request was read, so a peer that sends
requests and does not read their answers would fill the memory. The rule:

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

from accord.engine.read_pause import ReadPause

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
