"""Position encodings: a place in a line as a client counts it, and as an index of a `str`. PURE.

A position is a line and a character, both from zero. What a character is, client and agent agree on:

| encoding | a character is | of "a😀" there are |
|---|---|---|
| `utf-32` | a code point, as in a `str` | 2 |
| `utf-16` | a 16-bit unit: two for a code point above U+FFFF | 3 |
| `utf-8` | a byte | 5 |

Half a surrogate pair, which JSON can hold, counts as one unit of 16 bits and as three bytes. A character past the end
of the line means the end of the line. One inside a code point means the start of that code point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

Encoding: TypeAlias = Literal["utf-32", "utf-16", "utf-8"]

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
"""The encodings, in our order of preference: `utf-32` needs no arithmetic."""

DEFAULT: Encoding = "utf-16"
"""The encoding where none was negotiated; every client and agent must have it."""


def chosen(offered: Sequence[str]) -> Encoding | None:
    """The encoding that we choose of those that a client offers; None if it offers none that we know."""
    preferred: tuple[Encoding, ...] = ("utf-32", "utf-8", "utf-16")
    return next((it for it in preferred if it in offered), None)


def character_at(line: str, index: int, encoding: Encoding) -> int:
    """How many characters of this encoding come before this index of a line."""
    if encoding == "utf-32" or line.isascii():
        return index
    head = line[:index]
    if encoding == "utf-16":
        return len(head) + sum(code > "\uffff" for code in head)
    return len(head.encode("utf-8", "surrogatepass"))


def index_at(line: str, character: int, encoding: Encoding) -> int:
    """The index in a line, given without its ending, of this character of this encoding."""
    if encoding == "utf-32" or line.isascii():
        return min(character, len(line))
    width = _width_in_utf_16 if encoding == "utf-16" else _width_in_utf_8
    passed = 0
    for index, code in enumerate(line):
        passed += width(code)
        if passed > character:
            return index
    return len(line)


def _width_in_utf_16(code: str) -> int:
    return 2 if code > "\uffff" else 1


def _width_in_utf_8(code: str) -> int:
    if code < "\x80":
        return 1
    if code < "\u0800":
        return 2
    return 3 if code <= "\uffff" else 4
