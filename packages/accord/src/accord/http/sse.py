"""Server-sent events: encodes messages as an event stream and decodes them. PURE.

    event ──▶ b"id: 7\\ndata: {...}\\n\\n" ──▶ EventReader.feed ──▶ [ServerSentEvent("7", b"{...}")]
                                                   └ past the limit ──▶ ServerSentEvent("7", Oversized)

A message past the limit is skipped to its end like a line over stdio (`FrameReader`), so that the request that it
belongs to fails and the connection continues.

Comments keep a stream alive. One comment of ours carries data: `:session ID` on the connection's stream announces
messages for that session, so that a client opens the stream of a session it did not know. Other clients ignore it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote

from accord.jsonrpc.line_frames import FrameReader, Oversized

ALIVE = b":\n\n"
ANNOUNCED = b":session "


class ServerSentEvent(NamedTuple):
    """One event of a stream. A comment that announces a session has no data."""

    id: str | None
    data: bytes | Oversized
    session: str | None = None


class TooLong(Exception):
    """A line that is not data is larger than the limit."""


def event(number: int, message: bytes) -> bytes:
    """Encode a message as an event. Line breaks between JSON values become spaces."""
    if b"\n" in message or b"\r" in message:
        message = message.replace(b"\r", b" ").replace(b"\n", b" ")
    return b"id: %d\ndata: %b\n\n" % (number, message)


def announcement(session: str) -> bytes:
    """Encode the comment that announces a session."""
    return ANNOUNCED + quote(session).encode() + b"\n\n"


class EventReader:
    """Decodes an event stream from chunks cut anywhere; lines end in LF, CRLF or CR.

    >>> EventReader(1000).feed(b'id: 7\\ndata: {"a":\\ndata: 1}\\n\\ndata: {"b"')
    [ServerSentEvent(id='7', data=b'{"a":\\n1}', session=None)]
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._id: str | None = None
        self._size = 0
        self._skipping: FrameReader | None = None
        """Reads the data of an event past the limit, and keeps its id."""
        self._is_in_skipped = False
        """Whether the beginning of the current line was passed to it."""
        self._skip_newline = False
        self._at_start = True

    def feed(self, chunk: bytes) -> Sequence[ServerSentEvent]:
        """Add bytes; returns the events they complete; raises TooLong."""
        if self._skip_newline and chunk:  # the last chunk ended in CR: a LF would belong to it
            self._skip_newline = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._skip_newline = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        if self._is_in_skipped:
            self._skip(lines.pop(0))
            self._is_in_skipped = not lines
            if not lines:
                return []
        if self._rest and len(lines) > 1:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        found = self._found(lines[:-1])
        self._rest += lines[-1]
        if len(self._rest) + self._size > self._limit + _OVERHEAD:
            self._skip_rest()
        return found

    def _skip_rest(self) -> None:
        """Read the unfinished line as part of an event past the limit."""
        name, colon, value = bytes(self._rest).partition(b":")
        if name != b"data" or not colon:
            raise TooLong
        self._skip(value.removeprefix(b" "))
        self._is_in_skipped = True
        self._rest.clear()

    def _skip(self, data: bytes) -> None:
        if self._skipping is None:
            self._skipping = FrameReader(self._limit)
            self._skipping.feed(b" ".join((*self._data, b"")))
            self._data, self._size = [], 0
        self._skipping.feed(data)

    def _found(self, lines: Sequence[bytes]) -> Sequence[ServerSentEvent]:
        return [found for line in lines if (found := self._line(line)) is not None]

    def _line(self, line: bytes) -> ServerSentEvent | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._dispatch()
        if line.startswith(ANNOUNCED):
            return ServerSentEvent(None, b"", unquote(line[len(ANNOUNCED) :].decode("ascii", "replace")))
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value) + 1  # with its line break, so that empty lines count as well
            if self._skipping is not None or self._size > self._limit + 1:
                self._skip(value + b" ")
            else:
                self._data.append(value)
        elif name == b"id":
            self._id = value.decode("utf-8", "replace")
        return None

    def _dispatch(self) -> ServerSentEvent | None:
        skipping, self._skipping = self._skipping, None
        data, self._data, self._size = self._data, [], 0
        event_id, self._id = self._id, None
        if skipping is not None:
            return next((ServerSentEvent(event_id, frame) for frame in skipping.finish()), None)
        return ServerSentEvent(event_id, b"\n".join(data)) if data else None


_OVERHEAD = 64
