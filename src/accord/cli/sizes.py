"""Sizes as users write them: `64M`."""

from __future__ import annotations

import re

from accord.cli.endings import WrongUsage

SIZE = re.compile(r"(\d+)\s*([KMG]?)B?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(what: str, text: str) -> int:
    """A size such as 64M, in bytes; `what` names the option in an error."""
    found = SIZE.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise WrongUsage(
            f"{what} must be a positive number of bytes, with K, M or G for more, such as 64M; got {text!r}"
        )
    return int(found[1]) * _FACTORS[found[2].lower()]
