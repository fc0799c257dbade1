"""HTTP/1.1 on the wire (RFC 9112): headers of requests and responses, and bodies of all three kinds. PURE.

    b"POST /acp HTTP/1.1\\r\\n..." ──▶ request_head ──▶ RequestHead ──▶ body_of_request ──▶ BodyReader.feed

The parser is strict and cannot be made lenient. Two parties that read the same bytes differently let an attacker
smuggle requests past one of them (11.2). So there is one grammar, and everything outside it is refused.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import NamedTuple

LONGEST = 64 * 1024
"""The most bytes of a request line or status line with its header fields."""

MOST_FIELDS = 200
"""The most header fields of a message."""

Fields = list[tuple[bytes, bytes]]
"""Names in lower case."""

_NAME = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_FIELD = rb"(" + _NAME + rb"):([^\x00-\x08\x0a-\x1f\x7f]*)\r\n"
_FIELDS = re.compile(rb"(?:" + _NAME + rb":[^\x00-\x08\x0a-\x1f\x7f]*\r\n)*")
_EACH = re.compile(_FIELD)
_REQUEST = re.compile(rb"(" + _NAME + rb") ([\x21-\x7e]+) HTTP/1\.([01])\r\n")
_RESPONSE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?\r\n")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_TRAILER = re.compile(rb"(" + _NAME + rb"):[^\x00-\x08\x0a-\x1f\x7f]*")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")


NOT_IN_TRAILERS = frozenset(
    {b"authorization", b"connection", b"content-length", b"content-type", b"host", b"transfer-encoding", b"upgrade"}
)
"""Fields that decide where a message ends, where it goes and who may send it (RFC 9110, 6.5.1)."""


class Bad(Exception):
    """Malformed or unsupported HTTP; `status` is what a server answers."""

    def __init__(self, problem: str, status: int = 400) -> None:
        super().__init__(problem)
        self.status = status


class RequestHead(NamedTuple):
    """The request line and the header fields of a request."""

    method: bytes
    target: bytes
    fields: Fields
    is_1_1: bool


class ResponseHead(NamedTuple):
    """The status line and the header fields of a response."""

    status: int
    fields: Fields
    is_1_1: bool


def request_head(data: bytes) -> RequestHead:
    """Parse a request line and its fields, given up to the last field's line break; raises Bad."""
    line = _REQUEST.match(data)
    if line is None:
        raise Bad("malformed request line")
    method, target, minor = line.groups()
    return RequestHead(method, target, _fields(data, line.end()), minor == b"1")


def response_head(data: bytes) -> ResponseHead:
    """Parse a status line and its fields, given up to the last field's line break; raises Bad."""
    line = _RESPONSE.match(data)
    if line is None:
        raise Bad("malformed status line")
    minor, status = line.groups()
    return ResponseHead(int(status), _fields(data, line.end()), minor == b"1")


def _fields(data: bytes, start: int) -> Fields:
    if (found := _FIELDS.match(data, start)) is None or found.end() != len(data):
        raise Bad("malformed header field")
    fields = [(name.lower(), value.strip(b" \t")) for name, value in _EACH.findall(data, start)]
    if len(fields) > MOST_FIELDS:
        raise Bad(f"too many header fields: {len(fields):,}, at most {MOST_FIELDS:,} are allowed", 431)
    return fields


def values(fields: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """All values of a field in lower case; it may occur several times and be a list each time (RFC 9110, 5.3)."""
    return [item.strip(b" \t").lower() for given, value in fields if given == name for item in value.split(b",")]


class BodyReader(ABC):
    """Reads the body of a message from the bytes that follow its header."""

    def __init__(self) -> None:
        self.is_over = False

    @abstractmethod
    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Split these bytes into body and rest (the bytes after the body); raises Bad."""

    def end(self) -> bool:
        """Whether the body is complete if the connection ends now."""
        return self.is_over


class Sized(BodyReader):
    """A body of the length that Content-Length gives."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._left = size
        self.is_over = size == 0

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        if len(data) < self._left:
            self._left -= len(data)
            return data, b""
        left, self._left, self.is_over = self._left, 0, True
        return data[:left], data[left:]


class UntilTheEnd(BodyReader):
    """A body that ends with the connection."""

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        return data, b""

    def end(self) -> bool:
        return True


class Chunked(BodyReader):
    """A body in chunks (7.1)."""

    def __init__(self) -> None:
        super().__init__()
        self._rest = b""
        self._left = 0
        """Bytes of the current chunk that have not arrived."""
        self._after_chunk = False
        self._in_trailer = False
        self._trailer = 0

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        data = self._rest + data if self._rest else data
        self._rest = b""
        parts: list[bytes] = []
        position = 0
        while not self.is_over:
            if self._left:
                part = data[position : position + self._left]
                parts.append(part)
                position += len(part)
                self._left -= len(part)
                if self._left:
                    break
            end = data.find(b"\r\n", position)
            if end < 0 or end - position > _LONGEST_LINE:
                if len(data) - position > _LONGEST_LINE:
                    raise Bad(f"chunk header too long: at most {_LONGEST_LINE:,} bytes are allowed")
                self._rest, position = data[position:], len(data)
                break
            self._line(data[position:end])
            position = end + 2
        return b"".join(parts), data[position:]

    def _line(self, line: bytes) -> None:
        if self._after_chunk:
            if line:
                raise Bad("chunk data is longer than the chunk size")
            self._after_chunk = False
        elif self._in_trailer:
            self._trailer += len(line)
            if self._trailer > LONGEST:
                raise Bad(f"trailer too long: at most {LONGEST:,} bytes are allowed", 431)
            self.is_over = not line
            if line:
                _check_trailer(line)
        elif (found := _SIZE.fullmatch(line)) is None:
            raise Bad("malformed chunk size")
        else:
            self._left = int(found[1], 16)
            self._after_chunk = self._left > 0
            self._in_trailer = self._left == 0


_LONGEST_LINE = 4096


def _check_trailer(line: bytes) -> None:
    """Refuse a trailer field that another reader could take for something else; its value is ignored."""
    if (found := _TRAILER.fullmatch(line)) is None:
        raise Bad("malformed trailer field: it must be 'name: value'")
    if found[1].lower() in NOT_IN_TRAILERS:
        raise Bad(f"the field {found[1].decode().lower()} is not allowed in a trailer")


def body_of_request(head: RequestHead) -> BodyReader:
    """Create the reader for the body of this request (6.3); raises Bad if its length is ambiguous."""
    body = _declared(head.fields, is_1_1=head.is_1_1)
    return Sized(0) if body is None else body


def body_of_response(head: ResponseHead, method: str) -> BodyReader:
    """Create the reader for the body of this response to a request with `method` (6.3); raises Bad."""
    if method == "HEAD" or head.status < 200 or head.status in (204, 304):
        return Sized(0)
    body = _declared(head.fields, is_1_1=head.is_1_1)
    return UntilTheEnd() if body is None else body


def _declared(fields: Fields, *, is_1_1: bool) -> BodyReader | None:
    lengths: list[bytes] = []
    codings: list[bytes] = []
    for name, value in fields:
        if name == b"content-length":
            lengths.append(value)
        elif name == b"transfer-encoding":
            codings.append(value.lower())
    if codings:
        if lengths or not is_1_1:
            raise Bad("both Content-Length and Transfer-Encoding given, or Transfer-Encoding in HTTP/1.0")
        if codings != [b"chunked"]:
            raise Bad("unsupported Transfer-Encoding: it must be 'chunked'", 501)
        return Chunked()
    if not lengths:
        return None
    if len(set(lengths)) > 1 or _LENGTH.fullmatch(lengths[0]) is None:
        raise Bad("invalid Content-Length")
    return Sized(int(lengths[0]))


def keeps(fields: Fields, *, is_1_1: bool) -> bool:
    """Whether the connection stays open after this message (9.3). HTTP/1.0 connections do not."""
    return is_1_1 and b"close" not in values(fields, b"connection")


def request_line(method: str, target: str) -> bytes:
    """Build a request line; raises ValueError for a target that would be parsed differently."""
    line = f"{method} {target} HTTP/1.1\r\n".encode()
    if _REQUEST.fullmatch(line) is None:
        raise ValueError(f"invalid request target {target!r}")
    return line


_LINES = {status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus}


def status_line(status: int) -> bytes:
    """Build the status line of a response."""
    return _LINES.get(status) or b"HTTP/1.1 %d \r\n" % status


def head_bytes(line: bytes, fields: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Build the header of a message with its empty line; raises ValueError for a value with a line break."""
    parts = [line]
    for name, value in fields:
        if b"\n" in value or b"\r" in value or b"\0" in value or b"\n" in name:
            raise ValueError(f"header {name.decode('latin-1')!r} must not contain a line break or a null byte")
        parts.append(b"%b: %b\r\n" % (name, value))
    parts.append(b"\r\n")
    return b"".join(parts)


def chunk(data: bytes) -> bytes:
    """Encode data as one chunk; empty data is the last chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)
