"""Numbers of bytes as people write and read them. PURE."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d+)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def bytes_in(text: str) -> int | None:
    """The number of bytes that a text such as 64M, 2 GiB or 1000 means; None for any other text.

    >>> bytes_in("64M"), bytes_in("2 GiB"), bytes_in("much")
    (67108864, 2147483648, None)
    """
    found = _SIZE.fullmatch(text.strip())
    return None if found is None else int(found[1]) * _FACTORS[found[2].lower()]


def in_words(size: int) -> str:
    """A number of bytes in the largest unit of which it has one.

    >>> in_words(1_610_612_736)
    '1.5 GiB'
    """
    number, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{number:.4g} {unit}"
