"""Tables for people: columns that line up, cut to the width of a terminal, whole in a pipe."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence

from accord.cli import printing
from accord.printable import columns, label

GAP = 2
NARROWEST = 8
"""Columns that a cell keeps at least."""
LONGEST = 2_000
"""Columns of a cell in a pipe."""


def print_table(heading: Sequence[str], rows: Iterable[Sequence[str]], *, limit: int = 1_000) -> None:
    """Print a table, at a terminal at most `limit` rows of it, and each row on one line of the terminal."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    given = list(rows)
    shown = given[:limit] if is_terminal else given
    cells = [[label(cell, LONGEST) for cell in row] for row in (heading, *shown)]
    widths = [max(columns(row[place]) for row in cells) for place in range(len(heading))]
    if is_terminal:
        widths = _fitted(widths, shutil.get_terminal_size().columns)
    printing.say("\n".join(_line(row, widths) for row in cells))
    if len(shown) < len(given):
        printing.say(f"… and {len(given) - len(shown):,} more")


def _fitted(widths: list[int], room: int) -> list[int]:
    """The widths with the widest ones reduced, until the table fits."""
    fitted = list(widths)
    while sum(fitted) + GAP * (len(fitted) - 1) > room and max(fitted) > NARROWEST:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [label(cell, width) for cell, width in zip(row, widths, strict=True)]
    padded = [cell + " " * (width + GAP - columns(cell)) for cell, width in zip(cells, widths, strict=True)]
    return "".join(padded).rstrip()
