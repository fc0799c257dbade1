"""Images in a terminal, by the terminal's own protocol. PURE.

An image comes from an agent and goes into an escape sequence. So its base64 is decoded and encoded again, its type is
read from its own first bytes, and a size that would fill the screen or the terminal's memory gets the placeholder.
"""

from __future__ import annotations

import base64
import math

from accord.cli.appearance import Pictures
from accord.placeholders import from_base64, png_size
from accord.schema import v1

MOST_BYTES = 4 * 1024 * 1024
MOST_PIXELS = 4096
"""Of each side."""
CELL = 10, 20
"""Pixels of a character, roughly: terminals differ, and are not asked."""
ROWS = 20
"""Rows that an image may take."""
CHUNK = 4096
"""Characters of base64 in one sequence of the kitty protocol, which allows no more."""


def drawn(image: v1.ImageContent, protocol: Pictures, columns: int) -> str | None:
    """The sequence that shows an image in at most so many columns; None if only the placeholder will do.

    Only PNG is drawn: its size can be read without decoding it.
    """
    data = from_base64(image.data) if len(image.data) <= MOST_BYTES else None
    size = None if data is None else png_size(data)
    if data is None or size is None or not 0 < max(size) <= MOST_PIXELS or min(size) == 0:
        return None
    wide = min(columns, math.ceil(size.width / CELL[0]))
    high = math.ceil(size.height * wide * CELL[0] / size.width / CELL[1]) if size.width > wide * CELL[0] else None
    high = math.ceil(size.height / CELL[1]) if high is None else high
    if high > ROWS:
        wide, high = max(1, wide * ROWS // high), ROWS
    text = base64.b64encode(data).decode()
    return _kitty(text, wide, high) if protocol == "kitty" else _iterm2(text, len(data), wide, high)


def _kitty(text: str, wide: int, high: int) -> str:
    """`q=2`: the terminal must not answer, because its answer would look like the user's typing."""
    chunks = [text[place : place + CHUNK] for place in range(0, len(text), CHUNK)]
    sequences: list[str] = []
    for number, chunk in enumerate(chunks):
        keys = f"a=T,f=100,q=2,c={wide},r={high}," if number == 0 else ""
        sequences.append(f"\x1b_G{keys}m={int(number < len(chunks) - 1)};{chunk}\x1b\\")
    return "".join(sequences)


def _iterm2(text: str, size: int, wide: int, high: int) -> str:
    keys = f"inline=1;size={size};width={wide};height={high};preserveAspectRatio=1"
    return f"\x1b]1337;File={keys}:{text}\x07"
