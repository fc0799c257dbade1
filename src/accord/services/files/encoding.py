"""Bytes of a file as text, and back in the same encoding and with the same ends of lines. Pure.

What is read as text: UTF-8, with or without a byte order mark, and UTF-16 with one. Anything else is refused, as is
text with zero bytes: an agent that reads garbage writes garbage back. The mark is not part of the text.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

import msgspec

from accord.errors import RequestError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDER = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


class NotText(ValueError):
    """The bytes are no text that we read."""


class Encoding(msgspec.Struct, frozen=True):
    """How a file's text is written: the byte order mark it begins with, if any, and the encoding behind it."""

    name: str = "utf-8"
    mark: bytes = b""

    @classmethod
    def of(cls, beginning: bytes) -> Encoding:
        if beginning.startswith(_WIDER):
            raise NotText("UTF-32 is not supported")
        return next((cls(name, mark) for mark, name in _MARKS if beginning.startswith(mark)), cls())

    def encode(self, text: str) -> bytes:
        try:
            return self.mark + text.removeprefix("\ufeff" if self.mark else "").encode(self.name)
        except UnicodeEncodeError as error:
            raise RequestError.invalid_params("the content has half a character in it", at=error.start) from error


def texts(chunks: Iterable[bytes]) -> Iterable[str]:
    """The text of a file that is read in pieces; raises NotText."""
    decoder: codecs.IncrementalDecoder | None = None
    for chunk in chunks:
        piece = chunk
        if decoder is None:  # a first piece is longer than any mark, unless the file is not
            encoding = Encoding.of(piece)
            decoder = codecs.getincrementaldecoder(encoding.name)()
            piece = piece.removeprefix(encoding.mark)
        yield _checked(decoder, piece)
    if decoder is not None:
        yield _checked(decoder, b"", final=True)


def _checked(decoder: codecs.IncrementalDecoder, piece: bytes, *, final: bool = False) -> str:
    try:
        text = decoder.decode(piece, final)
    except UnicodeDecodeError as error:
        raise NotText("neither UTF-8 nor UTF-16 with a byte order mark") from error
    if "\0" in text:
        raise NotText("it has zero bytes")
    return text


def decode(data: bytes) -> str:
    return "".join(texts((data,)))


def encode_like(old: bytes | None, text: str) -> bytes:
    """The bytes to write for `text`, in the encoding and with the ends of lines that the file has had."""
    if old is None:
        return Encoding().encode(text)
    try:
        before = decode(old)
    except NotText:
        return Encoding().encode(text)
    return Encoding.of(old).encode(_ends_like(before, text))


def _ends_like(before: str, text: str) -> str:
    """Windows' ends of lines, where all were and the agent writes none."""
    lines = before.count("\n")
    if lines and before.count("\r\n") == lines and "\r" not in text:
        return text.replace("\n", "\r\n")
    return text


class Lines:
    """Cuts lines out of a text that comes in pieces, and keeps only those.

    >>> wanted = Lines(first=2, count=1)
    >>> wanted.add("one\\ntw"), wanted.add("o\\nthree\\n"), wanted.text
    (False, True, 'two\\n')
    """

    def __init__(self, first: int = 1, count: int | None = None) -> None:
        self._skip = max(first, 1) - 1
        self._left = count
        self._kept: list[str] = []
        self.length = 0
        """Characters kept."""

    @property
    def text(self) -> str:
        return "".join(self._kept)

    def add(self, piece: str) -> bool:
        """Whether all that is wanted is there."""
        rest = self._behind_skipped(piece)
        if self._left is not None:
            rest = self._limited(rest)
        self._kept.append(rest)
        self.length += len(rest)
        return self._left == 0

    def _behind_skipped(self, piece: str) -> str:
        start = 0
        while self._skip:
            end = piece.find("\n", start)
            if end < 0:
                return ""
            self._skip -= 1
            start = end + 1
        return piece[start:]

    def _limited(self, piece: str) -> str:
        end = 0
        while self._left:
            found = piece.find("\n", end)
            if found < 0:
                return piece
            self._left -= 1
            end = found + 1
        return piece[:end]
