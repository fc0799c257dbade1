"""The escape sequences by which terminals show images: kitty, iTerm2 and Sixel. PURE.

An image comes from an agent and goes into an escape sequence. So callers pass bytes that they have decoded and
measured, never text of the agent: base64 is made here, and has no character that ends a sequence.
"""

from __future__ import annotations

import base64
import math
from typing import Literal, NamedTuple, TypeAlias

Protocol: TypeAlias = Literal["kitty", "iterm2", "sixel"]
"""A protocol by which a terminal shows images."""

CHUNK = 4096
"""Characters of base64 in one sequence of the kitty protocol, which allows no more."""
PLACEHOLDER = "\U0010eeee"
"""The character that kitty replaces by a part of an image."""

# The marks of kitty's placeholders: the one with index N means row or column N.
_MARKS = "".join(
    map(
        chr,
        (
            *(0x305, 0x30D, 0x30E, 0x310, 0x312, 0x33D, 0x33E, 0x33F, 0x346, 0x34A, 0x34B, 0x34C, 0x350, 0x351, 0x352),
            *(0x357, 0x35B, *range(0x363, 0x370), *range(0x483, 0x488), *range(0x592, 0x596), *range(0x597, 0x59A)),
            *(*range(0x59C, 0x5A2), 0x5A8, 0x5A9, 0x5AB, 0x5AC, 0x5AF, 0x5C4, *range(0x610, 0x618)),
        ),
    )
)
MOST_CELLS = len(_MARKS)
"""Rows and columns of the largest image that placeholders can show."""


class Cell(NamedTuple):
    """Pixels of one character of a terminal."""

    width: int = 10
    height: int = 20


def fitted(size: tuple[int, int], columns: int, rows: int, cell: Cell) -> tuple[int, int]:
    """Return how many columns and rows an image takes: its own size, or as much as there is room for.

    >>> fitted((400, 200), 80, 20, Cell(10, 20)), fitted((4000, 2000), 60, 16, Cell(10, 20))
    ((40, 10), (60, 15))
    """
    width, height = size
    scale = max(1.0, width / (columns * cell.width), height / (rows * cell.height))
    wide, high = math.ceil(width / scale / cell.width), math.ceil(height / scale / cell.height)
    return max(1, min(wide, columns)), max(1, min(high, rows))


def kitty(png: bytes, wide: int, high: int, *, image_id: int | None = None) -> str:
    """Return the sequence that shows a PNG at the cursor; with an id it is shown at its placeholders.

    `q=2`: the terminal must not answer, because its answer would look like the user's typing.
    """
    text = base64.b64encode(png).decode()
    where = "" if image_id is None else f"U=1,i={image_id},"
    chunks = [text[place : place + CHUNK] for place in range(0, len(text), CHUNK)]
    sequences: list[str] = []
    for number, chunk in enumerate(chunks):
        keys = f"a=T,f=100,q=2,{where}c={wide},r={high}," if number == 0 else "q=2,"
        sequences.append(f"\x1b_G{keys}m={int(number < len(chunks) - 1)};{chunk}\x1b\\")
    return "".join(sequences)


def kitty_row(image_id: int, row: int, wide: int) -> str:
    """The placeholders of one row of an image. The colour is the id, which must be from 1 to 255."""
    cells = "".join(f"{PLACEHOLDER}{_MARKS[row]}{_MARKS[column]}" for column in range(wide))
    return f"\x1b[38;5;{image_id}m{cells}\x1b[39m"


def iterm2(content: bytes, wide: int, high: int, *, keeps_ratio: bool = True) -> str:
    """Return the sequence that shows an image file at the cursor."""
    keys = f"inline=1;size={len(content)};width={wide};height={high};preserveAspectRatio={int(keeps_ratio)}"
    text = base64.b64encode(content).decode()
    return f"\x1b]1337;File={keys}{'' if keeps_ratio else ';doNotMoveCursor=1'}:{text}\x07"
