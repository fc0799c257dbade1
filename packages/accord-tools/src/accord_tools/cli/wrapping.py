"""Wraps text that comes in chunks at the width of a terminal, between words. PURE.

A terminal breaks a long line in the middle of a word. Here a word waits until it is whole, and begins a new row if it
does not fit. A row that continues an item of a list begins below the item's text. Code stays as it is: lines between
fences, lines that are indented by four blanks, and tables.
"""

from __future__ import annotations

import re

from accord.printable import columns

_ITEM = re.compile(r"[ ]{0,12}(?:[-*+•]|\d{1,3}[.)])[ ]+|[ ]{1,12}")
_CODE = re.compile(r"\t|[ ]{4,}(?![-*+•\d ])|\|")
_FENCES = ("```", "~~~")
_TOKEN = re.compile(r"\n|[ \t]+|[^ \t\n]+")
LONGEST = 1_000
"""Characters of a word that waits for its end."""
NARROW = 20
"""A narrower terminal breaks lines by itself."""


class Wrapped:
    """Text in chunks, with line breaks where the terminal is at its end. `indent` stands before each row.

    >>> text = Wrapped()
    >>> text.add("- one two three, fo", 22), text.add("ur five", 22), text.rest(22)
    ('- one two three,', ' four', '\\n  five')
    """

    def __init__(self, indent: str = "") -> None:
        self._indent = indent
        self._gap = ""
        """Blanks that are printed with the next word, if it does not begin a row."""
        self._word = ""
        self._line = ""
        """The text's own line so far, however many rows it takes."""
        self._column = 0
        self._is_fenced = False

    @property
    def is_at_start(self) -> bool:
        """Whether the cursor is at the start of a row."""
        return self._column == 0

    def add(self, chunk: str, width: int) -> str:
        """This chunk as it is printed; a word at its end waits for the next chunk."""
        tokens = _TOKEN.findall(self._word + chunk)
        waits = bool(tokens) and len(tokens[-1]) < LONGEST and not tokens[-1].isspace()
        self._word = tokens.pop() if waits else ""
        return "".join([self._put(token, width) for token in tokens])

    def rest(self, width: int) -> str:
        """The word that still waits."""
        word, self._word = self._word, ""
        return self._put(word, width) if word else ""

    def begin(self, column: int) -> None:
        """Take note that something else stands at the start of the line."""
        self._column = column

    def end_line(self) -> None:
        """Take note that something else has ended the line."""
        self._gap, self._line, self._column = "", "", 0

    def _put(self, token: str, width: int) -> str:
        if token == "\n":
            self._is_fenced ^= self._line.lstrip().startswith(_FENCES)
            self.end_line()
            return "\n"
        if token.isspace():
            self._gap += token
            return ""
        text, self._gap = self._gap + token, ""
        if self._column == 0:
            text = self._indent + text
        elif self._column + columns(text.expandtabs(4)) > width >= NARROW and not self._is_code():
            item = _ITEM.match(self._line)
            hanging = self._indent + " " * (columns(item.group()) if item is not None else 0)
            self._line += text
            self._column = columns(hanging + token)
            return f"\n{hanging}{token}"
        self._line += text
        self._column += columns(text.expandtabs(4))
        return text

    def _is_code(self) -> bool:
        return self._is_fenced or self._line.lstrip().startswith(_FENCES) or _CODE.match(self._line) is not None
