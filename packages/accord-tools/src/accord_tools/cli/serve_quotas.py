"""`accord serve --quota`: what each owner may use of a server, or of all hosts of a service."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from accord_tools.cli.endings import WrongUsage

if TYPE_CHECKING:
    from accord.http import Quotas

QUOTAS = {
    "connections": "open connections of one owner",
    "turns": "running turns of one owner",
    "posts": "messages a second of one owner",
    "burst": "messages of one owner that may come at once (default: 10 seconds' worth of posts)",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quota",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="limit what each owner of a token may use, over all hosts and processes (see below); may be repeated",
    )


def lines() -> str:
    """The quotas, for the end of the help."""
    return "\n".join(f"  {name:22}{explained}" for name, explained in QUOTAS.items())


def quotas_of(given: list[str]) -> Quotas | None:
    """The quotas that the options name, or None; raises WrongUsage."""
    from accord.http import Quotas

    found: dict[str, Any] = {}
    for setting in given:
        name, is_set, text = setting.partition("=")
        if name not in QUOTAS or not is_set:
            raise WrongUsage(f"--quota must be NAME=NUMBER with a name of {', '.join(QUOTAS)}; got {setting!r}")
        try:
            found[name] = float(text) if name == "posts" else int(text)
        except ValueError:
            raise WrongUsage(f"--quota {name} must be a number, got {text!r}") from None
    try:
        return Quotas(**found) if found else None
    except ValueError as error:
        raise WrongUsage(str(error)) from None
