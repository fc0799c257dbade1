"""Notices silence: that nothing has happened for a while.

A timeout for each wait would be started and cancelled with every message, and is hardly ever needed. So a `Silence` has
one timer, which looks at the time of the latest message when it fires, and then waits for the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Silence:
    """Calls `on_silence` after every `seconds` without `heard`, until `stop`."""

    __slots__ = ("_loop", "_on_silence", "_seconds", "_since", "_timer")

    def __init__(self, seconds: float, on_silence: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._on_silence = on_silence
        self._since = self._loop.time()
        self._timer = self._loop.call_at(self._since + seconds, self._look)

    def heard(self) -> None:
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
            self._on_silence()
