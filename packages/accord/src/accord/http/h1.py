"""HTTP/1.1 messages (RFC 9112): headers of requests and responses, and how they are written. PURE.

`h1_reader` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

LONGEST = 64 * 1024
"""The most bytes of a request line or status line with its header fields."""

MOST_FIELDS = 200
"""The most header fields of a message."""

Fields = list[tuple[bytes, bytes]]
"""Names in lower case."""

_REQUEST = re.compile(rb"[A-Z]+ [\x21-\x7e]+ HTTP/1\.1\r\n")


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
    has_body: bool


class ResponseHead(NamedTuple):
    """The status line and the header fields of a response."""

    status: int
    fields: Fields
    is_1_1: bool
    has_body: bool
    ends_with_connection: bool
    """Whether its body has no length, so that it ends where the connection ends."""


def values(fields: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """All values of a field in lower case; it may occur several times and be a list each time (RFC 9110, 5.3)."""
    return [item.strip(b" \t").lower() for given, value in fields if given == name for item in value.split(b",")]


def keeps(fields: Fields, *, is_1_1: bool) -> bool:
    """Whether the connection stays open after this message (9.3). HTTP/1.0 connections do not."""
    return is_1_1 and b"close" not in values(fields, b"connection")


@lru_cache(maxsize=64)
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
    lines = b"".join([b"%b: %b\r\n" % field for field in fields])
    if not _has_only(lines, len(fields)):
        name = next(name for name, value in fields if not _has_only(name + value, 0))
        raise _broken_line(name.decode("latin-1"))
    return b"%b%b\r\n" % (line, lines)


def request_head(method: str, target: str, fields: Sequence[tuple[str, str]]) -> bytes:
    """Build the header of a request; raises ValueError like `request_line` and `head_bytes`."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields]).encode()
    if not _has_only(lines, len(fields)):
        raise _broken_line(next(name for name, value in fields if not _has_only((name + value).encode(), 0)))
    return b"%b%b\r\n" % (request_line(method, target), lines)


def _has_only(lines: bytes, count: int) -> bool:
    """Whether these lines have this number of line ends, and no null byte. One search for all is fastest."""
    return lines.count(b"\n") == count and lines.count(b"\r") == count and b"\0" not in lines


def _broken_line(name: str) -> ValueError:
    return ValueError(f"header {name!r} must not contain a line break or a null byte")


def chunk(data: bytes) -> bytes:
    """Encode data as one chunk; empty data is the last chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)
