"""Text that comes in chunks, in which an emoji may have been split in two, and the approximate sizes of values.

JavaScript counts a character beyond the first 65,536 as two, and agents written in it split between them. Each half
comes as a lone surrogate, which UTF-8 cannot encode; together they are the character again.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

from accord.schema import codec, v1


class JoinedText:
    """Text that comes in chunks; an emoji that was split between two chunks is joined again.

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

    def add(self, chunk: str) -> str:
        """Add a chunk; returns the text that is complete now. Half an emoji at its end waits for the other half."""
        if self._half:
            chunk = mended(self._half, chunk)
            self._half = ""
        if chunk and "\ud800" <= chunk[-1] <= "\udbff":
            chunk, self._half = chunk[:-1], chunk[-1]
        self._buffer.write(chunk)
        return chunk

    def rest(self) -> str:
        """The half that still waits, at the end of the text."""
        return self._half

    def read(self) -> str:
        """The whole text so far."""
        return self._buffer.getvalue() + self._half

    def __len__(self) -> int:
        return self._buffer.tell()


def whole_part(half: str, chunk: str) -> tuple[str, str]:
    """This chunk after a waiting half: the text that is complete now, and a half at its end."""
    chunk = mended(half, chunk)
    if chunk and "\ud800" <= chunk[-1] <= "\udbff":
        return chunk[:-1], chunk[-1]
    return chunk, ""


def mended(first: str, second: str) -> str:
    """Two chunks as one text; an emoji that was split between them is joined."""
    if first and second and "\ud800" <= first[-1] <= "\udbff" and "\udc00" <= second[0] <= "\udfff":
        emoji = chr(0x10000 + ((ord(first[-1]) - 0xD800) << 10) + ord(second[0]) - 0xDC00)
        return first[:-1] + emoji + second[1:]
    return first + second


class GrowingContent:
    """Content blocks that may still grow; adjacent plain text becomes one block."""

    __slots__ = ("_blocks", "run")

    def __init__(self) -> None:
        self._blocks: list[v1.ContentBlock] = []
        self.run: JoinedText | None = None

    def add(self, content: v1.ContentBlock) -> None:
        """Add a block, or its text to the last one."""
        if isinstance(content, v1.TextContent) and content.annotations is None and content.meta is None:
            if self.run is None:
                self.run = JoinedText()
            self.run.add(content.text)
        else:
            self._end_run()
            self._blocks.append(content)

    def replace(self, content: Iterable[v1.ContentBlock]) -> None:
        """Replace all blocks."""
        self._blocks, self.run = list(content), None

    def read(self) -> tuple[v1.ContentBlock, ...]:
        """The blocks so far."""
        return (*self._blocks, *([] if self.run is None else [v1.TextContent(self.run.read())]))

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        return sum(map(size_of, self._blocks)) + (0 if self.run is None else len(self.run))

    def _end_run(self) -> None:
        if self.run is not None:
            self._blocks.append(v1.TextContent(self.run.read()))
            self.run = None


WEIGHT = 350
"""Bytes that a value takes besides its text."""


def size_of(value: Any) -> int:
    """The approximate size of a value in bytes."""
    try:
        return WEIGHT + len(codec.strict_encode(value))
    except codec.ENCODE_REFUSALS:  # half a surrogate pair, for instance
        return WEIGHT + len(repr(value))


def oldest_beyond(sizes: Sequence[int], room: int) -> int:
    """How many of the first sizes must be dropped so that the rest fits into `room`.

    >>> oldest_beyond([5, 4, 3], room=8)
    1
    """
    total, gone = sum(sizes), 0
    while total > room:
        total -= sizes[gone]
        gone += 1
    return gone
