"""What a stream of a command can show, judged by the environment alone: colours, symbols, pictures, a line that moves.

A terminal is never asked what it can do: its answer would come as if the user had typed it, and a simple terminal
prints the question. What the environment does not promise is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from accord_tools.presentation.styled_text import Row

Style: TypeAlias = Literal["plain", "dim", "bold", "good", "bad", "warning", "accent"]
"""How a text of a command is meant; which colour that is, if any, is decided here."""

Pictures: TypeAlias = Literal["kitty", "iterm2"]
"""A protocol by which a terminal shows images."""

_CODES = {
    "dim": "2",
    "bold": "1",
    "good": "32",
    "bad": "31",
    "warning": "33",
    "accent": "36",
}
_RESET = "\x1b[0m"


class Symbols(NamedTuple):
    """The signs before lines."""

    done: str
    failed: str
    cancelled: str
    running: str
    to_do: str
    note: str
    frames: str
    """The pictures of the spinner."""
    between: str


FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""The pictures of a spinner."""
UNICODE = Symbols("✓", "✗", "⊘", "▸", "○", "•", FRAMES, " · ")
ASCII = Symbols("+", "x", "-", ">", "o", "*", "|/-\\", ", ")


class Appearance(NamedTuple):
    """What one stream can show."""

    is_terminal: bool
    colours: bool = False
    moves: bool = False
    """Whether a line can be drawn again in its place, for a spinner."""
    symbols: Symbols = ASCII
    pictures: Pictures | None = None

    def row(self, row: Row) -> str:
        """A row of styled text, in the colours that the stream shows."""
        return "".join(self.painted(style, text) for text, style in row)

    def painted(self, style: str, text: str) -> str:
        """The text in this style, if the stream shows colours."""
        code = _CODES.get(style) if self.colours and text else None
        return text if code is None else f"\x1b[{code}m{text}{_RESET}"


def appearance(environment: Mapping[str, str], encoding: str, *, is_terminal: bool) -> Appearance:
    """What a stream with this encoding can show.

    >>> appearance({"TERM": "xterm-256color", "NO_COLOR": "1"}, "utf-8", is_terminal=True).colours
    False
    >>> appearance({"FORCE_COLOR": "1"}, "utf-8", is_terminal=False).colours
    True
    """
    term = environment.get("TERM", "dumb" if is_terminal else "")
    is_able = is_terminal and term not in ("", "dumb", "unknown")
    symbols = UNICODE if encoding.lower().replace("-", "").startswith("utf") and term != "linux" else ASCII
    return Appearance(
        is_terminal,
        colours=_colours(environment, is_able),
        moves=is_able,
        symbols=symbols,
        pictures=_pictures(environment, term) if is_able else None,
    )


def _colours(environment: Mapping[str, str], is_able: bool) -> bool:
    if environment.get("NO_COLOR"):
        return False
    forced = environment.get("FORCE_COLOR")
    return forced != "0" if forced else is_able


def _pictures(environment: Mapping[str, str], term: str) -> Pictures | None:
    """The protocol of a terminal that names itself. Inside tmux and screen the name is that of the terminal around."""
    if environment.get("TMUX") or environment.get("STY") or term.startswith(("tmux", "screen")):
        return None
    program = environment.get("TERM_PROGRAM", "")
    if term in ("xterm-kitty", "xterm-ghostty") or environment.get("KITTY_WINDOW_ID") or program == "ghostty":
        return "kitty"
    if program in ("iTerm.app", "WezTerm") or environment.get("LC_TERMINAL") == "iTerm2":
        return "iterm2"
    return None
