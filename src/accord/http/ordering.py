"""What numbers are good for: messages in the order in which they were sent, and none of them twice. PURE.

Our server numbers the messages of a connection from 1 on, without a gap, whichever stream they go to. So what came too
early is held until what is before it has come, and what came twice (a stream that was taken up again) is dropped.

What is held has a bound. Past it, a stream that is ahead is not read until the missing message has come over another
one: the numbers of one stream rise, so it cannot bring that message itself.

Our client numbers what it posts. A POST whose answer was lost comes again under its number, and is taken once.
"""

from __future__ import annotations

HELD = 16 * 1024 * 1024
"""Bytes of early messages that are held before no more are read from a stream that is ahead."""

EACH = 200
"""Bytes that a held message costs beside its own, so that very small ones have a bound as well."""


class InOrder:
    """Holds what is early, and says when that is too much.

    >>> order = InOrder()
    >>> order.arrived(2, b"second")
    []
    >>> order.arrived(1, b"first")
    [b'first', b'second']
    >>> order.arrived(1, b"first")
    []
    """

    def __init__(self, room: int = HELD) -> None:
        self.next = 1
        """The number that is awaited."""
        self.held_bytes = 0
        """Bytes that the held messages cost."""
        self._room = room
        self._held: dict[int, bytes] = {}

    def arrived(self, number: int, message: bytes) -> list[bytes]:
        """What may be delivered now."""
        if number < self.next or number in self._held:
            return []
        if number > self.next:
            self._held[number] = message
            self.held_bytes += len(message) + EACH
            return []
        ready = [message]
        self.next += 1
        while (held := self._held.pop(self.next, None)) is not None:
            ready.append(held)
            self.held_bytes -= len(held) + EACH
            self.next += 1
        return ready

    @property
    def is_waiting(self) -> bool:
        """Whether something is held for a message that has not come."""
        return bool(self._held)

    def is_too_far(self, number: int) -> bool:
        """Whether a stream that has brought this number is to wait: it is ahead, and enough is held."""
        return number > self.next and self.held_bytes > self._room


MOST_MISSING = 10_000
"""Numbers that may be left out, and be remembered."""


class Once:
    """Knows which numbers have been taken.

    >>> once = Once()
    >>> once.take(2), once.take(1), once.take(2)
    (True, True, False)
    """

    def __init__(self) -> None:
        self._highest = 0
        self._missing: dict[int, None] = {}
        """What is below the highest and has not been taken, oldest first: what is on its way still, or was refused."""

    def has(self, number: int) -> bool:
        """Whether this was taken."""
        return number <= self._highest and number not in self._missing

    def take(self, number: int) -> bool:
        """Take it; False if it was taken before, or is so old that nobody knows."""
        if number > self._highest:
            since = max(self._highest + 1, number - MOST_MISSING)
            self._missing.update(dict.fromkeys(range(since, number)))
            self._highest = number
            while len(self._missing) > MOST_MISSING:
                del self._missing[next(iter(self._missing))]
            return True
        if number in self._missing:
            del self._missing[number]
            return True
        return False
