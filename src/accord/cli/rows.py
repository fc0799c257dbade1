"""Lines as rows of a terminal: wrapped or cut at its width, in its colours. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.cli.appearance import Appearance
from accord.cli.work import Line, Span
from accord.printable import columns, cut, wrapped

HANGING = 2
"""Columns by which the rows after the first are indented."""
NARROW = 20
"""A narrower terminal breaks lines by itself."""


def rows_of(line: Line, look: Appearance, width: int | None) -> Iterator[str]:
    """The rows of a line; without a width, a line is one row."""
    margin = " " * line.indent
    if line.is_whole or width is None or width < NARROW or columns(line.text) <= width:
        yield margin + _painted(line.spans, look)
    elif line.is_cut:
        yield margin + _painted(_part(line.spans, 0, _cut_at(line, width - line.indent)), look)
    else:
        yield from _wrapped(line, look, width, margin)


def _wrapped(line: Line, look: Appearance, width: int, margin: str) -> Iterator[str]:
    text = "".join(span.text for span in line.spans)
    place = 0
    for number, row in enumerate(wrapped(text, width - line.indent - HANGING)):
        start = text.index(row, place) if row else place
        place = start + len(row)
        hanging = " " * HANGING if number else ""
        yield f"{margin}{hanging}{_painted(_part(line.spans, start, place), look)}"


def _cut_at(line: Line, most: int) -> int:
    """How many characters of a line are shown; the display adds no sign, because code may end with one."""
    return len(cut("".join(span.text for span in line.spans), most)) - 1


def _part(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """The characters from `start` to `end`, each in its style."""
    found: list[Span] = []
    for text, style in spans:
        if (kept := text[max(start, 0) : max(end, 0)]) != "":
            found.append(Span(kept, style))
        start, end = start - len(text), end - len(text)
    return found


def _painted(spans: Sequence[Span], look: Appearance) -> str:
    return "".join(look.painted(span.style, span.text) for span in spans)
