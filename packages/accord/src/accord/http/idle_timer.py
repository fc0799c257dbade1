"""A timer that fires when nothing has happened for a while.

A timeout for each wait would be started and cancelled with every message, and is hardly ever needed. So an `IdleTimer`
has one timer of the loop. When it fires, it looks at the time of the latest message, and then waits for the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class IdleTimer:
    """Calls `on_idle` after every `seconds` without `touch`, until `stop`."""

    __slots__ = ("_loop", "_on_idle", "_seconds", "_since", "_timer")

    def __init__(self, seconds: float, on_idle: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._on_idle = on_idle
        self._since = self._loop.time()
        self._timer = self._loop.call_at(self._since + seconds, self._look)

    def touch(self) -> None:
        """Note that something has happened now."""
        self._since = self._loop.time()

    def stop(self) -> None:
        """Look no more; idempotent."""
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        is_silent = now >= self._since + self._seconds
        if is_silent:
            self._since = now
        self._timer = self._loop.call_at(self._since + self._seconds, self._look)
        if is_silent:
            self._on_idle()
