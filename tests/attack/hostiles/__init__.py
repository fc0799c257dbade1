"""Hostile agents, over standard streams and as servers: what a client of ours is told to meet.

Each ends by itself after its time. None of them uses anything of Accord.
"""

from __future__ import annotations

import time

BUDGET = 256 * 1024 * 1024
"""Bytes that one of them may send."""

LATEST = 10.0
"""Seconds after its time at which it ends, whatever the client does."""


class Allowance:
    """How long something may go on, and how many bytes it may send."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._sent = 0

    @property
    def left(self) -> float:
        return max(0.0, self._ends - time.monotonic())

    def take(self, size: int) -> bool:
        """Whether so many bytes more may be sent."""
        self._sent += size
        return self._sent < BUDGET and self.left > 0
