"""What the tap tells its recorder: parcels over a pipe, each a kind, a time and bytes. PURE."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, NamedTuple

PLAN, TO_AGENT, FROM_AGENT, STDERR, PROCESS, LOST = b"p", b">", b"<", b"e", b"s", b"l"
"""The kinds: how to record (JSON, once and first); bytes in three directions; an event of the process (JSON); and the
direction whose bytes were dropped, with their number."""

_HEAD = struct.Struct("<cdI")


class Parcel(NamedTuple):
    """Bytes that went over one stream, or something to know about it."""

    kind: bytes
    time: float
    """On the clock of `time.monotonic`, which processes of one machine share."""
    content: bytes


def packed(parcel: Parcel) -> bytes:
    """The parcel as it goes over the pipe."""
    return _HEAD.pack(parcel.kind, parcel.time, len(parcel.content)) + parcel.content


def unpacked(stream: IO[bytes]) -> Iterator[Parcel]:
    """The parcels of a pipe, until it ends; one that is cut off is left out."""
    while len(head := stream.read(_HEAD.size)) == _HEAD.size:
        kind, time, length = _HEAD.unpack(head)
        if len(content := stream.read(length)) < length:
            return
        yield Parcel(kind, time, content)
