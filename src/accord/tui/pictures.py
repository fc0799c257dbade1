"""Content that is not text: in words, and images as half blocks, which every terminal with colours shows."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from accord.printable import label
from accord.schema import v1
from accord.tui.block import Look
from accord.tui.png import Bitmap, decoded, size_of
from accord.tui.rows import Paragraph, rows_of

MOST_BYTES = 8 * 1024 * 1024
COLUMNS, ROWS = 60, 16
"""The largest size of an image in the transcript."""


def described(block: v1.ContentBlock | object) -> str:
    """What a block that is not text holds, in words."""
    match block:
        case v1.ImageContent(data=data, mime_type=kind):
            size = size_of(_bytes(data[:64]) or b"")
            pixels = "" if size is None else f", {size[0]} x {size[1]}"
            return f"[image: {label(kind, 40)}{pixels}, {_length(data):,} bytes]"
        case v1.AudioContent(data=data, mime_type=kind):
            return f"[audio: {label(kind, 40)}, {_length(data):,} bytes]"
        case v1.ResourceLink(name=name, uri=uri):
            return f"[link: {label(name, 60)} {label(uri, 200)}]"
        case v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=text)):
            return f"[file: {label(uri, 200)}, {len(text):,} characters]"
        case v1.EmbeddedResource(resource=v1.BlobResourceContents(uri=uri, blob=blob)):
            return f"[file: {label(uri, 200)}, {_length(blob):,} bytes]"
        case _:
            return "[content of an unknown type]"


@dataclass(frozen=True)
class Picture:
    """An image or another block as it is drawn."""

    block: object

    @classmethod
    def of(cls, block: object) -> Picture:
        return cls(block)

    def strips(self, look: Look) -> list[Strip]:
        """The image in half blocks, after a line of words; the words alone where it cannot be drawn."""
        words = Paragraph([(described(self.block), "dim")], ((" ", ""),), ((" ", ""),))
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
    content = _bytes(data) if len(data) <= MOST_BYTES else None
    return None if content is None else decoded(content)


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _length(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")
