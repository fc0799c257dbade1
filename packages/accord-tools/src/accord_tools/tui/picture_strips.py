"""Content that is not text: in words, and images below the words, in the terminal's protocol.

Decoding takes up to a second, and an agent chooses the images. So a thread draws them, one at a time; until then a
block shows only the words, and is drawn again once the image is ready.

Every terminal with colours shows half blocks: two pixels in a character. If the terminal has a protocol for images,
each row of the image is drawn over its half blocks, as a part of the row. So scrolling and covering need no special
handling: a row that is painted shows its part of the image, and painting something else in its place removes it.

    row of half blocks + "back to its start" + a strip of the image (Sixel, iTerm2) or placeholders (kitty)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from accord import v1
from accord.session.placeholders import from_base64, placeholder
from accord_tools.pictures.terminal_graphics import (
    MOST_BYTES,
    NO_GRAPHICS,
    CellSize,
    Graphics,
    fitted,
    iterm2,
    kitty,
    kitty_row,
)
from accord_tools.presentation.styled_text import Paragraph
from accord_tools.tui.palette import Palette, rows_of

if TYPE_CHECKING:
    from PIL.Image import Image


class Overlay(NamedTuple):
    """A sequence that is drawn over some cells of a row."""

    start: int
    end: int
    """The columns."""
    sequence: Callable[[], str]


class PictureStrip(Strip):
    """A row with a part of an image over some of its cells."""

    def __init__(self, segments: Iterable[Segment], cell_length: int, overlay: Overlay) -> None:
        super().__init__(segments, cell_length)
        self.overlay = overlay

    def render(self, console: Any) -> str:
        """Return the cells, then the image over them; the cursor ends where the cells end."""
        back = self.cell_length - self.overlay.start
        return f"{super().render(console)}\x1b7\x1b[{back}D{self.overlay.sequence()}\x1b8"

    def crop(self, start: int, end: int | None = None) -> Strip:
        """Return some of the cells, with the image if it is whole."""
        return self._with_pictures(super().crop(start, end), start)

    def divide(self, cuts: Iterable[int]) -> Sequence[Strip]:
        """Return the parts between cuts; the image stays with a part that has all of it."""
        parts: list[Strip] = []
        start = 0
        for part in super().divide(cuts):
            parts.append(self._with_pictures(part, start))
            start += part.cell_length
        return parts

    def over(self, strip: Strip) -> PictureStrip:
        """The same image over other cells."""
        return PictureStrip(strip, strip.cell_length, self.overlay)

    def _with_pictures(self, part: Strip, start: int) -> Strip:
        overlay = self.overlay
        if part is self or start > overlay.start or overlay.end > start + part.cell_length:
            return part
        return PictureStrip(
            part, part.cell_length, Overlay(overlay.start - start, overlay.end - start, overlay.sequence)
        )


COLUMNS, ROWS = 60, 16
"""The largest size of an image in the transcript."""
LARGEST_CELL = 64
"""Pixels of a side of a character; larger values from a terminal are ignored."""
MOST = 128
"""Images that are drawn or waiting, more than a screen has rows; those that were seen longest ago are dropped."""
MOST_BASE64 = MOST_BYTES * 4 // 3 + 4
"""Characters of the largest image; a longer text is not even compared with others."""
MOST_IN_A_BLOCK = 20
"""Images of one message or tool call that are shown."""


class _Drawing(NamedTuple):
    """An image that is drawn in a thread."""

    task: asyncio.Task[list[Strip] | str]
    """Returns the strips, or why there are none."""
    waiting: list[Callable[[], object]]
    """The functions that are called at its end."""


class Pictures:
    """The images of one transcript."""

    def __init__(self, graphics: Graphics = NO_GRAPHICS, redraw: Callable[[], object] = lambda: None) -> None:
        """`redraw` is called when an image is ready, after the block that shows it was notified."""
        self._graphics = graphics
        self._redraw = redraw
        self._drawings: dict[tuple[str, int, Palette], _Drawing] = {}
        self._thread = asyncio.Lock()
        """Held by the image that is being drawn: one at a time, so that a flood of images takes one core at most."""

    def strips(
        self, blocks: Sequence[object], width: int, palette: Palette, changed: Callable[[], object], *, is_ascii: bool
    ) -> list[Strip]:
        """Return for each block a line of words, and the image below it. `changed` is called when there is more to
        show.
        """
        shown: list[Strip] = []
        for block in blocks[:MOST_IN_A_BLOCK]:
            words, image = placeholder(block), list[Strip]()
            if isinstance(block, v1.ImageContent) and palette.is_coloured and not is_ascii:
                drawn = self._drawn(block.data, width, palette, changed)
                words += f"  {drawn}" if isinstance(drawn, str) else ""
                image = [] if isinstance(drawn, str) else drawn
            shown += _line(words, width, palette) + image
        if (more := len(blocks) - MOST_IN_A_BLOCK) > 0:
            shown += _line(f"… {more:,} more images and files", width, palette)
        return shown

    def _drawn(self, data: str, width: int, palette: Palette, changed: Callable[[], object]) -> list[Strip] | str:
        if len(data) > MOST_BASE64:
            return f"not drawn: larger than {MOST_BYTES // 1024**2} MB"
        key = data, width, palette
        drawing = self._drawings.pop(key, None)
        if drawing is None:
            drawing = _Drawing(asyncio.create_task(self._draw(key)), [])
            drawing.task.add_done_callback(lambda _: self._done(drawing.waiting))
        self._drawings[key] = drawing  # the latest stands last
        if len(self._drawings) > MOST:
            del self._drawings[next(iter(self._drawings))]
        if drawing.task.done():
            return drawing.task.result()
        drawing.waiting.append(changed)
        return "drawing…"

    def _done(self, waiting: Sequence[Callable[[], object]]) -> None:
        for changed in waiting:
            changed()
        self._redraw()

    async def _draw(self, key: tuple[str, int, Palette]) -> list[Strip] | str:
        async with self._thread:
            if key not in self._drawings:
                return "drawing…"  # forgotten meanwhile; a block that is in sight asks again
            return await asyncio.to_thread(_strips, *key, self._graphics)

    def clear(self) -> None:
        """Draw and send images again: a terminal that was used by another program may have lost them."""
        self._drawings.clear()


def _line(words: str, width: int, palette: Palette) -> list[Strip]:
    line = Paragraph([(words, "dim")], ((" ", ""),), ((" ", ""),))
    return palette.strips([(row, "") for row in rows_of(line, width)], width)


def _strips(data: str, width: int, palette: Palette, graphics: Graphics) -> list[Strip] | str:
    """An image as the terminal shows it, or why it is not drawn. Runs in a thread."""
    try:
        from accord_tools.pictures.image import NotDrawable, decoded, resized
    except ImportError:
        return 'not drawn: install Pillow, pip install "accord[cli]"'
    most = max(1, min(COLUMNS, width - 2))
    cell = (
        CellSize(1, 2) if graphics.protocol is None else CellSize(*(min(LARGEST_CELL, side) for side in graphics.cell))
    )
    try:
        image = decoded(from_base64(data) or b"", (most * cell.width, ROWS * cell.height))
    except NotDrawable as error:
        return f"not drawn: {error}"
    wide, high = fitted(image.size, most, ROWS, cell)
    if graphics.protocol is None:
        return half_blocks(image, wide, high, width, palette)
    rows = _sequences(resized(image, wide * cell.width, high * cell.height), graphics, wide, high)
    return [
        PictureStrip(strip, strip.cell_length, Overlay(1, 1 + wide, sequence))
        for strip, sequence in zip(half_blocks(image, wide, high, width, palette), rows, strict=True)
    ]


def half_blocks(image: Image, wide: int, high: int, width: int, palette: Palette) -> list[Strip]:
    """An image as cells, each with an upper and a lower pixel."""
    from accord_tools.pictures.image import resized

    pixels = resized(image, wide, 2 * high).tobytes()
    rows = [pixels[place : place + 3 * wide] for place in range(0, len(pixels), 3 * wide)]
    strips: list[Strip] = []
    margin = Segment(" ", palette.base)
    rest = Segment(" " * max(0, width - wide - 1), palette.base)
    for upper, lower in zip(rows[0::2], rows[1::2], strict=True):
        cells = [Segment("▀", _cell(upper[it : it + 3], lower[it : it + 3])) for it in range(0, 3 * wide, 3)]
        strips.append(Strip([margin, *cells, rest], max(width, wide + 1)).simplify())
    return strips


@lru_cache(maxsize=4096)
def _cell(upper: bytes, lower: bytes) -> Style:
    return Style.from_color(Color.from_rgb(*upper), Color.from_rgb(*lower))


def _sequences(image: Image, graphics: Graphics, wide: int, high: int) -> Iterator[Callable[[], str]]:
    """Return for each row of cells the sequence that draws its part of the image."""
    from accord_tools.pictures.image import SixelImage, png

    if graphics.protocol == "kitty":
        yield from _placeholders(png(image), wide, high)
        return
    height = image.height // high
    sixel = SixelImage(image) if graphics.protocol == "sixel" else None
    for start in range(0, image.height, height):
        if sixel is not None:
            text = sixel.slice(start, start + height)
        else:
            text = iterm2(png(image.crop((0, start, image.width, start + height))), wide, 1, keeps_ratio=False)
        yield text.__str__


_kitty_ids = cycle(range(1, 256))


def _placeholders(content: bytes, wide: int, high: int) -> list[Callable[[], str]]:
    """Return the placeholders; the first row that is painted sends the image itself, and the terminal stores it."""
    image_id = next(_kitty_ids)
    image = kitty(content, wide, high, image_id=image_id)

    def row(number: int) -> Callable[[], str]:
        def text() -> str:
            nonlocal image
            before, image = image, ""
            return before + kitty_row(image_id, number, wide)

        return text

    return [row(number) for number in range(high)]
