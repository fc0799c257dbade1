"""When to stop reading, so that a slow consumer costs the other side time instead of us memory.

What is received and not yet handled is counted in bytes, and so is what waits in a Reply for its reader. Past a mark
that is larger than one read, reading pauses, and goes on below a quarter of it. But not reading may never be what
everything waits for, so it pauses only

- while every request of ours that is out is a *patient* one (a prompt, whose updates are what fills the memory): any
  other one needs its answer read, and may itself be what the slow handler waits for;
- while nobody waits for an update, or for the end of a prompt whose updates nobody reads: what they wait for may be in
  what is not read (whoever waits so counts as an impatient request);
- while nobody here waits for room to send: the other side may be doing the same, and one of the two has to read.

What then still grows is bounded by the hard marks of the lanes and of each Reply.

One thing stops reading in any case: the other side sends requests and takes no answers (`backlog`, which also says why
that cannot stop two honest peers for good, and what happens where it does).
"""

from __future__ import annotations

from collections.abc import Callable

MARK = 4 * 1024 * 1024


class Intake:
    """Decides, whenever something that matters has changed, whether to read."""

    __slots__ = ("_pause", "_resume", "_size", "impatient", "mark", "paused", "senders", "stopped", "unread")

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None], mark: int = MARK) -> None:
        self.mark = mark
        self.paused = False
        self.impatient = 0
        """Requests of ours that need their answer soon, and readers that wait."""
        self.senders = 0
        """Senders here that wait for room."""
        self.unread = 0
        """Bytes in Replies that wait for their readers."""
        self.stopped = False
        """Whether nothing may be read until the other side takes what it has asked for."""
        self._size = 0
        self._pause = pause
        self._resume = resume

    def resized(self, size: int) -> None:
        self._size = size
        if self.paused or size + self.unread > self.mark:
            self.decide()

    def unread_resized(self, by: int) -> None:
        self.unread += by
        if self.paused or self.unread > self.mark:
            self.decide()

    def wait(self) -> None:
        """Somebody waits for what is to be read; `waited` ends it."""
        self.impatient += 1
        if self.paused:
            self.decide()

    def waited(self) -> None:
        self.impatient -= 1
        if not self.paused and self.unread > self.mark:
            self.decide()

    def stop(self) -> None:
        """Read nothing until `go_on`, whatever waits for it."""
        self.stopped = True
        self.decide()

    def go_on(self) -> None:
        self.stopped = False
        self.decide()

    def decide(self) -> None:
        may_pause = not self.impatient and not self.senders
        waiting = self._size + self.unread
        if self.paused:
            if not self.stopped and (not may_pause or waiting <= self.mark // 4):
                self.paused = False
                self._resume()
        elif self.stopped or (may_pause and waiting > self.mark):
            self.paused = True
            self._pause()
