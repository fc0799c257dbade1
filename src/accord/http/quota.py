"""What a server takes on at the same time, counted in all and for each of its owners or connections. PURE."""

from __future__ import annotations

from collections import Counter

from accord.http.judging import Refusal


class Processes:
    """The agent processes of a server, and whose they are.

    >>> processes = Processes(total=10, each=1)
    >>> processes.check("ada")
    >>> processes.begin("ada")
    >>> processes.check("ada")
    Traceback (most recent call last):
    accord.http.judging.Refusal: too many agent processes: this owner has 1, at most 1 are allowed; end a connection
    """

    def __init__(self, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._running: Counter[str] = Counter()

    def check(self, owner: str) -> None:
        """Refuse one more process of this owner, if it would be too many."""
        if self._running[owner] >= self._each:
            raise Refusal(429, _too_many(f"this owner has {self._running[owner]:,}", self._each))
        if (running := self._running.total()) >= self._total:
            raise Refusal(503, _too_many(f"the server has {running:,}", self._total))

    def begin(self, owner: str) -> None:
        self._running[owner] += 1

    def end(self, owner: str) -> None:
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]


def _too_many(has: str, most: int) -> str:
    return f"too many agent processes: {has}, at most {most:,} are allowed; end a connection"


class Bytes:
    """Bytes that are kept for somebody, up to a bound."""

    def __init__(self, most: int) -> None:
        self.size = 0
        self._most = most

    def has_room(self, size: int) -> bool:
        """Whether so many more would be within the bound."""
        return self.size + size <= self._most

    def add(self, size: int) -> None:
        self.size += size

    def remove(self, size: int) -> None:
        self.size -= size
