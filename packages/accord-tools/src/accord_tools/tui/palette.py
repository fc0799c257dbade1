"""`Palette`, the styles by their names in the theme that the user chose; and `AsciiFilter`, for terminals that do not
use UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from rich.cells import cell_len
from rich.color import Color, ColorParseError
from rich.segment import Segment
from rich.style import Style
from textual.filter import LineFilter
from textual.strip import Strip

from accord_tools.presentation import styled_text
from accord_tools.presentation.appearance import ASCII_SIGNS
from accord_tools.presentation.styled_text import Paragraph, Row


class AsciiFilter(LineFilter):
    """Replaces every non-ASCII character by a sign of ASCII; each takes as many columns as before."""

    def apply(self, segments: list[Segment], background: Any) -> list[Segment]:
        """The segments in ASCII."""
        return [Segment(_ascii(text), style) for text, style, _ in segments]


@lru_cache(maxsize=4096)
def _ascii(text: str) -> str:
    """Return this text in ASCII.

    >>> _ascii("▸ café 日本")
    '> caf? ????'
    """
    if text.isascii():
        return text
    return "".join(it if it.isascii() else ASCII_SIGNS.get(it, "?" * cell_len(it)) for it in text)


_BASE = {
    "bold": Style(bold=True),
    "italic": Style(italic=True),
    "strike": Style(strike=True),
    "underline": Style(underline=True),
    "reverse": Style(reverse=True),
}


class Palette:
    """The styles of one theme, by their names."""

    def __init__(self, variables: Mapping[str, str], *, is_coloured: bool = True) -> None:
        def colour(name: str, fallback: str) -> str:
            return variables.get(name) or fallback

        self._background = colour("background", "#121212")
        accent, shade = colour("accent", "#5fafff"), colour("surface", "#1e1e1e")
        dim = self._style(colour("foreground-muted", "#8a8a8a"))
        primary, named = self._style(colour("text-primary", accent)), self._style(colour("text-accent", accent))
        good, warning = self._style(colour("text-success", "#8ad4a1")), self._style(colour("text-warning", "#ffc473"))
        self._styles: dict[str, Style] = {
            **_BASE,
            "dim": dim,
            "heading": primary + _BASE["bold"],
            "accent": named,
            "good": good,
            "bad": self._style(colour("text-error", "#d17e92")),
            "warning": warning,
            "link": primary + _BASE["underline"],
            "inline": warning,
            "code": self._style(None, shade),
            "user": self._style(None, colour("panel", shade)),
            "comment": dim + _BASE["italic"],
            "keyword": primary,
            "string": good,
            "number": warning,
            "name": named,
            "builtin": self._style(colour("text-secondary", accent)),
            "added": self._style(None, colour("success-muted", "#143d24")),
            "removed": self._style(None, colour("error-muted", "#4a1a22")),
            "word": _BASE["bold"] + _BASE["underline"],
            "chosen": self._style(self._background, accent) + _BASE["bold"],
        }
        self.is_coloured = is_coloured
        self.base = self._style(colour("foreground", "#e0e0e0"), self._background)

    def _style(self, colour: str | None, background: str | None = None) -> Style:
        colours = (None if given is None else _parsed(given, self._background) for given in (colour, background))
        return Style.from_color(*colours)

    def style(self, names: str) -> Style:
        """The style of these names, over the base."""
        found = self._styles.get(names)
        if found is None:
            found = Style()
            for name in names.split():
                found += self._styles.get(name) or _terminal_style(name)
            self._styles[names] = found
        return found

    def strip(self, row: Row, width: int, fill: str = "") -> Strip:
        """A row as a strip of exactly this width."""
        under = self.base + self.style(fill) if fill else self.base
        segments = [Segment(text, under + self.style(style) if style else under) for text, style in row if text]
        used = sum(cell_len(segment.text) for segment in segments)
        if used < width:
            segments.append(Segment(" " * (width - used), under))
        strip = Strip(segments, max(used, width))
        return strip if used <= width else strip.crop(0, width)

    def strips(self, rows: Iterable[tuple[Row, str]], width: int) -> list[Strip]:
        """Return several rows as strips."""
        return [self.strip(row, width, fill) for row, fill in rows]


def rows_of(paragraph: Paragraph, width: int) -> list[Row]:
    """The rows of a paragraph, each at most `width` columns wide, as Rich measures them."""
    return styled_text.rows_of(paragraph, width, cell_len)


def all_rows(paragraphs: Iterable[Paragraph], width: int) -> list[tuple[Row, str]]:
    """The rows of several paragraphs, each with the style that fills it."""
    return [(row, paragraph.fill) for paragraph in paragraphs for row in rows_of(paragraph, width)]


def palette_of(widget: Any) -> Palette:
    """The palette of the theme that the app of this widget shows."""
    app = widget.app
    return Palette(app.theme_variables, is_coloured=getattr(app, "is_coloured", True))


def _parsed(given: str, background: str) -> Color | None:
    """Return a colour of a theme. A partly transparent one is mixed with the background."""
    from textual.color import Color as ThemeColour, ColorParseError as NotAColour

    try:
        return (ThemeColour.parse(background) + ThemeColour.parse(given)).rich_color
    except NotAColour:
        return None


@lru_cache(maxsize=1024)
def _terminal_style(name: str) -> Style:
    """A colour that a command chose: `fg:red`, `bg:12`, `fg:255,0,0`."""
    kind, _, value = name.partition(":")
    if kind not in ("fg", "bg") or not value:
        return Style()
    parts = value.split(",")
    try:
        if len(parts) == 3:
            colour = Color.from_rgb(*(int(part) for part in parts))
        else:
            colour = Color.from_ansi(int(value)) if value.isdigit() else Color.parse(value)
    except (ColorParseError, ValueError):
        return Style()
    return Style.from_color(colour) if kind == "fg" else Style.from_color(None, colour)
