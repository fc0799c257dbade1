"""Queries a terminal for its support of images, before anything else reads from it.

Four queries are sent at once, and every terminal answers the last: so its answer means that no other one will come. The
user's input meanwhile is mixed with the answers and is returned.

| question | answer |
|---|---|
| an image of kitty's protocol, as a test | `OK` from a terminal that speaks it |
| the terminal's name and version | decides between protocols: only some show kitty's placeholders |
| the size of a character in pixels | what Sixel needs |
| the terminal's attributes (DA1) | 4 for Sixel |
"""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from accord_tools.pictures.protocols import Cell, Protocol

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
    cell: Cell = Cell()


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
    (Graphics(protocol='sixel', cell=Cell(width=9, height=18)), 'hi')
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
    size = Cell() if cell is None else Cell(width=int(cell[2][:4]), height=int(cell[1][:4]))
    if min(size) < 1:
        size = Cell()
    for pattern in (_KITTY, _NAME, _CELL, _ATTRIBUTES):
        said = pattern.sub("", said)
    return Graphics(protocol, size), "".join(it for it in said if it.isprintable())
