"""Approximate sizes of the protocol's values, for limits on how many are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.schema import codec

WEIGHT = 350
"""Bytes that a value takes besides its text."""


def size_of(value: Any) -> int:
    """The approximate size of a value in bytes."""
    try:
        return WEIGHT + len(codec.strict_encode(value))
    except codec.ENCODE_REFUSALS:  # half a surrogate pair, for instance
        return WEIGHT + len(repr(value))


def oldest_beyond(sizes: Sequence[int], room: int) -> int:
    """How many of the first sizes must be dropped so that the rest fits into `room`.

    >>> oldest_beyond([5, 4, 3], room=8)
    1
    """
    total, gone = sum(sizes), 0
    while total > room:
        total -= sizes[gone]
        gone += 1
    return gone
