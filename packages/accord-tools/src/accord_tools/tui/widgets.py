"""The base of the chat's widgets: `Lines`, a few paragraphs; `Redrawn`; and `Debounce`, a delayed call.

**Lost redraws** (`Redrawn`). Content that is laid out or painted while widgets are mounted in a batch counts as drawn,
but never reaches the terminal; and changes meanwhile are drawn at the next event after the batch, which may not come
while nobody types.

**Lost timers** (`Debounce`). Textual's `set_timer` is not used for this: if the machine pauses the process for longer
than the timer's delay just as it starts, it counts its only call as missed and never makes it, so that its result never
appears.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Self

from textual.geometry import Region, Size
from textual.message_pump import MessagePump
from textual.strip import Strip
from textual.widget import Widget

from accord_tools.presentation.styled_text import Paragraph, Row
from accord_tools.tui.palette import Palette, all_rows


class Debounce:
    """A delayed call, in an iteration of a widget or the application."""

    def __init__(self, owner: MessagePump, call: Callable[[], object]) -> None:
        self._owner = owner
        self._call = call
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, seconds: float) -> None:
        """Schedule the call in this many seconds; does nothing if it is already scheduled."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._owner.call_later, self._run)

    def cancel(self) -> None:
        """Cancel the call, if it is scheduled."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        if self._timer is not None:  # it was not cancelled since
            self._timer = None
            self._call()


TIMES = 2
"""How often a change is drawn again: the first time may be lost in the same batch."""


class Redrawn(Widget):
    """A widget that `draw_again` draws again, if it has changed lately."""

    _repeats_left = 0

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        self._repeats_left = TIMES
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def draw_again(self) -> None:
        """Draw it again; does nothing if it was drawn often enough since its last change."""
        if self._repeats_left:
            self._repeats_left -= 1
            super().refresh()


class Lines(Redrawn):
    """Paragraphs, drawn line by line; hidden while it has none."""

    DEFAULT_CSS = """
    Lines { height: auto; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.palette = Palette({})
        self._paragraphs: Sequence[Paragraph] = ()
        self._drawn: tuple[int, list[Strip]] | None = None

    def show(self, paragraphs: Sequence[Paragraph]) -> None:
        """Show these paragraphs; does nothing if they are the same."""
        if paragraphs == self._paragraphs:
            return
        before = len(self._strips(self.size.width)) if self.size.width else -1
        self._paragraphs = paragraphs
        self._drawn = None
        self.display = bool(paragraphs)
        if self.display:
            is_same_height = self.size.width and len(self._strips(self.size.width)) == before
            self.refresh(layout=not is_same_height)

    def show_row(self, row: Row | None) -> None:
        """Show one row."""
        self.show([] if row is None else [Paragraph(row, wrap="cut")])

    def use(self, palette: Palette) -> None:
        """Draw with this palette."""
        self.palette, self._drawn = palette, None
        self.refresh()

    def _strips(self, width: int) -> list[Strip]:
        if self._drawn is None or self._drawn[0] != width:
            rows = all_rows(self._paragraphs, max(1, width))
            self._drawn = (width, self.palette.strips(rows, max(1, width)))
        return self._drawn[1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._strips(width))

    def render_line(self, y: int) -> Strip:
        strips = self._strips(self.size.width)
        return strips[y] if y < len(strips) else Strip.blank(self.size.width, self.palette.base)

    @property
    def text(self) -> str:
        """The shown text, without colours."""
        return "\n".join(paragraph.text for paragraph in self._paragraphs)
