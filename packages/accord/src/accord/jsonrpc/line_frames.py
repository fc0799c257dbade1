"""Bytes into frames: one JSON text each.

    read ──▶ FrameReader.feed ──▶ [frame, frame, ...]     a line is a frame
                 │ keeps the unfinished line
                 └ past the limit ──▶ Outline ──▶ Oversized

A frame past the limit is skipped to its end without being kept. One of the two sides must still learn of it: a request
has to be answered under its own id, and an answer has to fail the request that it belongs to. So an `Outline` reads the
bytes as they pass and keeps the top level of the object, without nested values and long strings. That is enough to know
the id, and whether there is a method.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, AnyStr, TypeAlias, cast

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
        self._line = io.BytesIO()  # unlike parts that are joined, it hands out a line without a copy
        self._length = 0
        self._outline: Outline | None = None

    @property
    def buffered(self) -> int:
        """The number of bytes of an unfinished line that are kept; 0 while a frame is skipped."""
        return 0 if self._outline else self._length

    def feed(self, chunk: bytes) -> Sequence[bytes | Oversized]:
        """The frames that these bytes complete."""
        # One message in this read, as in a dialogue. `find` compares words of memory and `split` bytes, so a message of
        # 1 KB takes half of the instructions.
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
        # No line needs tidying if none is blank, starts with a BOM or ends in a carriage return. To compare all lines
        # with a brace and to search the chunk costs a fifth of checking each line.
        if min(lines) >= b"{" and chunk.find(b"\r") < 0 and (chunk.find(b"\xef") < 0 or max(lines) < b"|"):
            return lines
        return [frame for line in lines if (frame := _tidy(line))]

    def _one_line(self, line: bytes) -> list[bytes | Oversized]:
        self._keep(line)
        return self._end_line()

    def _keep(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > self._limit and not self._outline:
            self._outline = Outline()
            self._outline.feed(self._line.getvalue())
            self._line = io.BytesIO()
        if self._outline:
            self._outline.feed(part)
        else:
            self._line.write(part)

    def _end_line(self) -> list[bytes | Oversized]:
        line, length, outline = self._line, self._length, self._outline
        self._line, self._length, self._outline = io.BytesIO(), 0, None
        if outline:
            return [_oversized(length, outline.members())]
        frame = _tidy(line.getvalue())
        return [frame] if frame else []


def joined(frames: Sequence[bytes]) -> bytes:
    """These frames as they go over the wire.

    >>> joined([b'{"a":1}', b'{"b":2}'])
    b'{"a":1}\\n{"b":2}\\n'
    """
    return frames[0] + b"\n" if len(frames) == 1 else b"\n".join((*frames, b""))


class Outline:
    """The top level of a JSON object that is read once and not kept: nested values are emptied, long strings left out.

        {"jsonrpc":"2.0","id":7,"result":{"text":"... 60 MB ..."}}   ->   {"jsonrpc":"2.0","id":7,"result":{}}

    The text may be cut anywhere, and at most a few KB are kept. The outline works in blocks. A block that lies within
    a nested value, as nearly all of a giant frame does, is passed as a whole: once escapes are removed, quotes separate
    strings from the rest, and in the rest only brackets matter. Any other block is halved until it is small. Small
    blocks that are not nested are walked from mark to mark (a quote or a bracket).
    """

    def __init__(self) -> None:
        self._kept = bytearray()
        self._full = False
        self._depth = 0
        self._in_string = False
        self._string_at = 0  # where in `_kept` the string being read starts
        self._backslash = b""  # the end of the last block, when it is half an escape

    def feed(self, text: bytes | bytearray) -> None:
        """Read the next part of the text."""
        for at in range(0, len(text), _BLOCK):
            if self._full:
                return
            block = self._backslash + text[at : at + _BLOCK]
            backslashes = len(block) - len(block.rstrip(b"\\"))
            self._backslash = b"\\" * (backslashes % 2)
            block = block.removesuffix(self._backslash)
            self._take(block)

    def members(self) -> dict[str, Any]:
        """The members of the object by name; empty if the text is not an object, or has too many members to keep."""
        try:
            members: Any = {} if self._full else json.loads(self._kept.decode("utf-8-sig", "replace"))
        except ValueError:
            return {}
        return cast("dict[str, Any]", members) if isinstance(members, dict) else {}

    def unfinished(self) -> dict[str, Any]:
        """The members so far of an object that has not ended; the value that began last counts as complete."""
        is_string = self._in_string and self._depth < _NESTED
        # A string is left out: it may end within an escape.
        kept = self._kept[: self._string_at + 1 if is_string else None].decode("utf-8-sig", "replace")
        for end in ("}}", "]}", '"}', "}"):
            try:
                members: Any = json.loads(kept + end)
            except ValueError:
                continue
            return cast("dict[str, Any]", members) if isinstance(members, dict) else {}
        return {}

    def _take(self, block: bytes) -> None:
        """Pass this block, or halve it, so that only the few bytes around a mark of the top level are walked."""
        if self._full or self._pass_nested(block):
            return
        if len(block) <= _WALKED:
            self._walk(block)
            return
        middle = len(block) // 2
        middle += (middle - len(block[:middle].rstrip(b"\\"))) % 2  # an escape is not cut
        self._take(block[:middle])
        self._take(block[middle:])

    def _pass_nested(self, block: bytes) -> bool:
        """Pass this block if all of it is nested; otherwise change nothing."""
        if self._depth < _NESTED:
            return False
        between_quotes = _ESCAPE.sub(b"", block).split(b'"')
        brackets = b"".join(between_quotes[self._in_string :: 2]).translate(None, _NO_BRACKETS)
        depths = list(accumulate(map(_STEPS.__getitem__, brackets), initial=self._depth))
        if min(depths) < _NESTED:
            return False
        self._depth = depths[-1]
        self._in_string ^= len(between_quotes) % 2 == 0
        return True

    def _walk(self, block: bytes) -> None:
        at = 0
        while at < len(block) and not self._full:
            at = self._walk_string(block, at) if self._in_string else self._walk_to_mark(block, at)

    def _walk_to_mark(self, block: bytes, at: int) -> int:
        end = skip(_UP_TO_MARK, block, at)
        if self._depth < _NESTED:
            self._keep(block[at:end].translate(None, _SPACE))
        if end == len(block):
            return end
        if (mark := block[end]) == _QUOTE:
            self._in_string = True
            self._string_at = len(self._kept)
            step = 0
        else:
            step = _STEPS[mark]
        if min(self._depth, self._depth + step) < _NESTED:
            self._keep(block[end : end + 1])
        self._depth += step
        return end + 1

    def _walk_string(self, block: bytes, at: int) -> int:
        end = skip(_UP_TO_QUOTE, block, at)
        self._in_string = end == len(block)
        if self._depth < _NESTED:
            room = self._string_at + _LONG_STRING - len(self._kept)
            self._keep(block[at : min(end, at + room)])
            if not self._in_string:
                self._close_string()
        return end + 1

    def _close_string(self) -> None:
        start = self._string_at
        if len(self._kept) - start < _LONG_STRING:
            self._keep(b'"')
        else:
            # The substitute has no meaning: an object cannot be an id, and no member that we read is named "".
            self._kept[start:] = b"{}" if self._kept.endswith(b":", 0, start) else b'""'

    def _keep(self, text: bytes) -> None:
        self._full = self._full or len(self._kept) + len(text) > _FULL
        if not self._full:
            self._kept += text


def as_id(value: object) -> RequestId | None:
    """This JSON value as a request's id; None if it cannot be one.

    JSON-RPC, Request object: an id is a string or a number, which should have no fraction. `1.0` has none, so it is 1.
    """
    if type(value) is int or type(value) is str:
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def skip(pattern: re.Pattern[AnyStr], text: AnyStr, at: int) -> int:
    """The place in the text where a match of the pattern that starts at `at` ends; `at` if there is no match."""
    match = pattern.match(text, at)
    return match.end() if match else at


def _oversized(length: int, members: dict[str, Any]) -> Oversized:
    return Oversized(length, as_id(members.get("id")), "id" in members, members.get("method") is not None)


def _tidy(line: bytes) -> bytes:
    frame = line.removeprefix(_BOM).rstrip(b"\r")
    return b"" if frame.isspace() else frame


_BOM = b"\xef\xbb\xbf"

_NESTED = 2
"""The depth from which nothing is kept; the object itself has depth 1."""
_LONG_STRING = 1024
"""Bytes from which a string of the top level is left out."""
_FULL = 4096
"""Bytes of the top level beyond which the frame is not a message, and the rest is not read."""
_BLOCK = 64 * 1024
_WALKED = 512
"""Bytes that are walked at most; a longer block is halved, and each half is tried again."""

_OPENING, _CLOSING = ord("{"), ord("}")
_QUOTE = ord('"')
_SPACE = b" \t\r\n"
_STEPS = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(_STEPS))

# Possessive, so that no input makes the patterns backtrack. An escape counts outside strings too: JSON has none there,
# so both ways through a block agree about text that is not JSON.
_ESCAPE = re.compile(rb"(?s)\\.")
_UP_TO_QUOTE = re.compile(rb'(?s)[^"\\]*+(?:\\.[^"\\]*+)*+')
_UP_TO_MARK = re.compile(rb'(?s)[^]["{}\\]*+(?:\\.[^]["{}\\]*+)*+')
