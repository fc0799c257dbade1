"""Content that is not text: in words, and images below the words, as the terminal shows them.

Every terminal with colours shows half blocks: two pixels in a character. Where the terminal has a protocol for images,
each row of the image is drawn over its half blocks, as a part of the row. So scrolling and covering need no care: a
row that is painted shows its part of the image, and painting something else in its place removes it.

    row of half blocks + "back to its start" + a strip of the image (Sixel, iTerm2) or placeholders (kitty)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from accord.pictures.asking import Graphics
from accord.pictures.png import Bitmap, decoded, encoded
from accord.pictures.protocols import fitted, iterm2, kitty, kitty_row
from accord.pictures.sixel import SixelImage
from accord.placeholders import from_base64, placeholder
from accord.schema import v1
from accord.tui.block import Look
from accord.tui.picture_strip import Overlay, PictureStrip
from accord.tui.rows import Paragraph, rows_of

MOST_BYTES = 8 * 1024 * 1024
COLUMNS, ROWS = 60, 16
"""The largest size of an image in the transcript."""
LARGEST_CELL = 64
"""Pixels of a side of a character; a terminal that says more is not believed."""


@dataclass(frozen=True)
class Picture:
    """An image or another block as it is drawn."""

    block: object

    @classmethod
    def of(cls, block: object) -> Picture:
        return cls(block)

    def strips(self, look: Look) -> list[Strip]:
        """A line of words, and the image below it where it can be drawn."""
        image = self.block if isinstance(self.block, v1.ImageContent) else None
        is_able = image is not None and look.palette.is_coloured and not look.is_ascii
        bitmap = _bitmap(image.data) if image is not None and is_able else None
        words = placeholder(self.block)
        if is_able and bitmap is None:
            words += "  not drawn: only PNG is, up to 8 MB and 4 million pixels"
        line = Paragraph([(words, "dim")], ((" ", ""),), ((" ", ""),))
        shown = look.palette.strips([(row, "") for row in rows_of(line, look.width)], look.width)
        if bitmap is not None and image is not None:
            shown += _image(image.data, bitmap, look)
        return shown


def _image(data: str, bitmap: Bitmap, look: Look) -> list[Strip]:
    most = min(COLUMNS, look.width - 2)
    if look.graphics.protocol is None:
        scale = max(bitmap.width / most, bitmap.height / (2 * ROWS), 1.0)
        wide, high = max(1, int(bitmap.width / scale)), max(1, (int(bitmap.height / scale) + 1) // 2)
        return half_blocks(bitmap, wide, high, look)
    wide, high = fitted((bitmap.width, bitmap.height), most, ROWS, look.graphics.cell)
    sequences = _sequences(data, look.graphics, wide, high)
    return [
        PictureStrip(strip, strip.cell_length, Overlay(1, 1 + wide, sequence))
        for strip, sequence in zip(half_blocks(bitmap, wide, high, look), sequences, strict=True)
    ]


def half_blocks(bitmap: Bitmap, wide: int, high: int, look: Look) -> list[Strip]:
    """An image as cells, each with an upper and a lower pixel."""
    rows = bitmap.scaled(wide, 2 * high)
    strips: list[Strip] = []
    margin = Segment(" ", look.palette.base)
    rest = Segment(" " * max(0, look.width - wide - 1), look.palette.base)
    for upper, lower in zip(rows[0::2], rows[1::2], strict=True):
        cells = [Segment("▀", _cell(upper[it : it + 3], lower[it : it + 3])) for it in range(0, 3 * wide, 3)]
        strips.append(Strip([margin, *cells, rest], max(look.width, wide + 1)).simplify())
    return strips


@lru_cache(maxsize=4096)
def _cell(upper: bytes, lower: bytes) -> Style:
    return Style.from_color(Color.from_rgb(*upper), Color.from_rgb(*lower))


@lru_cache(maxsize=8)
def _bitmap(data: str) -> Bitmap | None:
    content = from_base64(data) if len(data) <= MOST_BYTES else None
    return None if content is None else decoded(content)


@lru_cache(maxsize=16)
def _sequences(data: str, graphics: Graphics, wide: int, high: int) -> list[Callable[[], str]]:
    """For each row of cells what draws its part of the image."""
    if graphics.protocol == "kitty":
        return _placeholders(from_base64(data) or b"", wide, high)
    bitmap = _bitmap(data)
    assert bitmap is not None
    width, height = (min(side, LARGEST_CELL) for side in graphics.cell)
    rows = bitmap.scaled(wide * width, high * height)
    parts = [(number * height, (number + 1) * height) for number in range(high)]
    if graphics.protocol == "sixel":
        image = SixelImage(rows)
        texts = [image.slice(start, end) for start, end in parts]
    else:
        texts = [iterm2(encoded(rows[start:end]), wide, 1, keeps_ratio=False) for start, end in parts]
    return [text.__str__ for text in texts]


_kitty_ids = cycle(range(1, 256))


def forget_sent_images() -> None:
    """Send images again when they are next drawn: a terminal that was used by another program may have lost them."""
    _sequences.cache_clear()


def _placeholders(png: bytes, wide: int, high: int) -> list[Callable[[], str]]:
    """The first row that is painted brings the image itself; the terminal keeps it."""
    image_id = next(_kitty_ids)
    is_sent = False

    def row(number: int) -> Callable[[], str]:
        def text() -> str:
            nonlocal is_sent
            before = "" if is_sent else kitty(png, wide, high, image_id=image_id)
            is_sent = True
            return before + kitty_row(image_id, number, wide)

        return text

    return [row(number) for number in range(high)]
