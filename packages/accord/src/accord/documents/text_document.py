"""`TextDocument`: a text with its lines, which changes as its client says. PURE.

Offsets are indexes of the `str`; positions are the client's, in the encoding that was agreed on. The starts of the
lines are kept, and a change replaces only those that it touches: finding them again in a large text for each key that
the user presses would cost more than everything else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from accord.documents.lines import line_starts
from accord.documents.positions import Encoding, character_at, index_at
from accord.schema import v1

_ENDINGS = "\r\n"


class TextDocument:
    """A text that changes, and its positions.

    >>> document = TextDocument("a😀b\\nc", "utf-16")
    >>> document.position(2), document.offset(v1.Position(0, 3))
    (Position(line=0, character=3), 2)
    """

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.encoding: Encoding = encoding
        self._text = text
        self._starts = line_starts(text)

    def copy(self) -> TextDocument:
        """The same text, which changes by itself; it costs nothing, because texts and lists of lines are shared."""
        made = TextDocument("", self.encoding)
        made._text, made._starts = self._text, self._starts
        return made

    @property
    def text(self) -> str:
        """The whole text."""
        return self._text

    @property
    def lines(self) -> list[str]:
        """The lines, without their endings; a text that ends with a line's ending has an empty last line."""
        return [self._line(number) for number in range(len(self._starts))]

    def position(self, offset: int) -> v1.Position:
        """The position of an offset; an offset inside a line's ending is the end of the line."""
        if not 0 <= offset <= len(self._text):
            raise ValueError(f"offset must be from 0 to {len(self._text)}, the length of the text; got {offset}")
        number = bisect_right(self._starts, offset) - 1
        line = self._line(number)
        return v1.Position(number, character_at(line, min(offset - self._starts[number], len(line)), self.encoding))

    def offset(self, position: v1.Position) -> int:
        """The offset of a position; past the end of its line it is that end, past the last line the end of the text."""
        if position.line >= len(self._starts):
            return len(self._text)
        return self._starts[position.line] + index_at(self._line(position.line), position.character, self.encoding)

    def range(self, start: int, end: int) -> v1.Range:
        """The range of the text between two offsets."""
        return v1.Range(self.position(start), self.position(end))

    def offsets(self, range: v1.Range) -> tuple[int, int]:  # noqa: A002
        """The offsets of a range; raises ValueError for one that ends before it starts."""
        start, end = self.offset(range.start), self.offset(range.end)
        if end < start:
            raise ValueError("the range ends before it starts")
        return start, end

    def replace(self, start: int, end: int, new: str) -> None:
        """Put this text in the place of what is between two offsets."""
        starts, before = self._starts, len(self._text)
        # The last line that begins before the change and the first that begins after it both stay: each follows the
        # ending of a line that the change does not touch. One character more on the left, for a `\r` before a new `\n`.
        first = max(bisect_right(starts, start - 1) - 1, 0)
        rest = bisect_right(starts, end)
        self._text = self._text[:start] + new + self._text[end:]
        grown = len(self._text) - before
        begin = starts[first]
        until = starts[rest] + grown if rest < len(starts) else len(self._text) + 1
        found = (begin + it for it in line_starts(self._text[begin : min(until, len(self._text))])[1:])
        self._starts = [
            *starts[: first + 1],
            *(it for it in found if it < until),
            *(it + grown for it in starts[rest:]),
        ]

    def apply(self, changes: Sequence[v1.TextDocumentContentChangeEvent]) -> None:
        """Apply changes one after another: each range means the text after the changes before it."""
        for change in changes:
            start, end = (0, len(self._text)) if change.range is None else self.offsets(change.range)
            self.replace(start, end, change.text)

    def _line(self, number: int) -> str:
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._text)
        return self._text[start:end].rstrip(_ENDINGS)
