"""The messages of the tap to its recorder: first a `RecordingPlan`, then `Parcel`s, each a kind, a time and bytes.
PURE.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, NamedTuple

import msgspec

PLAN, TO_AGENT, FROM_AGENT, STDERR, PROCESS, LOST = b"p", b">", b"<", b"e", b"s", b"l"
"""The kinds: how to record (JSON, once and first); bytes in three directions; an event of the process (JSON); and the
direction whose bytes were dropped, with their number."""

_HEAD = struct.Struct("<cdI")


class Parcel(NamedTuple):
    """Bytes that went over one stream, or something to know about it."""

    kind: bytes
    time: float
    """By the clock of `time.monotonic`, which processes of one machine share."""
    content: bytes


def pack(parcel: Parcel) -> bytes:
    """Return the parcel in the form of the pipe."""
    return _HEAD.pack(parcel.kind, parcel.time, len(parcel.content)) + parcel.content


def unpack(stream: IO[bytes]) -> Iterator[Parcel]:
    """The parcels of a pipe, until it ends; one that is cut off is left out."""
    while len(head := stream.read(_HEAD.size)) == _HEAD.size:
        kind, time, length = _HEAD.unpack(head)
        if len(content := stream.read(length)) < length:
            return
        yield Parcel(kind, time, content)


LARGEST_FILE = 256 * 1024 * 1024
"""Bytes of one file of a recording, before the next part begins."""
LARGEST_FOLDER = 2 * 1024 * 1024 * 1024
"""Bytes of all stored traces, before the oldest are removed."""


class RecordingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how a recorder writes; it is sent to the recorder's process as JSON."""

    path: str | None = None
    """The file that the user named; None for one in the folder of stored traces."""
    command: tuple[str, ...] = ()
    cwd: str = ""
    secrets: bool = False
    """Whether secrets are recorded instead of masked."""
    compress: bool = False
    """Whether each file is compressed with gzip when it is complete."""
    most_file: int = LARGEST_FILE
    most_folder: int = LARGEST_FOLDER
    most_parts: int = 0
    """Bytes of all parts of a named file, before the oldest are removed; 0 for no limit."""
    role: str = "tap"
    """The role in the header: the recording side."""
    peer: str = ""
    """The peer in the header; by default the command."""
    is_beside: bool = False
    """Whether the recorder runs beside other work, which must not wait while a file is compressed."""
    started: str = ""
    began: float = 0.0
    """The same moment on the clock of `time.monotonic`."""
    pid: int = 0
    """The process of the tap."""
