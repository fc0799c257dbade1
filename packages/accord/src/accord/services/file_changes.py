"""Changes of files: the journal of agents' writes, and a summary of one change in a few lines.

The journal keeps the bytes before and after each write, to display and to undo it. A summary (`FileChange`) says how
many lines were added and removed, and which ones. An agent chooses both texts, and comparing them well takes quadratic
time. So the lines that both texts share at their start and end are cut off first, and what lies between is compared
only if it is short. A long change is shown as its old lines and its new ones; its numbers count the lines that only one
side has.
"""

from __future__ import annotations

import difflib
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from accord.project.roots import RootedPath
from accord.services.file_content import NotText, decode

KEPT = 64 * 1024 * 1024
"""Bytes of changes that are kept; the oldest are dropped."""

MOST = 10_000
"""Number of changes that are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class AgentWrite:
    """One write to a file. `before` is None if the file is new.

    >>> print(AgentWrite(Path("/p/a.txt"), b"one\\n", b"two\\n").diff(), end="")
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
        lines = difflib.unified_diff(_lines_of(old), _lines_of(new), name, str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class ChangeJournal:
    """The latest changes, oldest first, up to `kept` bytes."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._changes: deque[AgentWrite] = deque()
        self._size = 0

    def __iter__(self) -> Iterator[AgentWrite]:
        return iter(tuple(self._changes))

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, change: AgentWrite) -> None:
        """Add a change and drop the oldest ones that no longer fit."""
        self._changes.append(change)
        self._size += _size(change)
        while self._size > self._kept or len(self._changes) > MOST:
            self._size -= _size(self._changes.popleft())

    def replace(self, change: AgentWrite, other: AgentWrite) -> None:
        """Put another change in the place of one, if it is still kept."""
        if change in self._changes:
            self._changes[self._changes.index(change)] = other
            self._size += _size(other) - _size(change)

    def discard(self, change: AgentWrite) -> None:
        """Remove a change, if it is still kept."""
        if change in self._changes:
            self._changes.remove(change)
            self._size -= _size(change)


def _size(change: AgentWrite) -> int:
    return len(change.before or b"") + len(change.after)


def _lines_of(text: str) -> list[str]:
    """Split at line feeds only: `str.splitlines` would also split at form feeds."""
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])


COMPARED = 200
"""Lines of each side that are compared one by one."""
AROUND = 1
"""Unchanged lines that are shown before and after a change."""
GAP = "⋯"
"""Stands for unchanged lines between two changes."""


class FileChange:
    """The change from one text to another.

    >>> change = FileChange("one\\ntwo\\n", "one\\n2\\n")
    >>> change.summary, list(change.lines())
    ('+1 -1', [' one', '-two', '+2'])
    """

    def __init__(self, old: str | None, new: str) -> None:
        self.is_new = old is None
        """Whether the file did not exist before."""
        before, after = _lines(old or ""), _lines(new)
        start = _shared(before, after)
        end = _shared(before[start:][::-1], after[start:][::-1])
        self._leading = before[max(0, start - AROUND) : start]
        self._trailing = before[len(before) - end :][:AROUND]
        self._old, self._new = before[start : len(before) - end], after[start : len(after) - end]

    @property
    def added(self) -> int:
        """How many lines are new."""
        return self._counts[0]

    @property
    def removed(self) -> int:
        """How many lines are gone."""
        return self._counts[1]

    @property
    def summary(self) -> str:
        """The numbers of added and removed lines: `+3 -1`, `new file, +3`, or `unchanged`."""
        numbers = [f"+{self.added:,}"] * bool(self.added) + [f"-{self.removed:,}"] * bool(self.removed)
        text = " ".join(numbers) or "unchanged"
        return f"new file, {' '.join(numbers) or 'empty'}" if self.is_new else text

    def lines(self) -> Iterator[str]:
        """The changed lines, each after `+` or `-`, with a few unchanged ones around them, after a blank."""
        yield from (f" {line}" for line in self._leading)
        for place, (kind, old_start, old_end, new_start, new_end) in enumerate(self._opcodes):
            if kind == "equal":
                same = self._old[old_start:old_end]
                yield from _around(same, is_first=place == 0, is_last=place == len(self._opcodes) - 1)
                continue
            yield from (f"-{line}" for line in self._old[old_start:old_end])
            yield from (f"+{line}" for line in self._new[new_start:new_end])
        yield from (f" {line}" for line in self._trailing)

    @cached_property
    def _opcodes(self) -> Sequence[tuple[str, int, int, int, int]]:
        old, new = self._old, self._new
        if max(len(old), len(new)) > COMPARED:
            return [("replace", 0, len(old), 0, len(new))]
        return difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()

    @cached_property
    def _counts(self) -> tuple[int, int]:
        if max(len(self._old), len(self._new)) > COMPARED:
            old, new = Counter(self._old), Counter(self._new)
            return (new - old).total(), (old - new).total()
        changed = [it for it in self._opcodes if it[0] != "equal"]
        return sum(it[4] - it[3] for it in changed), sum(it[2] - it[1] for it in changed)


def _around(same: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[str]:
    before, after = (0 if is_first else AROUND), (0 if is_last else AROUND)
    if len(same) <= before + after + 1:
        yield from (f" {line}" for line in same)
        return
    yield from (f" {line}" for line in same[:before])
    yield GAP
    yield from (f" {line}" for line in same[len(same) - after :])


def _shared(one: Sequence[str], two: Sequence[str]) -> int:
    """How many lines both have in common at their start."""
    for place, (left, right) in enumerate(zip(one, two, strict=False)):
        if left != right:
            return place
    return min(len(one), len(two))


def _lines(text: str) -> list[str]:
    """The lines of a text, without their ends; a text that ends without a newline has a last line of its own kind."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        return lines[:-1]
    lines[-1] += "  (no newline at the end)"
    return lines
