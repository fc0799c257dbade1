"""Message numbering: restores the order of sending and drops duplicates. PURE.

Our server numbers the messages of a connection from 1 on, without gaps, across all streams. A message that arrives
early is held until the ones before it have arrived. A message that arrives twice (over a resumed stream) is dropped.

Held messages are bounded. Past the bound, a stream that is ahead is not read until the missing message has arrived
over another stream: numbers within one stream rise, so this stream cannot bring it.

Our client numbers its POSTs. A POST whose answer was lost is sent again with the same number, and is taken once.
"""

from __future__ import annotations

from accord.jsonrpc.line_frames import Oversized

HELD = 16 * 1024 * 1024
"""Bytes of early messages to hold before reading stops on a stream that is ahead."""

EACH = 200
"""Bytes that a held message counts in addition to its own, so that tiny messages are bounded too."""


class InOrder:
    """Holds early messages, and reports when there are too many.

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
        """The number of the next message to deliver."""
        self.held_bytes = 0
        """Bytes that the held messages take."""
        self._room = room
        self._held: dict[int, bytes | Oversized] = {}

    def arrived(self, number: int, message: bytes | Oversized) -> list[bytes | Oversized]:
        """Add a message; returns the messages that can be delivered now, in order."""
        if number < self.next or number in self._held:
            return []
        if number > self.next:
            self._held[number] = message
            self.held_bytes += _size(message)
            return []
        ready: list[bytes | Oversized] = [message]
        self.next += 1
        while (held := self._held.pop(self.next, None)) is not None:
            ready.append(held)
            self.held_bytes -= _size(held)
            self.next += 1
        return ready

    @property
    def is_waiting(self) -> bool:
        """Whether messages are held because an earlier one is missing."""
        return bool(self._held)

    def is_too_far(self, number: int) -> bool:
        """Whether to stop reading the stream that brought this number: it is ahead, and the bound is reached."""
        return number > self.next and self.held_bytes > self._room


def _size(message: bytes | Oversized) -> int:
    return EACH if isinstance(message, Oversized) else EACH + len(message)


MOST_MISSING = 10_000
"""The most missing numbers to remember."""


class Once:
    """Knows which numbers have been taken.

    >>> once = Once()
    >>> once.take(2), once.take(1), once.take(2)
    (True, True, False)
    """

    def __init__(self) -> None:
        self._highest = 0
        self._missing: dict[int, None] = {}
        """Numbers below the highest that were not taken (still on their way, or refused), oldest first."""

    def has(self, number: int) -> bool:
        """Whether this number was taken."""
        return number <= self._highest and number not in self._missing

    def take(self, number: int) -> bool:
        """Take this number; False if it was taken before, or is too old to be remembered."""
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
