"""About how many bytes values of the protocol take, for bounds on what is kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.schema import codec

WEIGHT = 350
"""Bytes that a value takes beside its text."""


def size_of(value: Any) -> int:
    """About how many bytes this takes."""
    try:
        return WEIGHT + len(codec.strict_encode(value))
    except codec.ENCODE_REFUSALS:  # half an emoji, for instance
        return WEIGHT + len(repr(value))


def oldest_beyond(sizes: Sequence[int], room: int) -> int:
    """How many of these, from the first on, have to go so that the rest fits into this room.

    >>> oldest_beyond([5, 4, 3], room=8)
    1
    """
    total, gone = sum(sizes), 0
    while total > room:
        total -= sizes[gone]
        gone += 1
    return gone
