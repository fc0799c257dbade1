"""Syntax highlighting, by Pygments, which Rich depends on. PURE.

A line is highlighted on its own while its block grows, and the block as a whole once it is complete: only then is the
middle of a long string recognised.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pygments import lexers
from pygments.token import Token
from pygments.util import ClassNotFound

from accord_tools.presentation.styled_text import Span

MOST_LINES, MOST_CHARACTERS = 1_000, 20_000
"""The limits of a text that is highlighted as a whole."""
LONGEST = 1_000
"""Characters of a line that is highlighted; lexers are regular expressions, and slow on long lines."""

_LEXERS: Any = lexers  # partly without types

_STYLES: dict[Any, str] = {
    Token.Comment: "comment",
    Token.Keyword: "keyword",
    Token.Literal.String: "string",
    Token.Literal.Number: "number",
    Token.Name.Function: "name",
    Token.Name.Class: "name",
    Token.Name.Decorator: "name",
    Token.Name.Builtin: "builtin",
    Token.Operator.Word: "keyword",
    Token.Generic.Inserted: "good",
    Token.Generic.Deleted: "bad",
    Token.Generic.Heading: "bold",
    Token.Generic.Subheading: "accent",
}


@lru_cache(maxsize=64)
def _lexer(language: str) -> Any:
    if not language or language in ("text", "txt", "plain", "output", "console") or len(language) > 40:
        return None
    try:
        return _LEXERS.get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=256)
def language_of(path: str) -> str:
    """Return the language of a file, by its name; empty if it is not known.

    >>> language_of("src/main.py")
    'python'
    """
    name = path.rpartition("/")[2]
    try:
        found: str = _LEXERS.get_lexer_for_filename(name).aliases[0]
    except (ClassNotFound, IndexError):
        return ""
    return found


def highlighted_line(line: str, language: str) -> list[Span]:
    """Return one line, highlighted on its own."""
    lexer = _lexer(language.lower())
    if lexer is None or len(line) > LONGEST:
        return [(line, "")] if line else []
    return [(text, _style(kind)) for kind, text in lexer.get_tokens(line) if text and text != "\n"]


def highlighted(lines: Sequence[str], language: str) -> list[list[Span]] | None:
    """Return these lines as one text; None if there is no lexer for them, or they are too many."""
    lexer = _lexer(language.lower())
    is_long = len(lines) > MOST_LINES or sum(map(len, lines)) > MOST_CHARACTERS
    if lexer is None or is_long or any(len(line) > LONGEST for line in lines):
        return None
    shown: list[list[Span]] = [[]]
    for kind, text in lexer.get_tokens("\n".join(lines)):
        style = _style(kind)
        first, *others = text.split("\n")
        if first:
            shown[-1].append((first, style))
        shown += [[(part, style)] if part else [] for part in others]
    return shown if len(shown) == len(lines) else None


def _style(kind: Any) -> str:
    while kind:
        if kind in _STYLES:
            return _STYLES[kind]
        kind = kind.parent
    return ""
