r"""Where lines begin: after `\n`, `\r\n` and `\r`, and after nothing else, as editors and their protocols count. PURE.

`str.splitlines` also splits at form feeds and at U+2028; a position would then be off by lines.
"""

from __future__ import annotations

import re

_ENDING = re.compile(r"\r\n|\n|\r")


def line_starts(text: str) -> list[int]:
    """The offset at which each line begins; the first is 0."""
    return [0, *(ending.end() for ending in _ENDING.finditer(text))]


def lines_of(text: str) -> list[str]:
    """The lines with their endings; together they are the text."""
    starts = line_starts(text)
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True) if start < end]


def is_inside_ending(text: str, offset: int) -> bool:
    r"""Whether an offset is between `\r` and `\n`: no position can name it."""
    return 0 < offset < len(text) and text[offset - 1] == "\r" and text[offset] == "\n"
