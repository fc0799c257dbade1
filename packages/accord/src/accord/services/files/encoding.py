"""Decodes files, and encodes them again with the same encoding and line ends. Pure.

Text is UTF-8, with or without a byte order mark, or UTF-16 with one. Everything else is refused, as is text with null
bytes: an agent that reads garbage writes garbage back. The byte order mark is not part of the text.
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
    """The bytes are not in a supported text encoding."""


class Encoding(msgspec.Struct, frozen=True):
    """The encoding of a file: the byte order mark, if any, and the codec of what follows."""

    name: str = "utf-8"
    mark: bytes = b""

    @classmethod
    def of(cls, beginning: bytes) -> Encoding:
        """The encoding that the first bytes of a file tell; raises NotText for UTF-32."""
        if beginning.startswith(_WIDER):
            raise NotText("UTF-32 is not supported")
        return next((cls(name, mark) for mark, name in _MARKS if beginning.startswith(mark)), cls())

    def encode(self, text: str) -> bytes:
        """Encode text, with the byte order mark."""
        try:
            return self.mark + text.removeprefix("\ufeff" if self.mark else "").encode(self.name)
        except UnicodeEncodeError as error:
            raise RequestError.invalid_params(
                "content contains half a surrogate pair, so it cannot be encoded", at=error.start
            ) from error


def texts(chunks: Iterable[bytes]) -> Iterable[str]:
    """Decode a file that is read in chunks; raises NotText."""
    decoder: codecs.IncrementalDecoder | None = None
    for chunk in chunks:
        data = chunk
        if decoder is None:  # the first chunk has the whole mark: only a file that ends there is shorter
            encoding = Encoding.of(data)
            decoder = codecs.getincrementaldecoder(encoding.name)()
            data = data.removeprefix(encoding.mark)
        yield _checked(decoder, data)
    if decoder is not None:
        yield _checked(decoder, b"", final=True)


def _checked(decoder: codecs.IncrementalDecoder, data: bytes, *, final: bool = False) -> str:
    try:
        text = decoder.decode(data, final)
    except UnicodeDecodeError as error:
        raise NotText("it is neither UTF-8 nor UTF-16 with a byte order mark") from error
    if "\0" in text:
        raise NotText("it contains zero bytes")
    return text


def decode(data: bytes) -> str:
    """Decode a whole file; raises NotText."""
    return "".join(texts((data,)))


def encode_like(old: bytes | None, text: str) -> bytes:
    """Encode `text` with the encoding and the line ends of the file's old content, None for a new file."""
    if old is None:
        return Encoding().encode(text)
    try:
        before = decode(old)
    except NotText:
        return Encoding().encode(text)
    return Encoding.of(old).encode(_ends_like(before, text))


def _ends_like(before: str, text: str) -> str:
    """Use `\\r\\n` if all old lines ended so and the new text has no `\\r` at all."""
    lines = before.count("\n")
    if lines and before.count("\r\n") == lines and "\r" not in text:
        return text.replace("\n", "\r\n")
    return text


class Lines:
    """Extracts a range of lines from text that arrives in chunks.

    >>> wanted = Lines(first=2, count=1)
    >>> wanted.add("one\\ntw"), wanted.add("o\\nthree\\n"), wanted.text
    (False, True, 'two\\n')
    """

    def __init__(self, first: int = 1, count: int | None = None) -> None:
        self._skip = max(first, 1) - 1
        self._left = count
        self._kept: list[str] = []
        self.length = 0
        """Number of characters kept."""

    @property
    def text(self) -> str:
        """The lines found so far."""
        return "".join(self._kept)

    def add(self, chunk: str) -> bool:
        """Add a chunk; returns whether all wanted lines are complete."""
        rest = self._after_skipped(chunk)
        if self._left is not None:
            rest = self._limited(rest)
        self._kept.append(rest)
        self.length += len(rest)
        return self._left == 0

    def _after_skipped(self, chunk: str) -> str:
        start = 0
        while self._skip:
            end = chunk.find("\n", start)
            if end < 0:
                return ""
            self._skip -= 1
            start = end + 1
        return chunk[start:]

    def _limited(self, chunk: str) -> str:
        end = 0
        while self._left:
            found = chunk.find("\n", end)
            if found < 0:
                return chunk
            self._left -= 1
            end = found + 1
        return chunk[:end]
