"""`ReaderScreen`: a text over the whole screen, drawn line by line; `WireScreen`: messages on the wire."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip

from accord import TraceEvent
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame, ResponseFrame
from accord.printable import label
from accord.redaction import masked
from accord_tools.presentation.highlight import highlighted_line
from accord_tools.presentation.markdown import markdown
from accord_tools.presentation.styled_text import Paragraph, Row, plain
from accord_tools.tui.block import Look
from accord_tools.tui.connection import AgentConnection
from accord_tools.tui.palette import Palette, all_rows, palette_of
from accord_tools.tui.questions import Question
from accord_tools.tui.widgets import Lines


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
        """Draw everything in its present state."""
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
        """The drawn text, without colours."""
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
        """Return a screen with all of a question's details."""

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


LONGEST = 20_000
"""Characters of a message that are shown."""


class WireScreen(ReaderScreen):
    """Shows the latest messages, the newest last. Enter or a click opens the one at the top of the screen."""

    BINDINGS: ClassVar[list[Any]] = [
        ("escape,q", "dismiss", "Close"),
        ("enter", "open", "Open the message"),
        ("r", "again", "Look again"),
    ]

    def __init__(self, connection: AgentConnection) -> None:
        self._connection = connection
        self._events: list[TraceEvent] = []
        self._open: set[int] = set()
        super().__init__("Messages on the wire; r looks again, a click opens one", self._lines)

    def on_mount(self) -> None:
        super().on_mount()
        self.call_after_refresh(self.query_one(Page).scroll_end, animate=False)

    def _lines(self, _: Look) -> Sequence[Paragraph]:
        self._events = list(self._connection.frames)
        return [_line(event, is_open=number in self._open) for number, event in enumerate(self._events)]

    def action_again(self) -> None:
        """Read the messages again."""
        self.query_one(Page).draw()

    def action_open(self) -> None:
        """Open the message at the top of the screen."""
        self._toggle(self.query_one(Page).paragraph_at(round(self.query_one(Page).scroll_y)))

    def on_click(self, event: Any) -> None:
        page = self.query_one(Page)
        if event.widget is page:
            self._toggle(page.paragraph_at(event.y + round(page.scroll_y)))

    def _toggle(self, number: int) -> None:
        self._open ^= {number}
        self.query_one(Page).draw()


def _line(event: TraceEvent, *, is_open: bool) -> Paragraph:
    frame = event.frame or b""
    arrow = "◀ " if event.direction == "in" else "▶ "
    first: Row = ((f" {arrow}", "accent" if event.direction == "in" else "good"),)
    size = (f"  {len(frame):,} bytes", "dim")
    shown = (masked(frame) or frame)[:LONGEST].decode("utf-8", "replace")
    if not is_open:
        return Paragraph([(_event_label(event), "bold"), size, (f"  {label(shown, 400)}", "dim")], first, first, "cut")
    try:
        text = json.dumps(json.loads(shown), ensure_ascii=False)
    except ValueError:
        text = shown
    line = plain(text)[0].text if text else ""
    return Paragraph(
        [(_event_label(event), "bold"), size, ("  ", ""), *highlighted_line(line, "json")], first, (("   ", ""),)
    )


def _event_label(event: TraceEvent) -> str:
    match event.message:
        case RequestFrame(method=method) | NotificationFrame(method=method):
            return label(method, 60)
        case ResponseFrame(id=its_id):
            return f"answer {label(str(its_id), 30)}"
        case _:
            return "malformed"
