"""How much structure one message may have.

A decoder's time and memory go by values, not by bytes: 16 MiB of text are decoded in 10 ms, 16 MiB of `[]` make eight
million lists, which takes seconds and a gigabyte. So the values of a large message are counted before anything reads
it. The counting makes no values and looks at each byte at most three times.

Most large messages are a few long strings. They are passed from quote to quote: if little stands between the strings,
nothing is counted. Else marks are counted wherever they stand, in strings too. Only a message with too many gets the
last look, which leaves strings out.
"""

from __future__ import annotations

from collections.abc import Iterator

MOST_CONTAINERS = 100_000
"""Arrays and objects that one message may hold: making them takes about 50 ms."""

MOST_VALUES = 1_000_000
"""Values of any kind that one message may hold."""

SMALL = MOST_CONTAINERS
"""Bytes up to which a message is within the bounds whatever it holds: each container takes one byte at least."""


def excess(text: bytes, most_values: int = MOST_VALUES) -> str | None:
    """What this JSON text has too much of; None if it is within the bounds.

    >>> excess(b"[" * 200_000)
    'more than 100,000 arrays and objects in one message: send fewer'
    """
    if _is_mostly_strings(text) or _exceeds(_marks(text), most_values) is None:
        return None
    return _exceeds(_marks_outside_strings(text), most_values)


def _is_mostly_strings(text: bytes) -> bool:
    """Whether so little stands between the strings that it cannot be too much. False where that is not seen at once."""
    outside, at, escaped = 0, 0, 0
    for _ in range(_FEW_QUOTES):
        start = text.find(b'"', at)
        if start < 0:
            return outside + len(text) - at <= SMALL
        outside += start - at
        end = text.find(b'"', start + 1)
        while end > 0 and text[end - 1] == _BACKSLASH:
            escaped += 1
            if escaped > _FEW_QUOTES or text[end - 2] == _BACKSLASH:
                return False
            end = text.find(b'"', end + 1)
        if end < 0 or outside > SMALL:
            return False
        at = end + 1
    return False


def _exceeds(blocks: Iterator[tuple[int, bytes]], most_values: int) -> str | None:
    containers = values = 0
    for strings, marks in blocks:
        containers += marks.count(b"[") + marks.count(b"{")
        values += strings + len(marks)
        if containers > MOST_CONTAINERS:
            return f"more than {MOST_CONTAINERS:,} arrays and objects in one message: send fewer"
        if values > most_values:
            return f"more than {most_values:,} values in one message: send fewer"
    return None


def _marks(text: bytes) -> Iterator[tuple[int, bytes]]:
    for at in range(0, len(text), _BLOCK):
        yield 0, text[at : at + _BLOCK].translate(None, _NO_MARKS)


def _marks_outside_strings(text: bytes) -> Iterator[tuple[int, bytes]]:
    """The marks of each block, and how many strings it has beyond what the marks between them count."""
    in_string, half = False, b""
    for at in range(0, len(text), _BLOCK):
        block = half + text[at : at + _BLOCK]
        half = b"\\" * ((len(block) - len(block.rstrip(b"\\"))) % 2)
        block = block.removesuffix(half)
        pieces = block.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        marks = b"".join(pieces[in_string::2]).translate(None, _NO_MARKS)
        yield max(0, len(pieces) // 4 - len(marks)), marks
        in_string ^= len(pieces) % 2 == 0


_BLOCK = 32 * 1024
_FEW_QUOTES = 1_000
_BACKSLASH = ord("\\")
_NO_MARKS = bytes(set(range(256)) - set(b"[{,"))
