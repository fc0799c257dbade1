"""Sizes as users write them in options: `64M`."""

from __future__ import annotations

from accord.confinement.limits import bytes_in
from accord_tools.cli.endings import WrongUsage


def size(what: str, text: str) -> int:
    """A size such as 64M, in bytes; `what` names the option in an error."""
    if not (found := bytes_in(text)):
        raise WrongUsage(
            f"{what} must be a positive number of bytes, with K, M or G for more, such as 64M; got {text!r}"
        )
    return found
