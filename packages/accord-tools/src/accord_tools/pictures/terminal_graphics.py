"""The escape sequences by which terminals show images (kitty, iTerm2, Sixel), and queries for a terminal's support.

A terminal is asked before anything else reads from it. Four queries are sent at once, and every terminal answers the
last: so its answer means that no other one will come. The user's input meanwhile is mixed with the answers and is
returned.

| question | answer |
|---|---|
| an image of kitty's protocol, as a test | `OK` from a terminal that speaks it |
| the terminal's name and version | decides between protocols: only some show kitty's placeholders |
| the size of a character in pixels | what Sixel needs |
| the terminal's attributes (DA1) | 4 for Sixel |

An image comes from an agent and goes into an escape sequence. So callers pass bytes that they have decoded and
measured, never text of the agent: base64 is made here, and has no character that ends a sequence.
"""

from __future__ import annotations

import base64
import math
import os
import re
import select
import sys
import time
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

Protocol: TypeAlias = Literal["kitty", "iterm2", "sixel"]
"""A protocol by which a terminal shows images."""

MOST_BYTES = 8 * 1024 * 1024
"""The limit of an image as it is sent."""
CHUNK = 4096
"""Characters of base64 in one sequence of the kitty protocol, which allows no more."""
PLACEHOLDER = "\U0010eeee"
"""The character that kitty replaces by a part of an image."""

# The marks of kitty's placeholders: the one with index N means row or column N.
_MARKS = "".join(
    map(
        chr,
        (
            *(0x305, 0x30D, 0x30E, 0x310, 0x312, 0x33D, 0x33E, 0x33F, 0x346, 0x34A, 0x34B, 0x34C, 0x350, 0x351, 0x352),
            *(0x357, 0x35B, *range(0x363, 0x370), *range(0x483, 0x488), *range(0x592, 0x596), *range(0x597, 0x59A)),
            *(*range(0x59C, 0x5A2), 0x5A8, 0x5A9, 0x5AB, 0x5AC, 0x5AF, 0x5C4, *range(0x610, 0x618)),
        ),
    )
)


class CellSize(NamedTuple):
    """Pixels of one character of a terminal."""

    width: int = 10
    height: int = 20


def fitted(size: tuple[int, int], columns: int, rows: int, cell: CellSize) -> tuple[int, int]:
    """Return how many columns and rows an image takes: its own size, or as much as there is room for.

    >>> fitted((400, 200), 80, 20, CellSize(10, 20)), fitted((4000, 2000), 60, 16, CellSize(10, 20))
    ((40, 10), (60, 15))
    """
    width, height = size
    scale = max(1.0, width / (columns * cell.width), height / (rows * cell.height))
    wide, high = math.ceil(width / scale / cell.width), math.ceil(height / scale / cell.height)
    return max(1, min(wide, columns)), max(1, min(high, rows))


def kitty(png: bytes, wide: int, high: int, *, image_id: int | None = None) -> str:
    """Return the sequence that shows a PNG at the cursor; with an id it is shown at its placeholders.

    `q=2`: the terminal must not answer, because its answer would look like the user's typing.
    """
    text = base64.b64encode(png).decode()
    where = "" if image_id is None else f"U=1,i={image_id},"
    chunks = [text[place : place + CHUNK] for place in range(0, len(text), CHUNK)]
    sequences: list[str] = []
    for number, chunk in enumerate(chunks):
        keys = f"a=T,f=100,q=2,{where}c={wide},r={high}," if number == 0 else "q=2,"
        sequences.append(f"\x1b_G{keys}m={int(number < len(chunks) - 1)};{chunk}\x1b\\")
    return "".join(sequences)


def kitty_row(image_id: int, row: int, wide: int) -> str:
    """The placeholders of one row of an image. The colour is the id, which must be from 1 to 255."""
    cells = "".join(f"{PLACEHOLDER}{_MARKS[row]}{_MARKS[column]}" for column in range(wide))
    return f"\x1b[38;5;{image_id}m{cells}\x1b[39m"


def iterm2(content: bytes, wide: int, high: int, *, keeps_ratio: bool = True) -> str:
    """Return the sequence that shows an image file at the cursor."""
    keys = f"inline=1;size={len(content)};width={wide};height={high};preserveAspectRatio={int(keeps_ratio)}"
    text = base64.b64encode(content).decode()
    return f"\x1b]1337;File={keys}{'' if keeps_ratio else ';doNotMoveCursor=1'}:{text}\x07"


WITHIN = 1.0
"""Seconds for the answers; a terminal on this machine takes a millisecond."""
QUESTIONS = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[>q\x1b[16t\x1b[c"

_KITTY = re.compile(r"\x1b_Gi=31;([^\x1b]*)\x1b\\")
_NAME = re.compile(r"\x1bP>\|([^\x1b]*)\x1b\\")
_CELL = re.compile(r"\x1b\[6;(\d+);(\d+)t")
_ATTRIBUTES = re.compile(r"\x1b\[\?([\d;]*)c")
_SHOW_PLACEHOLDERS = ("kitty", "ghostty")
_SHOW_FILES = ("iterm2", "wezterm")
_SIMPLE = ("linux", "vt", "ansi", "cons25", "sun", "dumb", "unknown", "screen")
"""Beginnings of the names of terminals that would print a query, or show no images anyway."""


class Graphics(NamedTuple):
    """A terminal's support for images."""

    protocol: Protocol | None = None
    """None if it has none, or is not known to have one."""
    cell: CellSize = CellSize()


NO_GRAPHICS = Graphics()


def ask_terminal(reads: int, writes: int, within: float = WITHIN) -> tuple[Graphics, str]:
    """Return how the terminal shows images, and the input that the user typed during the query."""
    assert sys.platform != "win32"
    import termios
    import tty

    try:
        kept = termios.tcgetattr(reads)
    except termios.error:  # no terminal
        return NO_GRAPHICS, ""
    try:
        tty.setcbreak(reads, termios.TCSANOW)  # no echo of the answers
        os.write(writes, QUESTIONS.encode("ascii"))
        said = _said(reads, within)
    finally:
        termios.tcsetattr(reads, termios.TCSANOW, kept)
    return understood(said)


def may_be_asked(environment: Mapping[str, str]) -> bool:
    """Whether the terminal ignores unknown queries.

    >>> may_be_asked({"TERM": "xterm-256color"}), may_be_asked({"TERM": "vt100"})
    (True, False)
    """
    term = environment.get("TERM", "")
    in_tmux = bool(environment.get("TMUX"))
    return os.name == "posix" and bool(term) and (in_tmux or not term.startswith(_SIMPLE))


def _said(reads: int, within: float) -> str:
    """Return the input until the last answer, or until the time is over."""
    said, end = b"", time.monotonic() + within
    while (left := end - time.monotonic()) > 0:
        ready, _, _ = select.select([reads], [], [], left)
        more = os.read(reads, 4096) if ready else b""
        if not more:
            break
        said += more
        if _ATTRIBUTES.search(said.decode("utf-8", "replace")):
            break
    return said.decode("utf-8", "replace")


def understood(said: str) -> tuple[Graphics, str]:
    """Return the meaning of the answers, and the input that is no answer.

    >>> understood("\\x1bP>|foot(1.16)\\x1b\\\\hi\\x1b[6;18;9t\\x1b[?62;4;22c")
    (Graphics(protocol='sixel', cell=CellSize(width=9, height=18)), 'hi')
    """
    kitty, name, cell, attributes = (it.search(said) for it in (_KITTY, _NAME, _CELL, _ATTRIBUTES))
    called = name[1].lower() if name is not None else ""
    protocol: Protocol | None = None
    if kitty is not None and kitty[1] == "OK" and called.startswith(_SHOW_PLACEHOLDERS):
        protocol = "kitty"
    elif called.startswith(_SHOW_FILES):
        protocol = "iterm2"
    elif attributes is not None and "4" in attributes[1].split(";"):
        protocol = "sixel"
    size = CellSize() if cell is None else CellSize(width=int(cell[2][:4]), height=int(cell[1][:4]))
    if min(size) < 1:
        size = CellSize()
    for pattern in (_KITTY, _NAME, _CELL, _ATTRIBUTES):
        said = pattern.sub("", said)
    return Graphics(protocol, size), "".join(it for it in said if it.isprintable())
