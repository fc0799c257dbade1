"""Message numbers: restore the order of sending across streams, and drop duplicates.

Our server numbers the messages of a connection from 1 on, without gaps, across all streams. A message that arrives
early is held until the ones before it have arrived. A message that arrives twice (over a resumed stream) is dropped.
`InOrder` does that, and `Arrivals` also notices a message that never arrives.

The size of held messages is limited. Past the limit, a stream that is ahead is not read until the missing message has
arrived over another stream: numbers within one stream rise, so this stream cannot bring it.

Our client numbers its POSTs. A POST whose answer was lost is sent again with the same number, and `Once` accepts it
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from accord._internal.tasks import LightEvent
from accord.jsonrpc.line_frames import Oversized

HELD = 16 * 1024 * 1024
"""Bytes of early messages to hold before reading stops on a stream that is ahead."""

EACH = 200
"""Bytes that a held message counts in addition to its own, so that the number of tiny messages is limited too."""


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
        """The size of the held messages in bytes."""
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
    """Knows which numbers were accepted.

    >>> once = Once()
    >>> once.take(2), once.take(1), once.take(2)
    (True, True, False)
    """

    def __init__(self) -> None:
        self._highest = 0
        self._missing: dict[int, None] = {}
        """Numbers below the highest that were not accepted (still on their way, or refused), oldest first."""

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


MISSING = 30.0
"""Seconds that a message may be missing while later ones have arrived."""

DIGITS = 18
"""The most digits of a message number."""


class Arrivals:
    """Orders the messages of a server that numbers them; those of another server pass unchanged.

    `on_missing` is called with the number of a message that is missing for `MISSING` seconds, unless `is_reading`
    returns that reading was paused.
    """

    def __init__(self, on_missing: Callable[[int], None], is_reading: Callable[[], bool]) -> None:
        self.numbered = False
        """Whether the server numbers its messages."""
        self._on_missing = on_missing
        self._is_reading = is_reading
        self._order = InOrder()
        self._advanced = LightEvent()
        """Set when a missing message has arrived."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, event_id: str | None, message: bytes | Oversized) -> list[bytes | Oversized]:
        """Add a message; returns the messages that can be delivered now, in order."""
        number = self._number(event_id)
        ready = [message] if number is None else self._order.arrived(number, message)
        if ready:
            self._advanced.set()
        return ready

    def _number(self, event_id: str | None) -> int | None:
        """Return the number in an event id, or None if the server does not number messages."""
        is_number = event_id is not None and event_id.isascii() and event_id.isdecimal() and len(event_id) <= DIGITS
        return int(event_id) if self.numbered and is_number and event_id is not None else None

    async def room(self, last: str | None) -> None:
        """Wait while the stream whose last event this was is too far ahead of the others."""
        number = self._number(last)
        while number is not None and self._order.is_too_far(number):
            self._advanced.clear()
            await self._advanced.wait()

    def watch(self) -> None:
        """Start or stop the timer for a missing message; called after messages were added."""
        if not self._order.is_waiting:
            self.close()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MISSING, self._check, self._order.next)

    def _check(self, awaited: int) -> None:
        self._timer = None
        if self._order.is_waiting and self._order.next == awaited and self._is_reading():
            self._on_missing(awaited)
        else:
            self.watch()

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
