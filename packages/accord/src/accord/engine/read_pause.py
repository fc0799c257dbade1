"""Decides when to pause reading, so that a slow consumer slows the peer instead of growing our memory.

Notifications that wait for their handlers are counted in bytes, and so are the updates that wait in a Reply for its
reader. Past a mark that is larger than one read, reading pauses; it resumes below a quarter of the mark. If everything
else waited for what a pause leaves unread, the program would hang. So reading pauses only

- while each open request of ours is *patient* (a prompt, whose updates fill the memory): any other request needs its
  answer, and the slow handler may be waiting for that answer;
- while no reader waits for an update, and no caller for the end of a prompt whose updates it does not iterate: what
  they wait for may still be unread. Each such reader or caller counts as a request that is not patient;
- while no sender here waits for room: the peer may be waiting as well, and one of the two has to read.

When reading cannot pause, the hard limits of the lanes and of each Reply bound the memory.

In one case reading stops whatever waits: when a peer sends requests and does not read the answers. `backlog` explains
this case, and why it does not stop two honest peers for ever.
"""

from __future__ import annotations

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
