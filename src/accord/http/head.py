"""HTTP/1.1 on the wire (RFC 9112): the heads of requests and responses, and bodies of all three kinds. PURE.

    b"POST /acp HTTP/1.1\\r\\n..." ──▶ request_head ──▶ RequestHead ──▶ body_of ──▶ Body.feed, as it comes

Strict, as what two parties read differently lets one of them smuggle requests past the other (11.2): one grammar, in
two expressions, and whatever does not fit it is refused. There is no leniency to switch on.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

LONGEST = 64 * 1024
"""Bytes that a head may have."""

MOST_FIELDS = 200

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
    """This is no HTTP, or none that is spoken here; `status` is what a server answers."""

    def __init__(self, problem: str, status: int = 400) -> None:
        super().__init__(problem)
        self.status = status


class RequestHead(NamedTuple):
    method: bytes
    target: bytes
    fields: Fields
    is_1_1: bool


class ResponseHead(NamedTuple):
    status: int
    fields: Fields
    is_1_1: bool


def request_head(data: bytes) -> RequestHead:
    """The head that these bytes are, with the line break of the last field and without the empty line; raises Bad."""
    line = _REQUEST.match(data)
    if line is None:
        raise Bad("the request line is none")
    method, target, minor = line.groups()
    return RequestHead(method, target, _fields(data, line.end()), minor == b"1")


def response_head(data: bytes) -> ResponseHead:
    line = _RESPONSE.match(data)
    if line is None:
        raise Bad("the status line is none")
    minor, status = line.groups()
    return ResponseHead(int(status), _fields(data, line.end()), minor == b"1")


def _fields(data: bytes, start: int) -> Fields:
    if (found := _FIELDS.match(data, start)) is None or found.end() != len(data):
        raise Bad("a field of the head is none")
    fields = [(name.lower(), value.strip(b" \t")) for name, value in _EACH.findall(data, start)]
    if len(fields) > MOST_FIELDS:
        raise Bad("the head has too many fields", 431)
    return fields


def values(fields: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """What the field says, which may be there several times and be a list each time (RFC 9110, 5.3)."""
    return [item.strip(b" \t").lower() for given, value in fields if given == name for item in value.split(b",")]


class Body(ABC):
    """What follows a head, as it comes."""

    def __init__(self) -> None:
        self.is_over = False

    @abstractmethod
    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """What of these bytes belongs to the body, and what is behind it; raises Bad."""

    def end(self) -> bool:
        """Nothing more comes: whether that is how it may end."""
        return self.is_over


class Sized(Body):
    """As long as its head says."""

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


class UntilTheEnd(Body):
    """As long as the connection."""

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        return data, b""

    def end(self) -> bool:
        return True


class Chunked(Body):
    """In pieces that say how long they are (7.1)."""

    def __init__(self) -> None:
        super().__init__()
        self._rest = b""
        self._left = 0
        """Bytes of this piece that are still to come."""
        self._behind_piece = False
        self._in_trailer = False
        self._trailer = 0

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        data = self._rest + data if self._rest else data
        self._rest = b""
        parts: list[bytes] = []
        position = 0
        while not self.is_over:
            if self._left:
                piece = data[position : position + self._left]
                parts.append(piece)
                position += len(piece)
                self._left -= len(piece)
                if self._left:
                    break
            end = data.find(b"\r\n", position)
            if end < 0 or end - position > _LONGEST_LINE:
                if len(data) - position > _LONGEST_LINE:
                    raise Bad("a line between the pieces of a body does not end")
                self._rest, position = data[position:], len(data)
                break
            self._line(data[position:end])
            position = end + 2
        return b"".join(parts), data[position:]

    def _line(self, line: bytes) -> None:
        if self._behind_piece:
            if line:
                raise Bad("a piece of a body is longer than it says")
            self._behind_piece = False
        elif self._in_trailer:
            self._trailer += len(line)
            if self._trailer > LONGEST:
                raise Bad("the trailer is too long", 431)
            self.is_over = not line
            if line:
                _check_trailer(line)
        elif (found := _SIZE.fullmatch(line)) is None:
            raise Bad("a piece of a body does not say how long it is")
        else:
            self._left = int(found[1], 16)
            self._behind_piece = self._left > 0
            self._in_trailer = self._left == 0


_LONGEST_LINE = 4096


def _check_trailer(line: bytes) -> None:
    """Refuse a trailer field that another reader could take for something else. What it says is not looked at."""
    if (found := _TRAILER.fullmatch(line)) is None:
        raise Bad("malformed trailer field: it must be 'name: value'")
    if found[1].lower() in NOT_IN_TRAILERS:
        raise Bad(f"the field {found[1].decode().lower()} is not allowed in a trailer")


def body_of_request(head: RequestHead) -> Body:
    """What follows this head (6.3); raises Bad where that is not certain."""
    body = _declared(head.fields, is_1_1=head.is_1_1)
    return Sized(0) if body is None else body


def body_of_response(head: ResponseHead, method: str) -> Body:
    if method == "HEAD" or head.status < 200 or head.status in (204, 304):
        return Sized(0)
    body = _declared(head.fields, is_1_1=head.is_1_1)
    return UntilTheEnd() if body is None else body


def _declared(fields: Fields, *, is_1_1: bool) -> Body | None:
    lengths: list[bytes] = []
    codings: list[bytes] = []
    for name, value in fields:
        if name == b"content-length":
            lengths.append(value)
        elif name == b"transfer-encoding":
            codings.append(value.lower())
    if codings:
        if lengths or not is_1_1:
            raise Bad("the length of the body is said in two ways, or in one that this version does not have")
        if codings != [b"chunked"]:
            raise Bad("a body is sent as it is, or in chunks", 501)
        return Chunked()
    if not lengths:
        return None
    if len(set(lengths)) > 1 or _LENGTH.fullmatch(lengths[0]) is None:
        raise Bad("the length of the body is none")
    return Sized(int(lengths[0]))


def keeps(fields: Fields, *, is_1_1: bool) -> bool:
    """Whether the connection lives on behind this message (9.3). What is older than HTTP/1.1 is not kept."""
    return is_1_1 and b"close" not in values(fields, b"connection")


def request_line(method: str, target: str) -> bytes:
    """The line that a request begins with. Raises ValueError for a target that would be read as something else."""
    line = f"{method} {target} HTTP/1.1\r\n".encode()
    if _REQUEST.fullmatch(line) is None:
        raise ValueError(f"{target!r} is no target of a request")
    return line


def head_bytes(line: bytes, fields: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A head with its empty line. Raises ValueError rather than let a value break out of its line."""
    parts = [line]
    for name, value in fields:
        if b"\n" in value or b"\r" in value or b"\0" in value or b"\n" in name:
            raise ValueError(f"the field {name!r} of a head has a line break")
        parts.append(b"%b: %b\r\n" % (name, value))
    parts.append(b"\r\n")
    return b"".join(parts)


def chunk(data: bytes) -> bytes:
    """A piece of a body in chunks; nothing ends it."""
    return b"%x\r\n%b\r\n" % (len(data), data)
