"""The wire pane: the latest messages between the chat and an agent, one line each, and each as a whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from accord.jsonrpc.messages import Answer, Call, Tell
from accord.presentation.styled_text import Paragraph, Row, plain
from accord.printable import label
from accord.redaction import masked
from accord.trace import TraceEvent
from accord.tui.block import Look
from accord.tui.connection import AgentConnection
from accord.tui.highlight import highlighted_line
from accord.tui.reader import Page, ReaderScreen

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

    def _lines(self, look: Look) -> Sequence[Paragraph]:
        self._events = list(self._connection.frames)
        return [_line(event, look, is_open=number in self._open) for number, event in enumerate(self._events)]

    def action_again(self) -> None:
        """Look at the messages again."""
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


def _line(event: TraceEvent, look: Look, *, is_open: bool) -> Paragraph:
    frame = event.frame or b""
    arrow = ("◀ " if event.direction == "in" else "▶ ") if not look.is_ascii else f"{event.direction} "
    first: Row = ((f" {arrow}", "accent" if event.direction == "in" else "good"),)
    size = (f"  {len(frame):,} bytes", "dim")
    shown = (masked(frame) or frame)[:LONGEST].decode("utf-8", "replace")
    if not is_open:
        return Paragraph([(_what(event), "bold"), size, (f"  {label(shown, 400)}", "dim")], first, first, "cut")
    try:
        text = json.dumps(json.loads(shown), ensure_ascii=False)
    except ValueError:
        text = shown
    line = plain(text)[0].text if text else ""
    return Paragraph([(_what(event), "bold"), size, ("  ", ""), *highlighted_line(line, "json")], first, (("   ", ""),))


def _what(event: TraceEvent) -> str:
    match event.message:
        case Call(method=method) | Tell(method=method):
            return label(method, 60)
        case Answer(id=its_id):
            return f"answer {label(str(its_id), 30)}"
        case _:
            return "malformed"
