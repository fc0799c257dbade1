"""The parts of a change, which can be undone one by one. PURE.

Lines are compared as bytes, so that undoing a part restores exactly what was there: encoding, line ends and all.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from accord.tui.diffs import AROUND, COMPARED


class Hunk(NamedTuple):
    """A part of a change: lines of the old content, and those in their place."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


def lines_of(content: bytes) -> list[bytes]:
    """The lines, each with its end."""
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def hunks(old: Sequence[bytes], new: Sequence[bytes]) -> list[Hunk]:
    """The parts of a change; changed lines with few unchanged ones between them are one part.

    >>> hunks([b"a\\n", b"b\\n"], [b"a\\n", b"c\\n"])
    [Hunk(old_from=1, old_to=2, new_from=1, new_to=2)]
    """
    if max(len(old), len(new)) > 20 * COMPARED:
        return [Hunk(0, len(old), 0, len(new))]
    found: list[Hunk] = []
    for kind, old_from, old_to, new_from, new_to in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            continue
        if found and old_from - found[-1].old_to <= 2 * AROUND:
            found[-1] = found[-1]._replace(old_to=old_to, new_to=new_to)
        else:
            found.append(Hunk(old_from, old_to, new_from, new_to))
    return found


def without(old: Sequence[bytes], new: Sequence[bytes], hunk: Hunk) -> bytes:
    """The new content with one part as it was before."""
    return b"".join((*new[: hunk.new_from], *old[hunk.old_from : hunk.old_to], *new[hunk.new_to :]))
