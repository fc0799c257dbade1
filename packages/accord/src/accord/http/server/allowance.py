"""The allowance for frames that cost work and bring nothing: an amount at once, and a rate after that. PURE.

An honest client sends a few of them: a ping, a setting, a request that its user has cancelled. An attacker sends
nothing else. So each connection may spend `AT_ONCE`, and gets `EACH_SECOND` back. A frame costs 1, and a request that
is reset before its response begins `REQUEST`, whichever side resets it: its application has run for nothing.
"""

from __future__ import annotations

from collections.abc import Callable

AT_ONCE = 1000
EACH_SECOND = 100.0
REQUEST = 10


class Allowance:
    """Counts down with the work of each frame, and up with time, as told by `clock` in seconds.

    >>> allowance = Allowance(lambda: 0.0, at_once=2)
    >>> allowance.spend(), allowance.spend(), allowance.spend()
    (True, True, False)
    """

    def __init__(
        self, clock: Callable[[], float], *, at_once: float = AT_ONCE, each_second: float = EACH_SECOND
    ) -> None:
        self._clock = clock
        self._at_once = at_once
        self._each_second = each_second
        self._left = at_once
        self._since = clock()

    def spend(self, cost: float = 1) -> bool:
        """Count one frame of this cost; False if it is too much."""
        now = self._clock()
        self._left = min(self._at_once, self._left + (now - self._since) * self._each_second) - cost
        self._since = now
        return self._left >= 0
