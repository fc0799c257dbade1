"""Keeps the end of a command's output in constant memory. Pure.

Cuts fall between characters: a cut at the front drops the rest of a character, and an incomplete character at the end
is left out until it is complete. An invalid byte becomes the replacement character.
"""

from __future__ import annotations

import codecs
from collections import deque

LONGEST_CHARACTER = 4

CHUNK = 16 * 1024
"""Bytes that small chunks are joined to, so that each does not cost an object."""


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
        """Bytes of the whole stream so far."""
        self.ended = False
        """Whether the stream has ended, so that an incomplete character at the end stays incomplete."""

    @property
    def truncated(self) -> bool:
        """Whether some of the stream was dropped."""
        return self.total > self._limit

    def add(self, chunk: bytes) -> None:
        """Append a chunk, and drop what no longer fits."""
        if self._chunks and len(self._chunks[-1]) + len(chunk) <= CHUNK:
            self._chunks[-1] += chunk  # a command that prints single bytes must not cost one object per byte
        else:
            self._chunks.append(bytearray(chunk))
        self._kept += len(chunk)
        self.total += len(chunk)
        # The first chunk stays whole and is cut when it is read.
        while self._chunks and self._kept - len(self._chunks[0]) >= self._limit:
            self._kept -= len(self._chunks.popleft())

    def text(self) -> str:
        """The end of the stream, at most `limit` bytes in UTF-8."""
        data = self._since(self.total - self._limit)
        text = self._decoded(data, cut=self.truncated)
        if len(text) > self._limit // LONGEST_CHARACTER and len(encoded := text.encode()) > self._limit:
            text = self._decoded(
                encoded[len(encoded) - self._limit :], cut=True
            )  # replacement characters are longer than invalid bytes
        return text

    def read_from(self, position: int) -> tuple[bytes, int]:
        """The kept bytes from `position`, and where they begin: later, if some were dropped."""
        begins = max(position, self.total - self._kept)
        return self._since(begins), begins

    def _since(self, position: int) -> bytes:
        """The kept bytes from this position; reads only the chunks that it needs."""
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
    """Number of bytes at the beginning that continue an earlier character."""
    for index, byte in enumerate(data[: LONGEST_CHARACTER - 1]):
        if byte & 0b1100_0000 != 0b1000_0000:
            return index
    return min(len(data), LONGEST_CHARACTER - 1)
