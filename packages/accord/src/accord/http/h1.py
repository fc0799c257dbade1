"""HTTP/1.1 messages (RFC 9112): reads requests and responses with httptools (llhttp), and writes them. PURE.

    bytes ──▶ RequestReader.feed ──▶ [RequestHead, BodyPart, ..., RequestHead, ...]

Two parties that read the same bytes differently let an attacker smuggle requests past one of them (RFC 9112, 11.2).
llhttp is strict about lengths, line breaks and names. It leaves open what is checked here: versions, transfer codings
other than `chunked`, trailers with framing fields, and how long each part of a message may be.

Four properties of httptools shape this module:

- It cannot be stopped between two messages, so one `feed` returns all that its bytes hold. Malformed bytes are the last
  item, a `Bad`, so that the requests before them are still answered.
- It takes no body from a request that asks for another protocol, such as `Upgrade: h2c`, which some clients send with
  every first POST. A server ignores an upgrade that it does not offer (RFC 9110, 7.8), so the body is read with a new
  parser, which gets a header without the upgrade.
- It cannot be told that the connection has ended: `ResponseHead.ends_with_connection` says whose body ends with it.
- A parser and the object that it calls refer to each other, so `close` separates them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser, HttpResponseParser

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
    """Return all values of a field in lower case; it may occur several times and be a list each time (RFC
    9110, 5.3).
    """
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


NOT_IN_TRAILERS = frozenset(
    {b"authorization", b"connection", b"content-length", b"content-type", b"host", b"transfer-encoding", b"upgrade"}
)
"""Fields that decide where a message ends, where it goes and who may send it (RFC 9110, 6.5.1)."""

VERSIONS = {"1.0": False, "1.1": True}

_FRAMING = (b"content-length", b"transfer-encoding")
_CHUNKED = -1
"""The length of a body in chunks."""


class BodyPart(NamedTuple):
    """Bytes of a body."""

    data: bytes
    is_last: bool


class Upgraded(NamedTuple):
    """The previous request asks for a WebSocket; `rest` is the data after it."""

    rest: bytes


Item: TypeAlias = RequestHead | ResponseHead | BodyPart | Upgraded | Bad
ParserT = TypeVar("ParserT", HttpRequestParser, HttpResponseParser)


class MessageReader(ABC, Generic[ParserT]):
    """Reads the messages from one side of a connection. httptools calls the methods whose names begin with on."""

    malformed: str
    """The beginning of the error for malformed bytes; llhttp's description follows."""

    def __init__(self) -> None:
        self.is_between = True
        """Whether each message that has begun has ended."""
        self.left = 0
        """Bytes that are missing of a body whose length is known."""
        self._parser: ParserT = self._new_parser()
        self._items: list[Item] = []
        self._fields: Fields = []
        self._parts: list[bytes] = []
        self._size = 0
        """Bytes of the header fields, or of the trailer."""
        self._unfinished = 0
        """Bytes since the last finished header or part of a body: an endless line is noticed by them."""
        self._is_in_header = True
        self._has_body = False

    def feed(self, data: bytes) -> Sequence[Item]:
        """Read these bytes; feed nothing after a `Bad` or an `Upgraded`."""
        self._items = []
        self._unfinished += len(data)
        rest: bytes | None = data
        while rest is not None:
            rest = self._read(rest)
        return self._items

    def close(self) -> None:
        """Detach the parser from this object; idempotent. Nothing can be read afterwards."""
        if hasattr(self, "_parser"):
            del self._parser

    def _read(self, data: bytes) -> bytes | None:
        """Parse these bytes; returns those that another parser must read, if any."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            return self._without_upgrade(data[upgrade.args[0] :])
        except HttpParserCallbackError as error:
            self._pass_on()
            if not isinstance(error.__context__, Bad):
                raise
            self._items.append(error.__context__)
        except HttpParserError as error:
            self._pass_on()
            self._items.append(Bad(f"{self.malformed}{error}"))
        else:
            self._pass_on()
            if self._unfinished > LONGEST:
                self._items.append(self._too_long())
        return None

    def _pass_on(self, *, is_last: bool = False) -> None:
        if self._parts or is_last:
            self._items.append(BodyPart(b"".join(self._parts), is_last))
            self._parts.clear()

    def _too_long(self) -> Bad:
        part = "headers are" if self._is_in_header else "chunk header or trailer is"
        return Bad(f"{part} too long: at most {LONGEST:,} bytes are allowed", 431)

    @abstractmethod
    def _new_parser(self) -> ParserT: ...

    @abstractmethod
    def _head(self, length: int | None, *, is_1_1: bool) -> RequestHead | ResponseHead | None:
        """Return the complete header; None for one to be ignored. `length` is None if none is declared."""

    @abstractmethod
    def _without_upgrade(self, rest: bytes) -> bytes | None:
        """Continue after a message that asks for another protocol."""

    def on_message_begin(self) -> None:
        self.is_between = False
        self._is_in_header = True
        self._fields = []
        self._size = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        fields = self._fields
        fields.append((name := name.lower(), value.rstrip(b" \t")))
        self._size += len(name) + len(value)
        if self._size > LONGEST:
            raise self._too_long()
        if len(fields) > MOST_FIELDS:
            raise Bad(f"too many header fields: at most {MOST_FIELDS:,} are allowed", 431)
        if not self._is_in_header and name in NOT_IN_TRAILERS:
            raise Bad(f"the field {name.decode()} is not allowed in a trailer")

    def on_headers_complete(self) -> None:
        is_1_1 = VERSIONS.get(version := self._parser.get_http_version())
        if is_1_1 is None:
            raise Bad(f"unsupported HTTP version {version}: it must be 1.0 or 1.1")
        length = _length(self._fields, is_1_1=is_1_1)
        self.left = length or 0
        head = self._head(length, is_1_1=is_1_1)
        if head is not None:
            self._items.append(head)
        self._begin_body(has_body=head is not None and head.has_body)

    def _begin_body(self, *, has_body: bool) -> None:
        self._has_body = has_body
        self._is_in_header = False
        self._unfinished = self._size = 0
        self._fields = []

    def on_body(self, data: bytes) -> None:
        self._unfinished = 0
        self.left -= len(data)
        self._parts.append(data)

    def on_message_complete(self) -> None:
        self._unfinished = 0
        self.is_between = True
        if self._has_body:
            self._pass_on(is_last=True)


def _length(fields: Fields, *, is_1_1: bool) -> int | None:
    """Return the declared length of a body (6.3); llhttp has refused several lengths, and a length beside a coding."""
    framing = [field for field in fields if field[0] in _FRAMING]
    if codings := [value.lower() for name, value in framing if name == b"transfer-encoding"]:
        if not is_1_1:
            raise Bad("Transfer-Encoding in HTTP/1.0")
        if codings != [b"chunked"]:
            raise Bad("unsupported Transfer-Encoding: it must be 'chunked'", 501)
        return _CHUNKED
    return int(framing[0][1]) if framing else None


class RequestReader(MessageReader[HttpRequestParser]):
    """Reads requests."""

    malformed = "malformed request: "

    def __init__(self) -> None:
        super().__init__()
        self._target = b""
        self._upgrading: RequestHead | None = None
        """The request that asks for another protocol, from its header until its body is read."""

    def _new_parser(self) -> HttpRequestParser:
        return HttpRequestParser(self)

    def on_message_begin(self) -> None:
        if self._upgrading is not None:
            return
        super().on_message_begin()
        self._target = b""

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_headers_complete(self) -> None:
        if self._upgrading is None:
            super().on_headers_complete()
        else:
            self._begin_body(has_body=self._upgrading.has_body)
            self._upgrading = None

    def _head(self, length: int | None, *, is_1_1: bool) -> RequestHead:
        method = self._parser.get_method()
        if method == b"CONNECT":
            raise Bad("unsupported method CONNECT: this server is not a proxy", 501)
        head = RequestHead(method, self._target, self._fields, is_1_1, bool(length))
        if self._parser.should_upgrade():
            self._upgrading = head
        return head

    def on_message_complete(self) -> None:
        if self._upgrading is None:  # else llhttp has skipped the body
            super().on_message_complete()

    def _without_upgrade(self, rest: bytes) -> bytes | None:
        head = self._upgrading
        assert head is not None
        if wants_websocket(head):
            self._items.append(Upgraded(rest))
            return None
        self._parser = self._new_parser()
        self._is_in_header, self._size, self._fields = True, 0, []
        framing = [field for field in head.fields if field[0] in _FRAMING]
        self._parser.feed_data(head_bytes(b"POST * HTTP/1.1\r\n", framing))
        return rest


class ResponseReader(MessageReader[HttpResponseParser]):
    """Reads responses to requests other than HEAD, which our client does not send."""

    malformed = ""

    def _new_parser(self) -> HttpResponseParser:
        return HttpResponseParser(self)

    def _head(self, length: int | None, *, is_1_1: bool) -> ResponseHead | None:
        status = self._parser.get_status_code()
        if status == _SWITCHING_PROTOCOLS:
            raise Bad("unexpected 101 Switching Protocols")
        if status < 200:
            return None  # an interim response: the real one follows
        has_body = length != 0 and status not in _WITHOUT_BODY
        return ResponseHead(status, self._fields, is_1_1, has_body, has_body and length is None)

    def _without_upgrade(self, rest: bytes) -> bytes | None:
        raise AssertionError(f"only a 101 stops the parser of responses, and it is refused; {len(rest)} bytes follow")


_SWITCHING_PROTOCOLS = 101
_WITHOUT_BODY = (204, 304)


def wants_websocket(head: RequestHead) -> bool:
    """Whether this request asks for a WebSocket."""
    return head.method == b"GET" and b"websocket" in values(head.fields, b"upgrade")
