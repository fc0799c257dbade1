"""`--protocol` and ACCORD_PROTOCOL: the versions of the protocol that a command asks an agent for."""

from __future__ import annotations

import argparse
import os

from accord_tools.cli.endings import WrongUsage

VARIABLE = "ACCORD_PROTOCOL"
CHOICES: dict[str, tuple[int, ...]] = {"auto": (2, 1), "1": (1,), "2": (2,)}
"""The versions that each word means; `auto` asks for 2, and takes 1."""
DEFAULT = "1"
"""What is meant without the option and the variable: version 2 is a preview."""


def arguments(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument(
        "--protocol",
        choices=CHOICES,
        help=f"the version of the protocol; auto asks for 2 and takes 1 (default: {VARIABLE}, or {DEFAULT})",
    )


def versions(options: argparse.Namespace) -> tuple[int, ...]:
    """The versions to ask for; raises WrongUsage for a word of the variable that means nothing."""
    given: str | None = options.protocol
    word = given or os.environ.get(VARIABLE) or DEFAULT
    if word not in CHOICES:
        raise WrongUsage(f"{VARIABLE} must be {', '.join(CHOICES)} or empty, got {word!r}")
    return CHOICES[word]
