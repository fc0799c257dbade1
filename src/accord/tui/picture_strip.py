"""`PictureStrip`: a row of the transcript with a part of an image over some of its cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from rich.segment import Segment
from textual.strip import Strip


class Overlay(NamedTuple):
    """What is drawn over some cells of a row."""

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
        """The cells, then the image over them; the cursor ends where the cells end."""
        back = self.cell_length - self.overlay.start
        return f"{super().render(console)}\x1b7\x1b[{back}D{self.overlay.sequence()}\x1b8"

    def crop(self, start: int, end: int | None = None) -> Strip:
        """Some of the cells, with the image if it is whole."""
        return self._kept(super().crop(start, end), start)

    def divide(self, cuts: Iterable[int]) -> Sequence[Strip]:
        """The parts between cuts; the image stays with a part that has all of it."""
        parts: list[Strip] = []
        start = 0
        for part in super().divide(cuts):
            parts.append(self._kept(part, start))
            start += part.cell_length
        return parts

    def over(self, strip: Strip) -> PictureStrip:
        """The same image over other cells."""
        return PictureStrip(strip, strip.cell_length, self.overlay)

    def _kept(self, part: Strip, start: int) -> Strip:
        overlay = self.overlay
        if part is self or start > overlay.start or overlay.end > start + part.cell_length:
            return part
        return PictureStrip(
            part, part.cell_length, Overlay(overlay.start - start, overlay.end - start, overlay.sequence)
        )
