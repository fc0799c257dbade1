"""Header blocks of HTTP/2 as requests, responses and trailers (RFC 9113, 8), with the library `hpack`. PURE.

`BlockReader` and `BlockWriter` translate between blocks and fields (RFC 7541). `request_of`, `response_of` and
`check_trailers` read fields, and refuse malformed messages.

The characters of all fields of a block are checked with one search: names and values are joined by null bytes, which
neither may contain.

The same fields are sent again and again. hpack looks each of them up in the table every time, in Python: a fifth of the
bytecodes of a turn. So both ends cache the encoding of repeated fields until the table changes: the writer the blocks
of fields that are all in the table, and the reader the fields with which blocks begin. Such a block has one byte for
each field. A field whose value differs each time comes last, as a literal that both ends know how to read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from hpack import Decoder, Encoder, HPACKError, OversizedHeaderListError

from accord.h2.h2_frames import Code, Fault, Fields

Text: TypeAlias = Sequence[tuple[bytes, bytes]] | Sequence[tuple[str, str]]

TABLE = 4096
"""The maximum size of a table of fields in bytes: the default, since we announce no other. Ours is not larger
either.
"""

MOST_HEADERS = 64 * 1024
"""The most bytes of a header list, as RFC 9113 (6.5.2) counts them: 32 for each field besides its name and value."""

MOST_READY = 8
"""The most blocks that are cached."""

LONGEST_READY = 64
"""The most fields of a cached block."""

_OVERHEAD = 32
"""Bytes that each field counts besides its name and value."""

NEVER_INDEXED = 0x10
"""The first byte of a literal with its own name, which is never added to a table (RFC 7541, 6.2.3)."""

_SHORT = 0x7F
"""Strings shorter than this have their length in one byte (5.1, 5.2)."""

_IN_TABLE = re.compile(rb"[\x81-\xfe]+")
"""Fields that are in the table, of one byte each (6.1)."""

_RESIZES = range(0x20, 0x40)
"""The first bytes of a new size of the table (6.3)."""

# 8.2.1, and RFC 9110 (5.1, 5.5): names are tokens in lower case, values have no control characters or outer blanks
_FIELD = rb":?[!#$%&'*+\-.^_`|~0-9a-z]+\0(?![ \t])[\t\x20-\x7e\x80-\xff]*(?<![ \t])\0"
_VALID = re.compile(rb"(?:" + _FIELD + rb")*")


class BlockWriter:
    """Encodes the header blocks of one connection.

    The values of the names in `changing` differ each time. They are never added to the table, where they would displace
    the fields that repeat, and come last in a block.
    """

    def __init__(self, changing: Collection[str] = ()) -> None:
        self._encoder = Encoder()
        self._changing = changing
        self._limit = TABLE
        self._smallest: int | None = None
        """The smallest limit since the last block, if there was one."""
        self._ready: dict[tuple[tuple[bytes, bytes] | tuple[str, str], ...], bytes] = {}
        """Blocks for fields that are all in the table. They are valid until the table changes."""

    def resize(self, limit: int) -> None:
        """Note the peer's limit of the table."""
        self._limit = min(limit, TABLE)
        self._smallest = self._limit if self._smallest is None else min(self._smallest, self._limit)

    def _apply(self, smallest: int) -> None:
        """Announce the smallest limit since the last block, and the last one (RFC 7541, 4.2).

        hpack would announce all limits, also those that are larger than a later one, and none that is set twice.
        """
        for limit in (smallest, self._limit):
            if limit != self._encoder.header_table_size:
                self._encoder.header_table_size = limit
        self._smallest = None
        self._ready.clear()

    def encode(self, fields: Text) -> bytes:
        """Build a header block."""
        if self._smallest is not None:
            self._apply(self._smallest)
        changing = self._changing
        if not changing:
            return self._stable(tuple(fields))
        block = self._stable(tuple([field for field in fields if field[0] not in changing]))
        return block + b"".join([self._literal(*field) for field in fields if field[0] in changing])

    def _stable(self, fields: tuple[tuple[bytes, bytes] | tuple[str, str], ...]) -> bytes:
        ready = self._ready
        block = ready.get(fields)
        if block is None:
            # Huffman codes would save a few bytes of the few fields that are not in the table.
            block = self._encoder.encode(fields, huffman=False)
            # Only a field that is in the table is one byte.
            if len(block) > len(fields) or len(ready) >= MOST_READY:
                ready.clear()
            else:
                ready[fields] = block
        return block

    def _literal(self, name: str | bytes, value: str | bytes) -> bytes:
        raw_name, raw_value = _raw(name), _raw(value)
        if len(raw_name) < _SHORT > len(raw_value):
            return b"%c%c%b%c%b" % (NEVER_INDEXED, len(raw_name), raw_name, len(raw_value), raw_value)
        return self._encoder.encode([(raw_name, raw_value, True)], huffman=False)


def _raw(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


class _Ready(msgspec.Struct, frozen=True, gc=False):
    """The fields that a block begins with."""

    fields: Fields
    is_valid: bool
    size: int


class BlockReader:
    """Decodes the header blocks of one connection."""

    def __init__(self) -> None:
        self._decoder = Decoder(MOST_HEADERS)
        self._ready: dict[bytes, _Ready] = {}
        """Fields by their encoding. They are valid until the table changes."""

    def decode(self, block: bytes) -> tuple[Fields, bool]:
        """The fields of a block, and whether their characters are valid; raises Fault."""
        found = _IN_TABLE.match(block)
        end = 0 if found is None else found.end()
        rest = block[end:]
        if not 0 < end <= LONGEST_READY or (rest and rest[0] in _RESIZES):
            self._ready.clear()
            fields = self._read(block)
            return fields, _are_valid(fields)
        begin = self._begin(block[:end])
        if not rest:
            return begin.fields, begin.is_valid
        others = _short_literal(rest)
        if others is None:
            self._ready.clear()
            others = self._read(rest)
        if begin.size + _size(others) > MOST_HEADERS:
            raise Fault(Code.ENHANCE_YOUR_CALM, f"a header list has more than {MOST_HEADERS:,} bytes")
        return begin.fields + others, begin.is_valid and _are_valid(others)

    def _begin(self, block: bytes) -> _Ready:
        """Return the fields of these bytes, of which each is a field in the table."""
        if (ready := self._ready.get(block)) is None:
            fields = self._read(block)
            ready = _Ready(fields, _are_valid(fields), _size(fields))
            if len(self._ready) >= MOST_READY:
                self._ready.clear()
            self._ready[block] = ready
        return ready

    def _read(self, block: bytes) -> Fields:
        try:
            return list(self._decoder.decode(block, raw=True))
        except OversizedHeaderListError as error:
            raise Fault(Code.ENHANCE_YOUR_CALM, str(error)) from error
        except HPACKError as error:
            raise Fault(Code.COMPRESSION_ERROR, str(error)) from error


def _short_literal(block: bytes) -> Fields | None:
    """The field of a block that is one short literal and not for the table, as our writer ends its blocks."""
    if block[0] != NEVER_INDEXED or len(block) < 3 or (name_end := 2 + block[1]) >= len(block):
        return None
    if block[1] >= _SHORT or block[name_end] >= _SHORT or name_end + 1 + block[name_end] != len(block):
        return None
    return [(block[2:name_end], block[name_end + 1 :])]


def _size(fields: Fields) -> int:
    return sum([len(name) + len(value) + _OVERHEAD for name, value in fields])


def _are_valid(fields: Fields) -> bool:
    joined = b"".join([b"%b\0%b\0" % field for field in fields])
    # The count finds a null byte within a name or a value, which would look like a separator.
    return joined.count(b"\0") == 2 * len(fields) and _VALID.fullmatch(joined) is not None


_METHOD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PATH = re.compile(rb"/[\x21-\x7e]*|\*")
_STATUS = re.compile(rb"[1-5][0-9][0-9]")
_LENGTH = re.compile(rb"[0-9]{1,18}")

OF_A_CONNECTION = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"})
"""Connection-specific fields, which HTTP/2 forbids (8.2.2)."""

REQUEST_NAMES = frozenset({b":method", b":scheme", b":authority", b":path"})


class MalformedMessage(Exception):
    """A message that breaks a rule of 8.1.1: its stream ends with PROTOCOL_ERROR."""


class Head(NamedTuple):
    """The header of a request, or of a response, whose `method` and `target` are empty and `status` is not 0."""

    fields: Fields
    """Without pseudo-header fields. A request's `:authority` is the field `host`."""
    method: bytes = b""
    target: bytes = b""
    status: int = 0
    length: int | None = None
    """The value of Content-Length."""


def request_of(found: Fields) -> Head:
    """Read the header of a request; raises MalformedMessage."""
    pseudo, fields = _split(found, REQUEST_NAMES)
    length = _check(fields)
    hosts = [value for name, value in fields if name == b"host"]
    authority = pseudo.get(b":authority")
    if len(hosts) > 1:
        raise MalformedMessage("more than one host")
    if authority is None:
        if not hosts:
            raise MalformedMessage("a request without :authority or host")
    elif hosts and hosts[0] != authority:
        raise MalformedMessage(":authority and host differ")
    elif authority:
        fields = [(b"host", authority), *(fields if not hosts else [field for field in fields if field[0] != b"host"])]
    method, target = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
    if _METHOD.fullmatch(method) is None:
        raise MalformedMessage("a request without a valid :method")
    if _PATH.fullmatch(target) is None:  # CONNECT has no path, and we do not support it
        raise MalformedMessage("a request without a valid :path")
    if not pseudo.get(b":scheme"):
        raise MalformedMessage("a request without :scheme")
    return Head(_with_one_cookie(fields), method, target, length=length)


def response_of(found: Fields) -> Head:
    """Read the header of a response; raises MalformedMessage."""
    pseudo, fields = _split(found, {b":status"})
    status = pseudo.get(b":status", b"")
    if _STATUS.fullmatch(status) is None or status == b"101":  # 8.6: no change of protocols
        raise MalformedMessage("a response without a valid :status")
    return Head(fields, status=int(status), length=_check(fields))


def check_trailers(found: Fields) -> None:
    """Check the fields after a body; raises MalformedMessage."""
    _check(_split(found, ())[1])


def _split(found: Fields, allowed: frozenset[bytes] | set[bytes] | tuple[()]) -> tuple[dict[bytes, bytes], Fields]:
    """Split the pseudo-header fields, which come first and once each (8.3), from the others."""
    pseudo: dict[bytes, bytes] = {}
    for name, value in found:
        if name[0] != 0x3A:
            break
        if name not in allowed or name in pseudo:
            raise MalformedMessage(f"the pseudo-header field {name!r} is not allowed here, or occurs twice")
        pseudo[name] = value
    return pseudo, found[len(pseudo) :]


def _check(fields: Fields) -> int | None:
    """Check which fields occur; returns the value of Content-Length."""
    length: int | None = None
    for name, value in fields:
        if name in _SPECIAL:
            if name == b"content-length":
                if length is not None or _LENGTH.fullmatch(value) is None:
                    raise MalformedMessage("content-length must be one number")
                length = int(value)
            elif name != b"te" or value.lower() != b"trailers":
                raise MalformedMessage(f"the field {name!r} is not allowed in HTTP/2")
        elif name[0] == 0x3A:
            raise MalformedMessage(f"the pseudo-header field {name!r} must come first")
    return length


_SPECIAL = OF_A_CONNECTION | {b"content-length", b"te"}


def _with_one_cookie(fields: Fields) -> Fields:
    """The fields with all cookies in one: clients may split them (8.2.3)."""
    cookies = [value for name, value in fields if name == b"cookie"]
    if len(cookies) < 2:
        return fields
    return [*(field for field in fields if field[0] != b"cookie"), (b"cookie", b"; ".join(cookies))]
