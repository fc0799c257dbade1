"""Small screens that ask for a line: a text to find, and the variables of a login, which are not shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from accord.printable import label
from accord.schema import v1

_CSS = """
    NAME { align: center middle; }
    NAME > Vertical { width: 80%; max-width: 90; height: auto; border: round $accent; background: $surface;
                      padding: 0 1; }
    NAME Input, NAME Input:focus { border: none; height: 1; background: $surface; padding: 0; }
    NAME .about { color: $text-muted; }
"""


class LineScreen(ModalScreen[str | None]):
    """Asks for one line."""

    DEFAULT_CSS = _CSS.replace("NAME", "LineScreen")
    BINDINGS: ClassVar[list[Any]] = [("escape", "leave", "Leave")]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(Text(self._title, "bold"))
            yield Input()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Leave without a text."""
        self.dismiss(None)


class VariablesScreen(ModalScreen[dict[str, str] | None]):
    """Asks for the variables of a login. They are used for this login, and kept nowhere."""

    DEFAULT_CSS = _CSS.replace("NAME", "VariablesScreen")
    BINDINGS: ClassVar[list[Any]] = [("escape", "leave", "Leave")]

    def __init__(self, method: v1.AuthMethodEnvVar, missing: Sequence[v1.AuthEnvVar]) -> None:
        super().__init__()
        self._method = method
        self._missing = list(missing)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(Text(label(self._method.name, 80), "bold"))
            if self._method.link:
                yield Static(Text(f"See {label(self._method.link, 300)}"), classes="about")
            for wanted in self._missing:
                yield Label(Text(label(wanted.label or wanted.name, 80)))
                yield Input(password=bool(wanted.secret))
            yield Static(Text("enter: next, then log in   esc: leave"), classes="about")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        inputs = list(self.query(Input))
        empty = next((it for it in inputs if not it.value), None)
        if empty is not None:
            empty.focus()
            return
        self.dismiss({wanted.name: it.value for wanted, it in zip(self._missing, inputs, strict=True)})

    def action_leave(self) -> None:
        """Leave without logging in."""
        self.dismiss(None)
