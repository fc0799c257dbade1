"""Sixel: pixels as a sequence of characters that each stand for six pixels of one colour. PURE.

An image with at most 256 colours keeps them; another one gets the colours of a cube. The work for each pixel is done by
`bytes.translate` and large integers, so that a picture of a screen takes milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

COLOURS = 256
SIDE = 6
"""Shades of red, green and blue in the cube of colours."""

_REPEATED = re.compile(rb"(.)\1{3,}", re.DOTALL)
_TO_SIXEL = bytes((value + 63) & 255 for value in range(256))


class SixelImage:
    """An image whose rows of pixels can be written as Sixel a few at a time."""

    def __init__(self, rows: Sequence[bytes]) -> None:
        """`rows` have three bytes for each pixel."""
        self._width = len(rows[0]) // 3
        self.colours, self._rows = _counted(rows)
        """The colours, and each row as their numbers."""

    def slice(self, start: int, end: int) -> str:
        """Some of the rows as one sequence, drawn at the cursor. Nothing around the pixels is touched."""
        rows = self._rows[start:end]
        used = _used(rows)
        palette = "".join(_colour(number, self.colours[number]) for number in used)
        bands = [_band(rows[place : place + 6], self._width) for place in range(0, len(rows), 6)]
        return f'\x1bP0;1q"1;1;{self._width};{len(rows)}{palette}{"-".join(bands)}\x1b\\'


def _counted(rows: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The colours of an image, and each row as numbers of colours."""
    found: dict[bytes, int] = {}
    for row in rows:
        for place in range(0, len(row), 3):
            found.setdefault(row[place : place + 3], len(found))
        if len(found) > COLOURS:
            return _in_cube(rows)
    numbers = [bytes([found[row[place : place + 3]] for place in range(0, len(row), 3)]) for row in rows]
    return list(found), numbers


def _in_cube(rows: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    shades = [round(it * 255 / (SIDE - 1)) for it in range(SIDE)]
    colours = [bytes((red, green, blue)) for red in shades for green in shades for blue in shades]
    nearest = [round(value * (SIDE - 1) / 255) for value in range(256)]
    red, green, blue = (bytes(factor * it for it in nearest) for factor in (SIDE * SIDE, SIDE, 1))
    numbers = [
        bytes(
            map(sum, zip(row[0::3].translate(red), row[1::3].translate(green), row[2::3].translate(blue), strict=True))
        )
        for row in rows
    ]
    return colours, numbers


def _used(rows: Sequence[bytes]) -> list[int]:
    """The numbers of the colours in these rows."""
    found: set[int] = set()
    for row in rows:
        found.update(row)
    return sorted(found)


def _colour(number: int, colour: bytes) -> str:
    red, green, blue = (round(value * 100 / 255) for value in colour)
    return f"#{number};2;{red};{green};{blue}"


def _band(rows: Sequence[bytes], width: int) -> str:
    """Six rows: for each of their colours the columns that have it."""
    parts: list[bytes] = []
    for colour in _used(rows):
        bits = 0
        for number, row in enumerate(rows):
            bits |= int.from_bytes(row.translate(_bit(colour, number)), "big")
        line = bits.to_bytes(width, "big").translate(_TO_SIXEL).rstrip(b"?")
        parts.append(b"#%d" % colour + _REPEATED.sub(lambda found: b"!%d%b" % (len(found[0]), found[1]), line))
    return b"$".join(parts).decode("ascii")


@lru_cache(maxsize=2048)
def _bit(colour: int, row: int) -> bytes:
    """Maps the number of a colour to the bit of a row, every other number to zero."""
    return bytes(1 << row if number == colour else 0 for number in range(256))
