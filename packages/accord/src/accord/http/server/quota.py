"""Counts what a server has in use: agent processes, and bytes of request bodies. PURE."""

from __future__ import annotations

from collections import Counter

from accord.http.server.validation import Refusal


class Processes:
    """Counts the agent processes of a server, in total and for each owner.

    >>> processes = Processes(total=10, each=1)
    >>> processes.check("ada")
    >>> processes.begin("ada")
    >>> processes.check("ada")
    Traceback (most recent call last):
    accord.http.server.validation.Refusal: too many agent processes: this owner has 1, at most 1 are allowed; ...
    """

    def __init__(self, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._running: Counter[str] = Counter()

    def check(self, owner: str) -> None:
        """Raise Refusal if one more process of this owner would exceed a limit."""
        if self._running[owner] >= self._each:
            raise Refusal(429, _too_many(f"this owner has {self._running[owner]:,}", self._each))
        if (running := self._running.total()) >= self._total:
            raise Refusal(503, _too_many(f"the server has {running:,}", self._total))

    def begin(self, owner: str) -> None:
        """Count one more process of this owner."""
        self._running[owner] += 1

    def end(self, owner: str) -> None:
        """Count one process of this owner less."""
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]


def _too_many(has: str, most: int) -> str:
    return f"too many agent processes: {has}, at most {most:,} are allowed; end a connection"


class Bytes:
    """Counts bytes that are kept, up to a limit."""

    def __init__(self, most: int) -> None:
        self.size = 0
        self._most = most

    def has_room(self, size: int) -> bool:
        """Whether `size` more bytes would be within the limit."""
        return self.size + size <= self._most

    def add(self, size: int) -> None:
        """Count this many bytes more."""
        self.size += size

    def remove(self, size: int) -> None:
        """Count this many bytes less."""
        self.size -= size
