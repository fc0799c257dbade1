"""Header blocks of HTTP/2: fields as HPACK (RFC 7541), with the library `hpack`. PURE.

The characters of all fields of a block are checked with one search: names and values are joined by null bytes, which
neither may contain.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TypeAlias

from hpack import Decoder, Encoder, HPACKError, OversizedHeaderListError

from accord.http.h1 import Fields
from accord.http.h2_frames import Code, Fault

Text: TypeAlias = Sequence[tuple[bytes, bytes]] | Sequence[tuple[str, str]]

TABLE = 4096
"""The most bytes of a table of fields: the default, of which we announce no other. Ours is not larger either."""

MOST = 64 * 1024
"""The most bytes of a header list, as RFC 9113 (6.5.2) counts them: 32 for each field besides its name and value."""

MOST_READY = 8
"""The most blocks that are kept for their next use."""

# 8.2.1, and RFC 9110 (5.1, 5.5): names are tokens in lower case, values have no control characters or outer blanks
_FIELD = rb":?[!#$%&'*+\-.^_`|~0-9a-z]+\0(?![ \t])[\t\x20-\x7e\x80-\xff]*(?<![ \t])\0"
_VALID = re.compile(rb"(?:" + _FIELD + rb")*")


class BlockWriter:
    """Encodes the header blocks of one connection.

    The values of the names in `changing` differ each time. Only the first is added to the table, for its name: more of
    them would displace the fields that repeat. They come last in a block.
    """

    def __init__(self, changing: Collection[str] = ()) -> None:
        self._encoder = Encoder()
        self._changing = changing
        self._known: set[str | bytes] = set()
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
        changing, ready = self._changing, self._ready
        stable = tuple([field for field in fields if field[0] not in changing])
        block = ready.get(stable)
        if block is None:
            # Huffman codes would save a few bytes of the few fields that are not in the table.
            block = self._encoder.encode(stable, huffman=False)
            # Only a field that is in the table is one byte. hpack takes a sixth of a turn to find them again each time.
            if len(block) > len(stable) or len(ready) >= MOST_READY:
                ready.clear()
            else:
                ready[stable] = block
        if len(stable) < len(fields):
            return block + b"".join([self._once(*field) for field in fields if field[0] in changing])
        return block

    def _once(self, name: str | bytes, value: str | bytes) -> bytes:
        is_known = name in self._known
        if not is_known:
            self._known.add(name)
            self._ready.clear()
        return self._encoder.encode([(name, value, is_known)], huffman=False)


class BlockReader:
    """Decodes the header blocks of one connection."""

    def __init__(self) -> None:
        self._decoder = Decoder(MOST)

    def decode(self, block: bytes) -> tuple[Fields, bool]:
        """The fields of a block, and whether their characters are valid; raises Fault."""
        try:
            fields: Fields = list(self._decoder.decode(block, raw=True))
        except OversizedHeaderListError as error:
            raise Fault(Code.ENHANCE_YOUR_CALM, str(error)) from error
        except HPACKError as error:
            raise Fault(Code.COMPRESSION_ERROR, str(error)) from error
        joined = b"".join([b"%b\0%b\0" % field for field in fields])
        # The count finds a null byte within a name or a value, which would look like the end of it.
        return fields, joined.count(b"\0") == 2 * len(fields) and _VALID.fullmatch(joined) is not None
