"""`AsciiFilter`: everything on the screen in ASCII, for terminals that do not use UTF-8."""

from __future__ import annotations

from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_SIGNS = {
    **dict.fromkeys("─━═┄┈▔▁⎺⎻⎼⎽", "-"),
    **dict.fromkeys("│┃║▌▐▎▏▕┆┊", "|"),
    **dict.fromkeys("┌┐└┘╭╮╰╯├┤┬┴┼╔╗╚╝", "+"),
    **dict.fromkeys("▀▄█▊▋▅▆▇░▒▓", "#"),
    **dict.fromkeys("▸▶❯›", ">"),
    **dict.fromkeys("◀‹", "<"),
    **dict.fromkeys("●•◆⊘·", "*"),
    **dict.fromkeys("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "*"),
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
}


class AsciiFilter(LineFilter):
    """Puts a sign of ASCII in the place of every other character; each takes as many columns as before."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments in ASCII."""
        return [Segment(_ascii(text), style) for text, style, _ in segments]


@lru_cache(maxsize=4096)
def _ascii(text: str) -> str:
    """This text in ASCII.

    >>> _ascii("▸ café 日本")
    '> caf? ????'
    """
    if text.isascii():
        return text
    return "".join(it if it.isascii() else _SIGNS.get(it, "?" * cell_len(it)) for it in text)
