"""Splits bytes into frames: one JSON text each.

    read ──▶ FrameReader.feed ──▶ [frame, frame, ...]     a line is a frame
                 │ keeps the unfinished line
                 └ past the limit ──▶ its two ends ──▶ outline ──▶ Oversized

A frame past the limit is skipped: only its start and its end are kept. One of the two sides must still learn of it: a
request has to be answered under its own id, and an answer has to fail the request that it belongs to. A message is
large because of one value, its params or its result. So the members before it are at the start, and those after it at
the end: that is enough to know the id, and whether there is a method.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

LIMIT = 64 * 1024 * 1024
"""Bytes that a line may have before it is skipped."""

RequestId: TypeAlias = int | str


class Oversized(msgspec.Struct, frozen=True):
    """A frame that was skipped because it is longer than the limit, and the kind of message that it was.

    | has_method | has_id | it was | what is done |
    |---|---|---|---|
    | yes | yes | a request | an error under `id` is sent |
    | yes | no | a notification | an error under null is sent, so that the peer learns of the loss |
    | no | yes | an answer | the request with `id` fails |
    | no | no | unknown | an error under null is sent |

    `length` counts the bytes of its line. `id` is None for null and for an invalid id (`true`, `1.5`, far too long).
    """

    length: int
    id: RequestId | None = None
    has_id: bool = False
    has_method: bool = False


class FrameReader:
    """Splits the bytes that arrive into frames.

    >>> reader = FrameReader()
    >>> reader.feed(b'{"a":1}\\r\\n\\n{"b"')
    [b'{"a":1}']
    >>> reader.feed(b':2}\\n')
    [b'{"b":2}']
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._line = io.BytesIO()  # unlike joined parts, it returns a line without a copy
        self._length = 0
        self._ends: tuple[bytes, bytes] | None = None
        """The start and the end of the received part of a frame that is skipped."""

    @property
    def buffered(self) -> int:
        """Return the number of bytes of an unfinished line that are kept; 0 while a frame is skipped."""
        return 0 if self._ends else self._length

    def feed(self, chunk: bytes) -> Sequence[bytes | Oversized]:
        """The frames that these bytes complete."""
        # One message in this read, as in a dialogue. `find` compares words of memory and `split` bytes, so a message
        # of 1 KB takes half of the instructions.
        last = len(chunk) - 1
        if (
            chunk.find(b"\n") == last
            and 0 < last < self._limit
            and not self._length
            and chunk[0] == _OPENING
            and chunk[last - 1] == _CLOSING  # from brace to brace: there is nothing to remove
        ):
            return [chunk[:last]]
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and not (rest or self._length):
            return self._whole_lines(lines, chunk)
        frames: list[bytes | Oversized] = []
        if lines and self._length:
            self._keep(lines.pop(0))
            frames += self._end_line()
        if lines:
            frames += self._whole_lines(lines, chunk)
        if rest:
            self._keep(rest)
        return frames

    def finish(self) -> list[bytes | Oversized]:
        """The frame that the end of the input completes; a last line needs no newline."""
        return self._end_line()

    def _whole_lines(self, lines: list[bytes], chunk: bytes) -> Sequence[bytes | Oversized]:
        if len(chunk) > self._limit:
            return [frame for line in lines for frame in self._one_line(line)]
        # No line needs tidying if none is blank, starts with a BOM or ends in a carriage return. Comparing all lines
        # with a brace and searching the chunk costs a fifth of checking each line.
        if min(lines) >= b"{" and chunk.find(b"\r") < 0 and (chunk.find(b"\xef") < 0 or max(lines) < b"|"):
            return lines
        return [frame for line in lines if (frame := _tidy(line))]

    def _one_line(self, line: bytes) -> list[bytes | Oversized]:
        self._keep(line)
        return self._end_line()

    def _keep(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= self._limit:
            self._line.write(part)
            return
        if self._ends is None:
            line = self._line.getvalue()
            self._ends = line[:HEAD], line[-TAIL:]
            self._line = io.BytesIO()
        head, tail = self._ends
        self._ends = head + part[: HEAD - len(head)], (tail + part[-TAIL:])[-TAIL:]

    def _end_line(self) -> list[bytes | Oversized]:
        line, length, ends = self._line, self._length, self._ends
        self._line, self._length, self._ends = io.BytesIO(), 0, None
        if ends:
            members = outline(*ends)
            return [Oversized(length, as_id(members.get("id")), "id" in members, members.get("method") is not None)]
        frame = _tidy(line.getvalue())
        return [frame] if frame else []


def joined(frames: Sequence[bytes]) -> bytes:
    """Return these frames as they are sent over the wire.

    >>> joined([b'{"a":1}', b'{"b":2}'])
    b'{"a":1}\\n{"b":2}\\n'
    """
    return frames[0] + b"\n" if len(frames) == 1 else b"\n".join((*frames, b""))


def outline(text: bytes, end: bytes = b"") -> dict[str, Any]:
    """Return the members of an object that the start and the end of its text show; `end` if not all of it is here.

    A value that continues past the start is an empty object.

    >>> outline(b'{"jsonrpc":"2.0","id":7,"result":{"text":"...')
    {'jsonrpc': '2.0', 'id': 7, 'result': {}}
    """
    import json  # few programs get such a message

    head, at = text[:HEAD].decode("utf-8-sig", "replace"), 0
    members: dict[str, Any] = {}
    member, decode = re.compile(_MEMBER), json.JSONDecoder(strict=False).raw_decode
    with suppress(ValueError, RecursionError):
        while found := member.match(head, at):
            name, _ = decode(found[1])
            members[name] = {}
            value, at = decode(head, found.end())
            if at < len(head):  # else a number may continue
                members[name] = value
        if len(text) < HEAD and not re.fullmatch(rf"{_SPACE}\}}?{_SPACE}", head[at:]):
            return {}  # no JSON
    if len(text) >= HEAD and (last := re.search(_LAST_MEMBERS, (end or text)[-TAIL:])):
        with suppress(ValueError):
            members |= decode(f"{{{last[1].decode('utf-8', 'replace')[1:]}}}")[0]
    return members


def as_id(value: object) -> RequestId | None:
    """Return this JSON value as a request's id; None if it cannot be one.

    JSON-RPC, Request object: an id is a string or a number, which should have no fraction. `1.0` has none, so it is 1.
    """
    if type(value) is int or type(value) is str:
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _tidy(line: bytes) -> bytes:
    frame = line.removeprefix(_BOM).rstrip(b"\r")
    return b"" if frame.isspace() else frame


_BOM = b"\xef\xbb\xbf"

HEAD = 4096
"""Bytes at the start of an unreadable message that are searched for its id."""
TAIL = 2048
"""Bytes at its end that are searched, too: some peers write the id last."""

_OPENING, _CLOSING = ord("{"), ord("}")

# Possessive, so that no input makes the patterns backtrack.
_SPACE, _STRING = r"[ \t\r\n]*+", r'"(?:[^"\\]++|\\.)*+"'
_MEMBER = rf"{_SPACE}[{{,]{_SPACE}({_STRING}){_SPACE}:{_SPACE}"
_FLAT = rf",{_SPACE}{_STRING}{_SPACE}:{_SPACE}(?:{_STRING}|[-+.0-9eE]++|null|true|false){_SPACE}"
_LAST_MEMBERS = rf"((?:{_FLAT})++)\}}{_SPACE}\Z".encode()
"""The members at the end of an object, after one whose value is an object or an array."""
