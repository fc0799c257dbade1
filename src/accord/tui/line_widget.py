"""`Lines`: a widget that shows a few paragraphs, and is as high as they are."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.strip import Strip

from accord.presentation.styled_text import Paragraph, Row
from accord.tui.palette import Palette, all_rows
from accord.tui.redrawn import Redrawn


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
        """What is shown, without colours."""
        return "\n".join(paragraph.text for paragraph in self._paragraphs)
