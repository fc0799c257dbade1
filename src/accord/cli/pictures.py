"""Images in the output of a command, by the terminal's own protocol. PURE.

Only PNG is drawn: its size can be read without decoding it. An image that would fill the screen or the terminal's
memory gets the placeholder.
"""

from __future__ import annotations

from accord.cli.appearance import Pictures
from accord.pictures.protocols import Cell, fitted, iterm2, kitty
from accord.schema import v1
from accord.state.placeholders import from_base64, png_size

MOST_BYTES = 4 * 1024 * 1024
MOST_PIXELS = 4096
"""Of each side."""
CELL = Cell()
"""Pixels of a character, roughly: terminals differ, and a command does not ask them."""
ROWS = 20
"""Rows that an image may take."""


def drawn(image: v1.ImageContent, protocol: Pictures, columns: int) -> str | None:
    """The sequence that shows an image in at most so many columns; None if only the placeholder will do."""
    data = from_base64(image.data) if len(image.data) <= MOST_BYTES else None
    size = None if data is None else png_size(data)
    if data is None or size is None or not 0 < max(size) <= MOST_PIXELS or min(size) == 0:
        return None
    wide, high = fitted(size, columns, ROWS, CELL)
    return kitty(data, wide, high) if protocol == "kitty" else iterm2(data, wide, high)
