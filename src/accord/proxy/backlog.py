"""`Backlog`: what waits in the output of one link, by where it came from; and when reading has to pause. PURE.

**The problem.** A link to a proxy carries both directions. Not to read it stops both. So if each link were paused
whenever a link that it writes to is full, two proxies could stop each other for ever:

    proxy 1 is not read, because proxy 2 is full        proxy 2 is not read, because proxy 1 is full
    proxy 2 does not read, because it is not read       proxy 1 does not read, because it is not read

**The rule.** Waiting bytes are counted by direction, and the direction towards the client goes first:

1. A link is not read while much of what it sent *towards the client* waits in a full link.
2. A link is not read while much of what it sent *towards the agent* waits in a full link, unless much waits for this
   link that goes towards the client. It can only take that if its own output is read.

**Why it works.** By the first rule a component waits for the one before it, and the last of those is the client. So
those waits are no circle. By the second rule a wait in the other direction gives way to them. The price is memory: what
goes towards the agent may wait past the mark while the client is slow. Past `MOST_WAITING` the link has failed.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from accord.transports.base import HIGH_WATER

MUCH = HIGH_WATER // 4
"""Bytes of one direction that are much, in a link that is full."""

MOST_WAITING = 256 * 1024 * 1024
"""Bytes that may wait for one component; one that does not read them counts as stuck."""


class Waiting(NamedTuple):
    """Bytes of output: what goes to the client, what goes to the agent, and answers of our own."""

    inwards: int = 0
    outwards: int = 0
    own: int = 0

    @property
    def size(self) -> int:
        return self.inwards + self.outwards + self.own


class Backlog:
    """The output of one link that its transport has not written, newest last."""

    __slots__ = ("_parts", "sum")

    def __init__(self) -> None:
        self.sum = Waiting()
        """What waits, in sum."""
        self._parts: deque[Waiting] = deque()

    def sent(self, part: Waiting, unsent: int) -> None:
        """This was given to the transport, in which `unsent` bytes wait now."""
        self._parts.append(part)
        self._add(part, 1)
        self.written(unsent)

    def written(self, unsent: int) -> None:
        """The transport has written all but `unsent` bytes: forget the oldest parts."""
        if not unsent:
            self._parts.clear()
            self.sum = Waiting()
        while self._parts and self.sum.size - self._parts[0].size >= unsent:
            self._add(self._parts.popleft(), -1)

    def _add(self, part: Waiting, sign: int) -> None:
        old = self.sum
        self.sum = Waiting(
            old.inwards + sign * part.inwards, old.outwards + sign * part.outwards, old.own + sign * part.own
        )
