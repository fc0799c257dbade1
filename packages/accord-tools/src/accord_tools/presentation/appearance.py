"""The capabilities of a command's stream, judged by the environment alone: colours, symbols, pictures, a spinner.

The terminal is never queried: its answer would look like the user's input, and a simple terminal prints the query. Only
capabilities that the environment promises are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from accord_tools.presentation.styled_text import Row

Style: TypeAlias = Literal["plain", "dim", "bold", "good", "bad", "warning", "accent"]
"""The meaning of a styled text in a command's output."""

Pictures: TypeAlias = Literal["kitty", "iterm2"]
"""A protocol by which a terminal shows images."""

_CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "reverse": "7",
    "strike": "9",
    "good": "32",
    "bad": "31",
    "warning": "33",
    "accent": "36",
    "added": "32",
    "removed": "31",
    "word": "1",
}
"""The code of each style. Which colour a terminal shows for it is the user's choice."""
COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""The pictures of a spinner."""
ASCII_SIGNS = {
    **dict.fromkeys("─━═┄┈▔▁⎺⎻⎼⎽", "-"),
    **dict.fromkeys("│┃║▌▐▎▏▕┆┊", "|"),
    **dict.fromkeys("┌┐└┘╭╮╰╯├┤┬┴┼╔╗╚╝", "+"),
    **dict.fromkeys("▀▄█▊▋▅▆▇░▒▓", "#"),
    **dict.fromkeys("▸▶❯›", ">"),
    **dict.fromkeys("◀‹", "<"),
    **dict.fromkeys("●•◆·", "*"),
    "⊘": "-",
    **dict.fromkeys(FRAMES, "*"),
    "✓": "+",
    "✗": "x",
    "○": "o",
    "▾": "v",
    "…": ".",
    "⋯": ".",
    "±": "~",
    "↪": ">",
    "‖": "=",
    "\xa0": " ",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "–": "-",
    "—": "-",
    "←": "<",
    "→": ">",
    "×": "x",
}
"""The sign of ASCII that replaces a character, of the same width, on a terminal that does not use UTF-8."""
_TO_ASCII = str.maketrans(ASCII_SIGNS)


class Appearance(NamedTuple):
    """The colours and characters that one stream can show."""

    is_terminal: bool
    colours: bool = False
    moves: bool = False
    """Whether a line can be drawn again in its place, for a spinner."""
    is_ascii: bool = False
    """Whether the signs of lines are those of ASCII."""
    pictures: Pictures | None = None

    def row(self, row: Row) -> str:
        """A row of styled text, in the colours that the stream shows."""
        return "".join(self.painted(style, text) for text, style in row)

    def painted(self, style: str, text: str) -> str:
        """The text in the style of these names, if the stream shows colours."""
        text = text.translate(_TO_ASCII) if self.is_ascii and not text.isascii() else text
        codes = _codes(style) if self.colours and text else ""
        return f"\x1b[{codes}m{text}\x1b[0m" if codes else text

    @property
    def frames(self) -> str:
        """The pictures of a spinner."""
        return "|/-\\" if self.is_ascii else FRAMES


@lru_cache(maxsize=1024)
def _codes(style: str) -> str:
    return ";".join(code for name in style.split() if (code := _CODES.get(name) or _colour(name)))


def _colour(name: str) -> str:
    """Return the code of a colour that the output of a command chose, such as `fg:red`, `bg:12` or `fg:255,0,0`."""
    kind, _, value = name.partition(":")
    first = {"fg": 30, "bg": 40}.get(kind)
    if first is None or not value:
        return ""
    colour = value.removeprefix("bright_")
    if colour in COLOURS:
        return str(first + COLOURS.index(colour) + (60 if value != colour else 0))
    parts = value.split(",")
    return ";".join([str(first + 8), "2" if len(parts) == 3 else "5", *parts])


def appearance(environment: Mapping[str, str], encoding: str, *, is_terminal: bool) -> Appearance:
    """Return the capabilities of a stream with this encoding.

    >>> appearance({"TERM": "xterm-256color", "NO_COLOR": "1"}, "utf-8", is_terminal=True).colours
    False
    >>> appearance({"FORCE_COLOR": "1"}, "utf-8", is_terminal=False).colours
    True
    """
    term = environment.get("TERM", "dumb" if is_terminal else "")
    is_able = is_terminal and term not in ("", "dumb", "unknown")
    is_ascii = not encoding.lower().replace("-", "").startswith("utf") or term == "linux"
    return Appearance(
        is_terminal,
        colours=_colours(environment, is_able),
        moves=is_able,
        is_ascii=is_ascii,
        pictures=_pictures(environment, term) if is_able else None,
    )


def _colours(environment: Mapping[str, str], is_able: bool) -> bool:
    if environment.get("NO_COLOR"):
        return False
    forced = environment.get("FORCE_COLOR")
    return forced != "0" if forced else is_able


def _pictures(environment: Mapping[str, str], term: str) -> Pictures | None:
    """Return the protocol of a terminal that names itself. Inside tmux and screen the name is that of the outer
    terminal.
    """
    if environment.get("TMUX") or environment.get("STY") or term.startswith(("tmux", "screen")):
        return None
    program = environment.get("TERM_PROGRAM", "")
    if term in ("xterm-kitty", "xterm-ghostty") or environment.get("KITTY_WINDOW_ID") or program == "ghostty":
        return "kitty"
    if program in ("iTerm.app", "WezTerm") or environment.get("LC_TERMINAL") == "iTerm2":
        return "iterm2"
    return None
