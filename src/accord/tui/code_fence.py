"""Code in Markdown: the lines of a fence that is still open, and how a line of code is drawn. PURE."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it.token import Token

from accord.presentation.styled_text import Paragraph, Row, Span, printed
from accord.tui.highlight import MOST_LINES, highlighted, highlighted_line

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_CODE: Row = (("  ", "code"),)


class CodeFence:
    """A code fence that is open."""

    def __init__(self, mark: str, language: str) -> None:
        self._mark = mark
        self._language = language
        self._lines: list[str] = []

    @classmethod
    def of(cls, token: Token) -> CodeFence:
        return cls(token.markup, token.info.split()[0] if token.info.split() else "")

    def is_closed_by(self, line: str) -> bool:
        found = _FENCE.match(line.rstrip())
        return found is not None and not found[2] and found[1][0] == self._mark[0] and len(found[1]) >= len(self._mark)

    def add(self, line: str) -> Paragraph:
        self._lines.append(line)
        return self.shown(line)

    def shown(self, line: str) -> Paragraph:
        return code_line(highlighted_line(code_text(line), self._language))

    def whole(self) -> list[Paragraph] | None:
        """All lines, highlighted as one text; None if that would not differ or cost too much."""
        if len(self._lines) > MOST_LINES:
            return None
        lines = highlighted([code_text(line) for line in self._lines], self._language)
        return None if lines is None else [code_line(line) for line in lines]


def code_text(line: str) -> str:
    return printed(line)


def code_line(spans: Sequence[Span]) -> Paragraph:
    return Paragraph([(text, f"code {style}".strip()) for text, style in spans], _CODE, _CODE, "fold", "code")
