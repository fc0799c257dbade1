"""Content that is not text: in words, and images as half blocks, which every terminal with colours shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from accord.placeholders import from_base64, placeholder
from accord.schema import v1
from accord.tui.block import Look
from accord.tui.png import Bitmap, decoded
from accord.tui.rows import Paragraph, rows_of

MOST_BYTES = 8 * 1024 * 1024
COLUMNS, ROWS = 60, 16
"""The largest size of an image in the transcript."""


@dataclass(frozen=True)
class Picture:
    """An image or another block as it is drawn."""

    block: object

    @classmethod
    def of(cls, block: object) -> Picture:
        return cls(block)

    def strips(self, look: Look) -> list[Strip]:
        """The image in half blocks, after a line of words; the words alone where it cannot be drawn."""
        words = Paragraph([(placeholder(self.block), "dim")], ((" ", ""),), ((" ", ""),))
        shown = look.palette.strips([(row, "") for row in rows_of(words, look.width)], look.width)
        if isinstance(self.block, v1.ImageContent) and look.palette.is_coloured and not look.is_ascii:
            bitmap = _bitmap(self.block.data)
            if bitmap is not None:
                shown += half_blocks(bitmap, min(COLUMNS, look.width - 2), ROWS, look)
        return shown


def half_blocks(bitmap: Bitmap, columns: int, rows: int, look: Look) -> list[Strip]:
    """An image as cells, each with an upper and a lower pixel."""
    wide, high = bitmap.width, bitmap.height
    scale = max(wide / columns, high / (2 * rows), 1.0)
    across, down = max(1, int(wide / scale)), max(1, int(high / scale))
    strips: list[Strip] = []
    margin = Segment(" ", look.palette.base)
    for y in range(0, down, 2):
        segments = [margin]
        for x in range(across):
            upper = bitmap.pixel(int((x + 0.5) * scale), int((y + 0.5) * scale))
            lower = bitmap.pixel(int((x + 0.5) * scale), int((min(y + 1, down - 1) + 0.5) * scale))
            segments.append(Segment("▀", _cell(upper, lower)))
        segments.append(Segment(" " * max(0, look.width - across - 1), look.palette.base))
        strips.append(Strip(segments, max(look.width, across + 1)).simplify())
    return strips


@lru_cache(maxsize=4096)
def _cell(upper: Sequence[int], lower: Sequence[int]) -> Style:
    return Style.from_color(Color.from_rgb(*upper[:3]), Color.from_rgb(*lower[:3]))


@lru_cache(maxsize=8)
def _bitmap(data: str) -> Bitmap | None:
    content = from_base64(data) if len(data) <= MOST_BYTES else None
    return None if content is None else decoded(content)
