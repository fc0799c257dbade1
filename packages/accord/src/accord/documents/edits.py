r"""Edits: new text for pieces of a text. Those of one suggestion all mean the text as it was, and never overlap. PURE.

An edit begins and ends where a position can: between `\r` and `\n` there is none, so an edit there takes in the whole
ending.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from accord.documents.lines import is_inside_ending, lines_of


class Edit(NamedTuple):
    """New text for what is between two offsets."""

    start: int
    end: int
    text: str


def smallest_edit(old: str, new: str) -> Edit:
    """The one edit that makes the new text of the old one, without what they have in common at both ends.

    >>> smallest_edit("one two three", "one 2 three")
    Edit(start=4, end=7, text='2')
    """
    start = _common(old, new)
    end = _common_end(old, new, min(len(old), len(new)) - start)
    return addressable(old, Edit(start, len(old) - end, new[start : len(new) - end]))


def line_edits(old: str, new: str) -> list[Edit]:
    """The edits by whole lines that make the new text of the old one, in order; empty if the texts are the same."""
    before, after = lines_of(old), lines_of(new)
    offsets = [0]
    for line in before:
        offsets.append(offsets[-1] + len(line))
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [
        smaller(old, Edit(offsets[first], offsets[last], "".join(after[start:end])))
        for kind, first, last, start, end in matcher.get_opcodes()
        if kind != "equal"
    ]


def smaller(text: str, edit: Edit) -> Edit:
    """The same edit without the text at its ends that it does not change."""
    inner = smallest_edit(text[edit.start : edit.end], edit.text)
    return addressable(text, Edit(edit.start + inner.start, edit.start + inner.end, inner.text))


def addressable(text: str, edit: Edit) -> Edit:
    """The same edit, with no end of it inside the ending of a line."""
    start, end, new = edit
    if is_inside_ending(text, start):
        start, new = start - 1, "\r" + new
    if is_inside_ending(text, end):
        end, new = end + 1, new + "\n"
    return Edit(start, end, new)


def with_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with these edits; raises ValueError if two of them overlap.

    >>> with_edits("one two", [Edit(4, 7, "2"), Edit(0, 3, "1")])
    '1 2'
    """
    pieces: list[str] = []
    done = 0
    for edit in in_order(edits):
        pieces += (text[done : edit.start], edit.text)
        done = edit.end
    return "".join((*pieces, text[done:]))


def in_order(edits: Iterable[Edit]) -> list[Edit]:
    """These edits from the first to the last in the text; raises ValueError if two of them overlap."""
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    for before, after in pairwise(ordered):
        if after.start < before.end:
            raise ValueError(f"edits of one suggestion must not overlap: {before.end} comes after {after.start}")
    return ordered


def _common(one: str, other: str) -> int:
    """How many characters two texts have in common at their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str, most: int) -> int:
    """How many characters, at most so many, two texts have in common at their end."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle :] == other[len(other) - middle :]:
            low = middle
        else:
            high = middle - 1
    return low
