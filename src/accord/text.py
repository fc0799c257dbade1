"""Text that comes in pieces, in which an emoji may have been cut in two.

JavaScript counts a character beyond the first 65,536 as two, and agents written in it cut between them. Each half comes
as a lone surrogate, which no UTF-8 can say; together they are the character again.
"""

from __future__ import annotations

import io
from collections.abc import Iterable

from accord.schema import v1
from accord.sizes import size_of


class JoinedText:
    """Text that comes in pieces. Halves of an emoji, one at the end of a piece and one at the start of the next, meet.

    >>> text = JoinedText()
    >>> text.add("Hi \\ud83d"), text.add("\\ude00")
    ('Hi ', '😀')
    >>> text.read()
    'Hi 😀'
    """

    __slots__ = ("_buffer", "_half")

    def __init__(self) -> None:
        self._buffer = io.StringIO()
        self._half = ""

    def add(self, piece: str) -> str:
        """The text that is whole now and was not before: a half at the end waits for the other one."""
        if self._half:
            piece = mended(self._half, piece)
            self._half = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        self._buffer.write(piece)
        return piece

    def rest(self) -> str:
        """The half that waits; nobody will bring the other one."""
        return self._half

    def read(self) -> str:
        return self._buffer.getvalue() + self._half

    def __len__(self) -> int:
        return self._buffer.tell()


def whole_part(half: str, piece: str) -> tuple[str, str]:
    """This piece behind a half that waits: the text that is whole now, and the half at its end if there is one."""
    piece = mended(half, piece)
    if piece and "\ud800" <= piece[-1] <= "\udbff":
        return piece[:-1], piece[-1]
    return piece, ""


def mended(first: str, second: str) -> str:
    """Two pieces of text as one; an emoji that was cut in two between them is whole again."""
    if first and second and "\ud800" <= first[-1] <= "\udbff" and "\udc00" <= second[0] <= "\udfff":
        emoji = chr(0x10000 + ((ord(first[-1]) - 0xD800) << 10) + ord(second[0]) - 0xDC00)
        return first[:-1] + emoji + second[1:]
    return first + second


class GrowingContent:
    """Content that may still grow."""

    __slots__ = ("_blocks", "run")

    def __init__(self) -> None:
        self._blocks: list[v1.ContentBlock] = []
        self.run: JoinedText | None = None

    def add(self, content: v1.ContentBlock) -> None:
        if isinstance(content, v1.TextContent) and content.annotations is None and content.meta is None:
            if self.run is None:
                self.run = JoinedText()
            self.run.add(content.text)
        else:
            self._end_run()
            self._blocks.append(content)

    def replace(self, content: Iterable[v1.ContentBlock]) -> None:
        self._blocks, self.run = list(content), None

    def read(self) -> tuple[v1.ContentBlock, ...]:
        return (*self._blocks, *([] if self.run is None else [v1.TextContent(self.run.read())]))

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(map(size_of, self._blocks)) + (0 if self.run is None else len(self.run))

    def _end_run(self) -> None:
        if self.run is not None:
            self._blocks.append(v1.TextContent(self.run.read()))
            self.run = None
