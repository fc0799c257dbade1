"""The command's two streams, standard output and standard error: what each is, and whether they are one terminal."""

from __future__ import annotations

import os
import stat
import sys
from typing import NamedTuple

from accord.cli.appearance import Appearance, appearance

COLUMNS = 80
"""Columns of a terminal that does not say how many it has."""


class Streams(NamedTuple):
    """What the two streams of the command can show."""

    answer: Appearance
    aside: Appearance
    together: bool
    """Whether both are the same terminal."""
    may_spin: bool
    """Not where the answer goes into a pipe, whose reader may print it on the same terminal."""


def streams() -> Streams:
    """Standard output and standard error as they are now."""
    out, err = _is_terminal(1), _is_terminal(2)
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return Streams(
        appearance(os.environ, encoding, is_terminal=out),
        appearance(os.environ, encoding, is_terminal=err),
        together=out and err and os.path.sameopenfile(1, 2),
        may_spin=err and not _is_pipe(1),
    )


def width(fd: int) -> int:
    """The columns of a terminal, as it is now."""
    try:
        return os.get_terminal_size(fd).columns or COLUMNS
    except OSError:
        return COLUMNS


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def _is_pipe(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
