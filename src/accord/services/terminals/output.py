"""What a command has printed, as much of its end as is wanted, in constant memory. Pure.

Cuts fall between characters: a cut at the front drops what is left of a character, and a character whose end has not
come yet is not shown. A byte that belongs to no character becomes the usual replacement mark.
"""

from __future__ import annotations

import codecs
from collections import deque

LONGEST_CHARACTER = 4

CHUNK = 16 * 1024
"""Bytes that are kept as one object, where less comes at once."""


class OutputTail:
    """The last `limit` bytes of a stream.

    >>> tail = OutputTail(4)
    >>> tail.add("aüü".encode())
    >>> tail.text(), tail.truncated
    ('üü', True)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytearray] = deque()
        self._kept = 0
        self.total = 0
        """Bytes that there ever were."""
        self.ended = False
        """Nothing will follow: half a character at the end stays one."""

    @property
    def truncated(self) -> bool:
        return self.total > self._limit

    def add(self, chunk: bytes) -> None:
        if self._chunks and len(self._chunks[-1]) + len(chunk) <= CHUNK:
            self._chunks[-1] += chunk  # a command that prints byte by byte must not cost an object a byte
        else:
            self._chunks.append(bytearray(chunk))
        self._kept += len(chunk)
        self.total += len(chunk)
        # The chunk that the limit falls into stays whole, and is cut when it is read.
        while self._chunks and self._kept - len(self._chunks[0]) >= self._limit:
            self._kept -= len(self._chunks.popleft())

    def text(self) -> str:
        """The end of the stream; encoded again, it has no more than `limit` bytes."""
        data = self._since(self.total - self._limit)
        text = self._decoded(data, cut=self.truncated)
        if len(text) > self._limit // LONGEST_CHARACTER and len(encoded := text.encode()) > self._limit:
            text = self._decoded(encoded[len(encoded) - self._limit :], cut=True)  # the replacement marks are longer
        return text

    def read_from(self, position: int) -> tuple[bytes, int]:
        """What is kept of the stream from `position` on, and where that begins: later, if it was dropped."""
        begins = max(position, self.total - self._kept)
        return self._since(begins), begins

    def _since(self, position: int) -> bytes:
        """From this position on, or from what is kept; touches only the chunks that it needs."""
        missing = self.total - max(position, self.total - self._kept)
        wanted: list[bytearray] = []
        for chunk in reversed(self._chunks):
            if missing <= 0:
                break
            wanted.append(chunk[-missing:])
            missing -= len(chunk)
        return b"".join(reversed(wanted))

    def _decoded(self, data: bytes, *, cut: bool) -> str:
        if cut:
            data = data[rest_of_character(data) :]
        return codecs.getincrementaldecoder("utf-8")("replace").decode(data, self.ended)


def rest_of_character(data: bytes) -> int:
    """How many bytes at its beginning continue a character that began before it."""
    for index, byte in enumerate(data[: LONGEST_CHARACTER - 1]):
        if byte & 0b1100_0000 != 0b1000_0000:
            return index
    return min(len(data), LONGEST_CHARACTER - 1)
