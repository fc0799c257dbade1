"""The journal of agents' writes, each with the bytes before and after, to display and to undo."""

from __future__ import annotations

import difflib
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from accord.project.roots import RootedPath
from accord.services.files.encoding import NotText, decode

KEPT = 64 * 1024 * 1024
"""Bytes of changes that are kept; the oldest are dropped."""

MOST = 10_000
"""Number of changes that are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One write to a file. `before` is None if the file is new.

    >>> print(Change(Path("/p/a.txt"), b"one\\n", b"two\\n").diff(), end="")
    --- /p/a.txt
    +++ /p/a.txt
    @@ -1 +1 @@
    -one
    +two
    """

    path: Path
    before: bytes | None
    after: bytes
    session_id: str = ""
    agent: str = ""
    at: float = field(default_factory=time.time)
    place: RootedPath | None = field(default=None, repr=False)

    def diff(self) -> str:
        """A unified diff; a single line if one of the sides is not text."""
        try:
            old, new = decode(self.before or b""), decode(self.after)
        except NotText:
            return f"Binary file {self.path} differs\n"
        name = "/dev/null" if self.before is None else str(self.path)
        lines = difflib.unified_diff(_lines(old), _lines(new), name, str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class ChangeJournal:
    """The latest changes, oldest first, up to `kept` bytes."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._changes: deque[Change] = deque()
        self._size = 0

    def __iter__(self) -> Iterator[Change]:
        return iter(tuple(self._changes))

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, change: Change) -> None:
        """Add a change and drop the oldest ones that no longer fit."""
        self._changes.append(change)
        self._size += _size(change)
        while self._size > self._kept or len(self._changes) > MOST:
            self._size -= _size(self._changes.popleft())

    def replace(self, change: Change, other: Change) -> None:
        """Put another change in the place of one, if it is still kept."""
        if change in self._changes:
            self._changes[self._changes.index(change)] = other
            self._size += _size(other) - _size(change)

    def discard(self, change: Change) -> None:
        """Remove a change, if it is still kept."""
        if change in self._changes:
            self._changes.remove(change)
            self._size -= _size(change)


def _size(change: Change) -> int:
    return len(change.before or b"") + len(change.after)


def _lines(text: str) -> list[str]:
    """Split at line feeds only: `str.splitlines` would also split at form feeds."""
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])
