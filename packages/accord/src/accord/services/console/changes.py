"""The change of a file in a few lines: how many were added and removed, and which ones. Pure.

An agent chooses both texts, and comparing them well takes quadratic time. So the lines that both texts share at their
start and end are cut off first, and what lies between is compared only if it is short. A long change is shown as its
old lines and its new ones; its numbers count the lines that only one side has.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

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
