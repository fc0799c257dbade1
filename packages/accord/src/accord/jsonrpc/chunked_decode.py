"""Reads a heavy message in slices, so that no step blocks the other threads of the program for long.

    frame ──▶ is_heavy ──▶ read, in a thread ──▶ the message, whose params or result are `Sliced`: text and plain value

msgspec reads a text in one call, and during that call, no other thread of the program runs, not even the event loop. So
a heavy text is read in many calls. One call finds the parts of an array or an object and makes no values of them. A
part that is heavy is cut again, a long string at about every MiB, and any other part is one slice. Finding the parts of
62 MiB takes 20 to 80 ms, making values of them 60 to 190 ms.
"""

from __future__ import annotations

import re
import threading
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw

from accord.errors import INVALID_REQUEST
from accord.jsonrpc import frame_structure, wire_messages
from accord.jsonrpc.line_frames import as_id
from accord.jsonrpc.wire_messages import (
    ErrorObject,
    Malformed,
    Message,
    NotificationFrame,
    RequestFrame,
    ResponseFrame,
)

Json: TypeAlias = Any

LIGHT = 512 * 1024
"""Bytes up to which a message is read at once, whatever it contains: 10 to 20 ms in the worst shapes."""

LIGHT_STRINGS = 12 * 1024 * 1024
"""Bytes up to which a message is read at once if it is little more than a few long strings: 10 ms for plain text, 40
for other scripts."""

SLICE = 1024 * 1024
"""Bytes of a part that are read in one call."""

LEVELS = 16
"""Nested arrays and objects that are cut. Each level costs a pass over the text."""

DEEP = 8 * 1024 * 1024
"""Bytes of a part below these levels that are still read, in one call."""


class Sliced(bytes):
    """JSON text whose plain value has been read already."""

    value: Json


class TooDeepError(ValueError):
    """Raised for so much text below so many levels that it cannot be cut in a few passes."""


def is_heavy(frame: bytes) -> bool:
    """Whether to read this frame in a thread."""
    if len(frame) <= LIGHT:
        return False
    return len(frame) > LIGHT_STRINGS or not frame_structure.is_mostly_strings(frame)


def read(frames: list[bytes]) -> Message | Malformed:
    """Return what `messages.parse` returns for the last of these frames, which is removed so that its memory can be
    freed.

    Where possible, its params or result are `Sliced`. One thread reads at a time: the event loop would have to wait for
    each of several in turn.
    """
    with _one_at_a_time:
        message = wire_messages.parse(frames.pop())
        if isinstance(message, Malformed):
            return message
        name = "result" if isinstance(message, ResponseFrame) else "params"
        text: bytes | Raw | None = getattr(message, name)
        if text is None:
            return message
        text = Sliced(text)
        message = msgspec.structs.replace(message, **{name: text})
        try:
            text.value = value_of(text)
        except TooDeepError as error:
            return _too_deep(message, str(error))
        except _REFUSALS:  # the tolerant readers repair it, or report its fault
            return msgspec.structs.replace(message, **{name: bytes(text)})
        return message


def value_of(text: bytes | Raw, slice_size: int = SLICE) -> Json:
    """Return the plain value of this text; raises msgspec's errors, or TooDeepError.

    >>> value_of(b'{"names": ["a", "b"]}')
    {'names': ['a', 'b']}
    """
    return _value(text, slice_size, LEVELS)


def _value(text: bytes | Raw, slice_size: int, levels: int) -> Json:
    size = memoryview(text).nbytes
    if size <= slice_size:
        return _decode(text)
    first = re.match(rb"[ \t\r\n]*+(.)", text)
    kind = first[1] if first else b""
    if kind == b'"':
        return _string(memoryview(text), slice_size)
    if kind not in _PARTS:
        return _decode(text)
    if not levels:
        if size > DEEP:
            raise TooDeepError(
                f"{size:,} bytes below {LEVELS} levels of arrays and objects; {DEEP:,} are allowed: send fewer"
            )
        return _decode(text)
    if kind == b"[":
        return [_value(part, slice_size, levels - 1) for part in _items(text)]
    return {name: _value(part, slice_size, levels - 1) for name, part in _members(text).items()}


def _string(text: memoryview, slice_size: int) -> str:
    """Read a long string in parts. A part ends between two characters, and not within an escape."""
    if text[0] != _QUOTE or text[-1] != _QUOTE:  # there are spaces around it
        return cast("str", _decode(text))
    pieces: list[str] = []
    at, end = 1, len(text) - 1
    while at < end:
        cut = min(end, at + slice_size)
        if cut < end:
            cut = _cut(text, at, cut)
        if cut == at:  # half an emoji, or no escape: the reader of the whole refuses it
            return cast("str", _decode(text))
        pieces.append(_decode_string(b"".join((b'"', text[at:cut], b'"'))))
        at = cut
    return "".join(pieces)


def _cut(text: memoryview, at: int, end: int) -> int:
    """Return the last place before `end` that is between two characters; `at` is such a place."""
    far_from_escapes = re.compile(rb"[^\\]{12}").search(text, max(at, end - _SOUGHT), end)
    found = far_from_escapes or re.compile(_CHARACTERS).match(text, at, end)
    cut = found.end() if found else at
    while cut > at and text[cut] & 0xC0 == 0x80:  # the next byte continues a character
        cut -= 1
    return cut


def _too_deep(message: Message, problem: str) -> Malformed:
    if isinstance(message, ResponseFrame):
        return Malformed(INVALID_REQUEST, problem, answerable=False, pending=message.id)
    return Malformed(INVALID_REQUEST, problem, id=message.id if isinstance(message, RequestFrame) else None)


_decode = msgspec.json.Decoder().decode
_decode_string = msgspec.json.Decoder(str).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_QUOTE = ord('"')
_PARTS = (b"[", b"{")
_SOUGHT = 4096
# An emoji may be two escapes. The first half alone does not match, so a part never ends between the two.
_CHARACTERS = (
    rb'(?:[^"\\]++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\["\\/bfnrt])*+'
)

_one_at_a_time = threading.Lock()


# The kind of a heavy message, and the session that it names, for those who pass it on without reading it.


class _Body(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    session_id: str | None = None


class _Outline(msgspec.Struct, gc=False):
    id: int | str | float | None = None
    method: str | None = None
    params: _Body | None = None
    result: _Body | None = None
    error: Raw = Raw(b"null")


def peek(frame: bytes) -> Message | Malformed:
    """Return what `parse` returns, but the params or the result of a heavy message have only their session.

    A heavy message is scanned once and without making values, in 20 to 80 ms for 62 MiB. Parsing it takes twice as
    long.
    """
    if not is_heavy(frame):
        return wire_messages.parse(frame)
    try:
        seen = _outlined(frame)
    except _REFUSALS:
        return wire_messages.parse(frame)
    request_id, is_error = as_id(seen.id), bytes(seen.error) != b"null"
    if seen.method is None:
        if request_id is not None and is_error is not (seen.result is not None):
            error = ErrorObject(0) if is_error else None
            return ResponseFrame(request_id, None if seen.result is None else _body(seen.result), error)
    elif seen.result is None and not is_error:
        params = None if seen.params is None else _body(seen.params)
        return (
            NotificationFrame(seen.method, params)
            if request_id is None
            else RequestFrame(request_id, seen.method, params)
        )
    return wire_messages.parse(frame)


def _body(body: _Body) -> Raw:
    return Raw(msgspec.json.encode(body))


_outlined: Any = msgspec.json.Decoder(_Outline).decode
