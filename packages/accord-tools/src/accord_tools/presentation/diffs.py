"""`FileDiff`: the change of a file, its numbers and its lines, unified or side by side, with changed words marked.
PURE.

An agent chooses both texts, and comparing them takes quadratic time. So lines that both share at the start and the end
are cut off first, a long middle is shown as its old lines and its new ones, and words are compared only within short
lines that correspond. The numbers of a long change count the lines that only one side has.

The parts of a change (`Hunk`) can be undone one by one. For them lines are compared as bytes, so that undoing a part
restores exactly the old content, including encoding and line ends.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

from accord.printable import columns
from accord_tools.presentation.quantities import counted
from accord_tools.presentation.session_words import change_numbers
from accord_tools.presentation.styled_text import Measure, Paragraph, Row, Span, printed, rows_of, text_of

COMPARED = 500
"""Lines of each side that are compared one by one."""
AROUND = 3
"""Unchanged lines that are shown before and after a change."""
LONGEST = 400
"""Characters of lines whose words are compared."""
OFTEN = 4
"""How often a line may occur in the new text to be looked up from the old one."""
SHOWN = 1_000
"""Removed and added lines of one place that are shown; the others are counted."""
WORDS = 100_000
"""Pairs of words of one diff that are compared."""
ALIKE = 0.3
"""How much of two lines must be the same for their words to be marked."""

_WORD = re.compile(r"\w+|\s+|.")


class DiffLine(NamedTuple):
    """One line of a diff: its sign, its numbers in both texts, and its spans."""

    sign: str
    """`+`, `-`, a blank for an unchanged line, `~` for omitted lines."""
    old: int | None
    new: int | None
    spans: Sequence[Span]
    lines: int = 1
    """How many lines it represents."""

    def moved(self, old: int, new: int) -> DiffLine:
        """The same line this many lines further down."""
        return self._replace(
            old=None if self.old is None else self.old + old, new=None if self.new is None else self.new + new
        )


class FileDiff:
    """The change from one text to another; `old` is None for a file that did not exist.

    >>> diff = FileDiff("one\\ntwo\\n", "one\\n2\\n")
    >>> diff.added, diff.removed, [line.sign for line in diff.lines]
    (1, 1, [' ', '-', '+'])
    """

    def __init__(self, old: str | None, new: str) -> None:
        self.is_new = old is None
        before, after = _lines(old or ""), _lines(new)
        if before and after and (old or "").endswith("\n") != new.endswith("\n"):
            shorter = before if new.endswith("\n") else after
            shorter[-1] += "  (no newline at the end)"
        self._start = _shared(before, after)
        self._end = _shared(before[self._start :][::-1], after[self._start :][::-1])
        self._before, self._after = before, after
        self._old = before[self._start : len(before) - self._end]
        self._new = after[self._start : len(after) - self._end]

    @property
    def added(self) -> int:
        """The number of new lines."""
        return self._counts[0]

    @property
    def removed(self) -> int:
        """The number of removed lines."""
        return self._counts[1]

    @property
    def summary(self) -> list[Span]:
        """The numbers of the change in its colours, each after two blanks."""
        numbers = change_numbers(self.added, self.removed)
        new: list[Span] = [("  new file", "dim")]
        return (new if self.is_new else []) + (numbers or ([] if self.is_new else [("  unchanged", "dim")]))

    @cached_property
    def lines(self) -> Sequence[DiffLine]:
        """The changed lines, with a few unchanged ones around them."""
        before, start, end = self._before, self._start, self._end
        lead = max(0, start - AROUND)
        lines = [_left_out(lead)] if lead else []
        lines += [_same(before[place], place, place) for place in range(lead, start)]
        lines += _middle(self._old, self._new, start, self._opcodes)
        shift = len(self._after) - len(before)
        for place in range(len(before) - end, min(len(before), len(before) - end + AROUND)):
            lines.append(_same(before[place], place, place + shift))
        if end > AROUND:
            lines.append(_left_out(end - AROUND))
        return lines

    @property
    def _is_long(self) -> bool:
        return max(len(self._old), len(self._new)) > COMPARED

    @cached_property
    def _opcodes(self) -> Sequence[tuple[str, int, int, int, int]]:
        old, new = self._old, self._new
        if self._is_long:
            return [("replace", 0, len(old), 0, len(new))]
        # A frequent line, such as a blank one, equals many: it is compared only next to others.
        often = {line for line, count in Counter(new).items() if count > OFTEN}
        return difflib.SequenceMatcher(often.__contains__, old, new, autojunk=False).get_opcodes()

    @cached_property
    def _counts(self) -> tuple[int, int]:
        if self._is_long:  # the lines that only one side has
            old, new = Counter(self._old), Counter(self._new)
            return (new - old).total(), (old - new).total()
        changed = [it for it in self._opcodes if it[0] != "equal"]
        return sum(it[4] - it[3] for it in changed), sum(it[2] - it[1] for it in changed)


def unified(lines: Sequence[DiffLine]) -> list[Paragraph]:
    """A diff in one column."""
    size = len(str(max((line.new or line.old or 0 for line in lines), default=0)))
    return [_unified(line, size) for line in lines]


def side_by_side(lines: Sequence[DiffLine], width: int, measure: Measure = columns) -> list[Paragraph]:
    """A diff in two columns."""
    size = len(str(max((line.new or line.old or 0 for line in lines), default=0)))
    half = (width - 1) // 2
    return [
        Paragraph(
            [
                *_half(left, size, half, measure, is_old=True),
                ("│", "dim"),
                *_half(right, size, half, measure, is_old=False),
            ],
            wrap="cut",
        )
        for left, right in _pairs(lines)
    ]


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _shared(one: Sequence[str], two: Sequence[str]) -> int:
    for place, (left, right) in enumerate(zip(one, two, strict=False)):
        if left != right:
            return place
    return min(len(one), len(two))


def _middle(
    old: Sequence[str], new: Sequence[str], start: int, changes: Sequence[tuple[str, int, int, int, int]]
) -> Iterator[DiffLine]:
    """Return the part between the lines that both sides share."""
    words = WORDS
    for kind, old_from, old_to, new_from, new_to in changes:
        if kind == "equal":
            for offset in _unchanged(old_to - old_from):
                if isinstance(offset, DiffLine):
                    yield offset
                else:
                    yield _same(old[old_from + offset], start + old_from + offset, start + new_from + offset)
            continue
        removed, added = list(old[old_from:old_to]), list(new[new_from:new_to])
        marked, words = _marked(removed, added, words)
        for sign, lines, shown, first in (("-", removed, marked[0], old_from), ("+", added, marked[1], new_from)):
            for number, spans in enumerate(shown, start + first + 1):
                yield DiffLine(sign, number if sign == "-" else None, number if sign == "+" else None, spans)
            if (more := len(lines) - SHOWN) > 0:
                yield DiffLine(sign, None, None, [(f"⋯ {more:,} more lines", "dim")], more)


def _unchanged(count: int) -> Iterator[int | DiffLine]:
    """Return which of this many unchanged lines between two changes are shown."""
    if count <= 2 * AROUND + 1:
        yield from range(count)
        return
    yield from range(AROUND)
    yield _left_out(count - 2 * AROUND)
    yield from range(count - AROUND, count)


def _same(text: str, old: int, new: int) -> DiffLine:
    return DiffLine(" ", old + 1, new + 1, [(printed(text), "")])


def _left_out(count: int) -> DiffLine:
    return DiffLine("~", None, None, [(f"⋯ {counted(count, 'unchanged line')}", "dim")])


def _marked(
    removed: Sequence[str], added: Sequence[str], most: int
) -> tuple[tuple[list[list[Span]], list[list[Span]]], int]:
    """Return the spans of removed and added lines, and how much of the work is left.

    In lines that correspond, the changed words are marked.
    """
    old = [[(printed(line), "removed")] for line in removed[:SHOWN]]
    new = [[(printed(line), "added")] for line in added[:SHOWN]]
    for place, (before, after) in enumerate(zip(removed[:SHOWN], added, strict=False)):
        if len(before) > LONGEST or len(after) > LONGEST:
            continue
        ours, theirs = _WORD.findall(before), _WORD.findall(after)
        most -= len(ours) * len(theirs)
        if most < 0:
            break
        matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
        if matcher.real_quick_ratio() < ALIKE or matcher.ratio() < ALIKE:
            continue
        old[place], new[place] = [], []
        for kind, *places in matcher.get_opcodes():
            for spans, words, style, at in ((old, ours, "removed", 0), (new, theirs, "added", 2)):
                if text := printed("".join(words[places[at] : places[at + 1]])):
                    spans[place].append((text, style if kind == "equal" else f"{style} word"))
    return (old, new), most


_FILLS = {"+": "added", "-": "removed"}


def _unified(line: DiffLine, size: int) -> Paragraph:
    number = "" if line.sign == "~" else str(line.old if line.new is None else line.new)
    fill = _FILLS.get(line.sign, "")
    sign = " " if line.sign == "~" else line.sign
    first: Row = ((f"{number:>{size}} ", "dim"), (f"{sign} ", fill))
    rest: Row = ((" " * (size + 1), "dim"), ("  ", fill))
    return Paragraph(line.spans, first, rest, "fold", fill)


def _pairs(lines: Sequence[DiffLine]) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    """Return the lines that are shown next to each other."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in lines:
        if line.sign == "+":
            added.append(line)
        elif line.sign == "-" and not added:
            removed.append(line)
        else:
            yield from zip_longest(removed, added)
            removed, added = [line] if line.sign == "-" else [], []
            if line.sign != "-":
                yield line, line
    yield from zip_longest(removed, added)


def _half(line: DiffLine | None, size: int, width: int, measure: Measure, *, is_old: bool) -> list[Span]:
    """Return one side of a row, exactly this wide."""
    if line is None:
        return [(" " * width, "dim")]
    fill = _FILLS.get(line.sign, "")
    number = line.old if is_old else line.new
    sign = line.sign if line.sign in _FILLS else " "
    first: Row = ((f"{'' if number is None else number:>{size}} ", "dim"), (f"{sign} ", fill))
    row = rows_of(Paragraph(line.spans, first, wrap="crop"), width, measure)[0]
    return [*row, (" " * max(0, width - measure(text_of(row))), fill)]


class Hunk(NamedTuple):
    """A part of a change: lines of the old content, and their replacement."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


def lines_of(content: bytes) -> list[bytes]:
    """The lines, each with its end."""
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def hunks(old: Sequence[bytes], new: Sequence[bytes]) -> list[Hunk]:
    """Return the parts of a change; changed lines with few unchanged ones between them are one part.

    >>> hunks([b"a\\n", b"b\\n"], [b"a\\n", b"c\\n"])
    [Hunk(old_from=1, old_to=2, new_from=1, new_to=2)]
    """
    if max(len(old), len(new)) > 20 * COMPARED:
        return [Hunk(0, len(old), 0, len(new))]
    found: list[Hunk] = []
    for kind, old_from, old_to, new_from, new_to in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            continue
        if found and old_from - found[-1].old_to <= 2 * AROUND:
            found[-1] = found[-1]._replace(old_to=old_to, new_to=new_to)
        else:
            found.append(Hunk(old_from, old_to, new_from, new_to))
    return found


def without(old: Sequence[bytes], new: Sequence[bytes], hunk: Hunk) -> bytes:
    """Return the new content with one part undone."""
    return b"".join((*new[: hunk.new_from], *old[hunk.old_from : hunk.old_to], *new[hunk.new_to :]))
