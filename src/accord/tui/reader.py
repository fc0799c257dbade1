"""`ReaderScreen`: a text over the whole screen, drawn line by line: help, whole diffs, messages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip

from accord.presentation.styled_text import Paragraph
from accord.tui.block import Look
from accord.tui.line_widget import Lines
from accord.tui.markdown import markdown
from accord.tui.palette import Palette, all_rows, palette_of
from accord.tui.questions import Question


class Page(ScrollView, can_focus=True):
    """Paragraphs that may be longer than the screen."""

    DEFAULT_CSS = """
    Page { overflow-y: scroll; overflow-x: hidden; scrollbar-size-vertical: 1; height: 1fr; padding: 0; }
    """

    def __init__(self, made: Callable[[Look], Sequence[Paragraph]]) -> None:
        super().__init__()
        self._made = made
        self._palette = Palette({})
        self._strips: list[Strip] = []
        self.starts: list[int] = []
        """The first row of each paragraph."""

    def on_resize(self, _: events.Resize) -> None:
        self.draw()

    def draw(self) -> None:
        """Draw everything, as it is now."""
        width = max(10, self.scrollable_content_region.width)
        palette = self._palette = palette_of(self)
        self._strips, self.starts = [], []
        for paragraph in self._made(Look(palette, width, tools_open=True)):
            self.starts.append(len(self._strips))
            self._strips += palette.strips(all_rows([paragraph], width), width)
        self.virtual_size = Size(width, len(self._strips))
        self.refresh()

    def paragraph_at(self, row: int) -> int:
        """The number of the paragraph in this row."""
        return max(0, bisect_right(self.starts, row) - 1)

    def render_line(self, y: int) -> Strip:
        row = y + round(self.scroll_y)
        if row < len(self._strips):
            return self._strips[row]
        return Strip.blank(self.size.width, self._palette.base)

    @property
    def text(self) -> str:
        """What is drawn, without colours."""
        return "\n".join(strip.text.rstrip() for strip in self._strips)


class ReaderScreen(ModalScreen[None]):
    """Shows a text until the user closes it."""

    DEFAULT_CSS = """
    ReaderScreen { background: $background; }
    ReaderScreen > Lines { height: 1; }
    """
    BINDINGS: ClassVar[list[Any]] = [("escape,q,enter", "dismiss", "Close")]

    def __init__(self, title: str, text: str | Callable[[Look], Sequence[Paragraph]]) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def _made(self, look: Look) -> Sequence[Paragraph]:
        return markdown(self._text) if isinstance(self._text, str) else self._text(look)

    @classmethod
    def of_question(cls, question: Question, folder: str) -> ReaderScreen:
        """All of what a question is about."""

        def made(look: Look) -> list[Paragraph]:
            look.folder = folder
            return question.paragraphs(look, most=None)

        return cls(question.title, made)

    def compose(self) -> ComposeResult:
        yield Lines(id="reader-top")
        yield Page(self._made)

    def on_mount(self) -> None:
        palette = palette_of(self)
        top = self.query_one(Lines)
        top.use(palette)
        top.show_row(((f" {self._title}", "bold accent"), ("   esc closes, arrows and page keys scroll", "dim")))
        self.query_one(Page).focus()
