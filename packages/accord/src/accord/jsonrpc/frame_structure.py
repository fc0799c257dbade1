"""Limits of the structure of one message, and reading the members of a malformed one.

A decoder's time and memory depend on values, not on bytes: 16 MiB of text are decoded in 10 ms, 16 MiB of `[]` make
eight million lists, which takes seconds and a gigabyte. So the values of a large message are counted before anything
reads it. Counting makes no values and examines each byte at most three times.

The limits keep a message of 16 MiB, the largest that a server accepts, below 100 ms including the decoding to its type.
The costs on one core: an array or an object takes up to 1 us, a member of an object 0.4 us, another value 0.1 us, a
byte of a long number or an escape 6 ns, a space 3 ns, a byte of a plain string 1 ns.

Most large messages are a few long strings. They are scanned from quote to quote: if there is little between the
strings, nothing is counted. Otherwise marks are counted everywhere, even in strings, and every eighth byte is checked
for digits and spaces. Only a message with too many gets the last check, which excludes strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

MOST_CONTAINERS = 50_000
"""Arrays and objects that one message may contain."""

MOST_MEMBERS = 200_000
"""Members that its objects may have together."""

MOST_VALUES = 400_000
"""Values of any kind that one message may contain."""

MOST_DIGITS = 400
"""Digits that a number may always have. In a large message, one of fifty more is always found."""

MOST_SPELLED = 8 * 1024 * 1024
"""Bytes outside of strings, and escapes within them, that one message may contain: they cost more than plain text."""

SMALL = MOST_CONTAINERS
"""Bytes up to which a message is within the limits whatever it contains: each container takes at least one byte."""


class Bounds(Struct, frozen=True):
    """The limits for one text."""

    containers: int = MOST_CONTAINERS
    members: int = MOST_MEMBERS
    values: int = MOST_VALUES
    length: int | None = None
    """Bytes; None where the transport's limit suffices."""


NORMAL = Bounds()

MISFIT = Bounds(containers=15_000, length=32 * 1024 * 1024)
"""For text that does not fit its type throughout, which is then read item by item."""

DAMAGED = Bounds(containers=15_000, members=100_000, values=100_000, length=8 * 1024 * 1024)
"""For text that only Python's decoder accepts, which is ten times slower."""


def excess(text: bytes | Raw, most: Bounds = NORMAL) -> str | None:
    """Return which limit this JSON text exceeds; None if it is within the limits.

    >>> excess(b"[" * 200_000)
    'more than 50,000 arrays and objects in one message: send fewer'
    """
    if most.length is not None and memoryview(text).nbytes > most.length:
        return f"more than {most.length:,} bytes: send it in parts, or as it should be"
    text = bytes(text)
    is_long = len(text) > MOST_SPELLED
    escapes = text.count(b"\\") if is_long and b"\\" in text else 0
    if escapes > MOST_SPELLED:
        return _TOO_MUCH_SPELLED
    if is_mostly_strings(text, most.containers):
        return None
    has_digits = _SAMPLED_DIGITS in text[::_SAMPLE].translate(_AS_ZEROS)
    may_spell = is_long and escapes + _plain_outside(text) > MOST_SPELLED
    if not (has_digits or may_spell) and _exceeds(_marks(text), most) is None:
        return None
    return _exceeds(_marks_outside_strings(text, has_digits=has_digits), most, escapes)


def is_mostly_strings(text: bytes, few: int = MOST_CONTAINERS) -> bool:
    """Whether the text between the strings is short enough to need no counting. False if that is not clear at once."""
    outside, at, escaped = 0, 0, 0
    for _ in range(_FEW_QUOTES):
        start = text.find(b'"', at)
        if start < 0:
            return outside + len(text) - at <= few
        outside += start - at
        end = text.find(b'"', start + 1)
        while end > 0 and text[end - 1] == _BACKSLASH:
            escaped += 1
            if escaped > _FEW_QUOTES or text[end - 2] == _BACKSLASH:
                return False
            end = text.find(b'"', end + 1)
        if end < 0 or outside > few:
            return False
        at = end + 1
    return False


def _plain_outside(text: bytes) -> int:
    """Return about how many bytes would be numbers and spaces if the text had no strings."""
    # In blocks: at once, the samples would take a quarter of the text's memory.
    samples = (text[at : at + _BLOCK : _SPARSE] for at in range(0, len(text), _BLOCK))
    return _SPARSE * sum(len(it) - len(it.translate(None, _PLAIN)) for it in samples)


def _exceeds(blocks: Iterator[_Block], most: Bounds, spelled: int = 0) -> str | None:
    containers = members = values = 0
    for strings, outside, marks in blocks:
        spelled += outside
        containers += marks.count(b"[") + marks.count(b"{")
        names = marks.count(b":")
        members += names
        values += max(strings, len(marks) - names)
        if containers > most.containers:
            return f"more than {most.containers:,} arrays and objects in one message: send fewer"
        if members > most.members:
            return f"more than {most.members:,} members of objects in one message: send fewer"
        if values > most.values:
            return f"more than {most.values:,} values in one message: send fewer"
        if spelled > MOST_SPELLED:
            return _TOO_MUCH_SPELLED
        if _DIGITS in marks:
            return f"a number of more than {MOST_DIGITS} digits: send it as text"
    return None


def _marks(text: bytes) -> Iterator[_Block]:
    for at in range(0, len(text), _BLOCK):
        yield 0, 0, text[at : at + _BLOCK].translate(None, _NO_MARKS)


def _marks_outside_strings(text: bytes, *, has_digits: bool) -> Iterator[_Block]:
    """Yield the marks of each block outside of strings. A number that is too long adds its digits to the marks."""
    in_string, half = False, b""
    for at in range(0, len(text), _BLOCK):
        block = half + text[at : at + _BLOCK]
        if b"\\" in block:
            half = b"\\" * ((len(block) - len(block.rstrip(b"\\"))) % 2)
            block = block.removesuffix(half).replace(b"\\\\", b"").replace(b'\\"', b"")
        else:
            half = b""
        pieces = block.split(b'"')
        outside = b"".join(pieces[in_string::2])
        marks = outside.translate(None, _NO_MARKS)
        if has_digits and _DIGITS in outside.translate(_AS_ZEROS):
            marks += _DIGITS
        yield len(pieces) // 4, len(outside), marks
        in_string ^= len(pieces) % 2 == 0


_Block: TypeAlias = tuple[int, int, bytes]
"""A part of a text: how many strings it has, how many bytes outside of them, and the marks among those bytes."""

_BLOCK = 32 * 1024
_FEW_QUOTES = 1_000
_BACKSLASH = ord("\\")
_NO_MARKS = bytes(set(range(256)) - set(b"[{,:"))
_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_DIGITS = b"0" * (MOST_DIGITS + 1)
_SAMPLE = 50
_SAMPLED_DIGITS = b"0" * (MOST_DIGITS // _SAMPLE)
"""The values that every fiftieth byte of a long number has. Digits in a string may look the same: then they are left
out.
"""

_SPARSE = 8
_PLAIN = b"0123456789+-.eE \t\r\n"
_TOO_MUCH_SPELLED = f"more than {MOST_SPELLED:,} bytes of numbers, spaces and escapes in one message: send fewer"


# The members of an object that is not quite a message, read with care and in linear time.
#
#     text ──▶ members_of ──▶ Members: each member's text, none of them read ──▶ value_of ──▶ a plain value
#          └─ no JSON, or too much of it ──▶ `outline`: what its start and its end say
#
# `members_of` is one pass of msgspec's decoder, which passes over what has no name here without making values of it. So
# an unknown member costs its bytes and nothing else, whatever it holds.


if TYPE_CHECKING:
    RawOrNone: TypeAlias = Raw | None
else:
    RawOrNone = Raw  # msgspec keeps a value raw only if the type is Raw alone

MOST_HALVES = 200_000
"""Escaped halves of emoji that one message may contain if one of them is unpaired. Each takes about 50 ns."""


class Members(msgspec.Struct, gc=False):
    """The text of each member; None for one that is absent. A null is the text `null`."""

    jsonrpc: RawOrNone = None
    method: RawOrNone = None
    params: RawOrNone = None
    id: RawOrNone = None
    result: RawOrNone = None
    error: RawOrNone = None

    def values(self) -> dict[str, Any]:
        """Return the values of the present members. Params and results are only told apart: an object is empty."""
        return {
            name: _kind_of(raw) if name in _RAW_MEMBERS else value_of(raw)
            for name in self.__struct_fields__
            if (raw := getattr(self, name)) is not None
        }


class TooDamagedError(ValueError):
    """Raised for text that is not repaired, because that would take too long. The message has the reason."""


def members_of(frame: bytes) -> Members | None:
    """Return the members of this object; None for other JSON. Raises msgspec's errors, or TooDamagedError.

    Damaged text is repaired, in several passes. A long text is tried without them first: most are whole, and have only
    a member without a name here.
    """
    if len(frame) > SMALL:
        try:
            return _strict_members_of(frame.removeprefix(_BOM))
        except (msgspec.DecodeError, UnicodeDecodeError):
            _refuse_long_repairs(frame)
    if not frame.isascii():
        frame = frame.decode("utf-8-sig", "replace").encode()
    masked = _masked(frame)
    members = _strict_members_of(masked)
    if isinstance(masked, bytearray):
        masked[:] = frame  # the members are views of it, so they have their own text again
    return members


def _strict_members_of(text: bytes | bytearray) -> Members | None:
    try:
        return _decode(text)
    except msgspec.ValidationError:
        _skip(text)
        return None


def value_of(raw: Raw) -> Any:
    """Return the plain value of this text: unpaired halves of emoji and numbers of any size are accepted.

    Raises TooDamagedError.
    """
    try:
        return _decode_value(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        damaged = bytes(raw)
        _refuse_long_repairs(damaged)
        text = damaged.decode("utf-8", "replace")
    import json  # few programs get such a text

    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # more digits than Python converts; JSON sets no bound
        return json.loads(text, parse_int=float)


def _kind_of(raw: Raw) -> Any:
    first = bytes(memoryview(raw)[:1])
    return {} if first == b"{" else None if first == b"n" else first


def _refuse_long_repairs(text: bytes) -> None:
    halves = text.count(b"\\ud") + text.count(b"\\uD")
    if halves > MOST_HALVES:
        raise TooDamagedError(f"half an emoji, and more than {MOST_HALVES:,} of them in one message: send fewer")
    if len(text) > _MOST_REPAIRED:
        damage = "half an emoji" if halves else "not JSON"
        raise TooDamagedError(f"{damage}, in more than {_MOST_REPAIRED:,} bytes: only shorter text is repaired")


def _masked(frame: bytes) -> bytes | bytearray:
    """Return this text with a letter of as many bytes instead of each half of an emoji, paired or not.

    msgspec refuses a half even in skipped text. The names that matter have none, so they are found as before.
    """
    if b"\\ud" not in frame and b"\\uD" not in frame:
        return frame
    return bytearray(frame.replace(b"\\ud", b"\\uc").replace(b"\\uD", b"\\uC"))


_BOM = b"\xef\xbb\xbf"
_MOST_REPAIRED = DAMAGED.length or 0
_RAW_MEMBERS = ("params", "result")

_decode = msgspec.json.Decoder(Members).decode
_skip = msgspec.json.Decoder(Raw).decode
_decode_value = msgspec.json.Decoder().decode
