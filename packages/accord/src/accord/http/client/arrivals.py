"""The messages that arrive on all streams of a connection: restores their order, and notices one that never arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from accord._internal.light_event import LightEvent
from accord.http.ordering import InOrder
from accord.jsonrpc.line_frames import Oversized

MISSING = 30.0
"""Seconds that a message may be missing while later ones have arrived."""

DIGITS = 18
"""The most digits of a message number."""


class Arrivals:
    """Orders the messages of a server that numbers them; those of another server pass as they are.

    `on_missing` is called with the number of a message that is missing for `MISSING` seconds, unless `is_reading` says
    that reading was paused.
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
        """The number in an event id, or None if the server does not number messages."""
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
