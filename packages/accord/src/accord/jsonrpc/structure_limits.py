"""How much structure one message may have.

A decoder's time and memory go by values, not by bytes: 16 MiB of text are decoded in 10 ms, 16 MiB of `[]` make eight
million lists, which takes seconds and a gigabyte. So the values of a large message are counted before anything reads
it. The counting makes no values and looks at each byte at most three times.

The bounds keep a message of 16 MiB, the largest that a server takes, below 100 ms with the decoding to its type. The
figures of one core: an array or an object takes up to 1 us, a member of an object 0.4 us, another value 0.1 us, a byte
of a long number or an escape 6 ns, a space 3 ns, a byte of a plain string 1 ns.

Most large messages are a few long strings. They are passed from quote to quote: if little stands between the strings,
nothing is counted. Else marks are counted wherever they stand, in strings too, and every eighth byte is looked at for
digits and spaces. Only a message with too many gets the last look, which leaves strings out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Raw, Struct

MOST_CONTAINERS = 50_000
"""Arrays and objects that one message may hold."""

MOST_MEMBERS = 200_000
"""Members that its objects may have together."""

MOST_VALUES = 400_000
"""Values of any kind that one message may hold."""

MOST_DIGITS = 400
"""Digits that a number may always have. In a large message, one of fifty more is always found."""

MOST_SPELLED = 8 * 1024 * 1024
"""Bytes outside of strings, and escapes within them, that one message may hold: they cost more than plain text."""

SMALL = MOST_CONTAINERS
"""Bytes up to which a message is within the bounds whatever it holds: each container takes one byte at least."""


class Bounds(Struct, frozen=True):
    """How much one text may hold."""

    containers: int = MOST_CONTAINERS
    members: int = MOST_MEMBERS
    values: int = MOST_VALUES
    length: int | None = None
    """Bytes; None where the transport's limit is enough."""


NORMAL = Bounds()

MISFIT = Bounds(containers=15_000, length=32 * 1024 * 1024)
"""For text that is not of its type throughout, which is then read item by item."""

DAMAGED = Bounds(containers=15_000, members=100_000, values=100_000, length=8 * 1024 * 1024)
"""For text that only Python's decoder takes, which is ten times slower."""


def excess(text: bytes | Raw, most: Bounds = NORMAL) -> str | None:
    """What this JSON text has too much of; None if it is within the bounds.

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
    """Whether so little stands between the strings that it cannot be too much. False where that is not seen at once."""
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
    """About how many bytes would be numbers and spaces if the text had no strings."""
    sample = text[::_SPARSE]
    return _SPARSE * (len(sample) - len(sample.translate(None, _PLAIN)))


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
    """What each block has outside of strings. A number that is too long adds its digits to the marks."""
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
"""What every fiftieth byte shows of a long number. Digits in a string may look the same: then they are left out."""

_SPARSE = 8
_PLAIN = b"0123456789+-.eE \t\r\n"
_TOO_MUCH_SPELLED = f"more than {MOST_SPELLED:,} bytes of numbers, spaces and escapes in one message: send fewer"
