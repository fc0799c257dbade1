"""Bearer tokens on the command line: from a file or from the environment, never as an argument that others can see."""

from __future__ import annotations

import os
from pathlib import Path

from accord.cli.endings import WrongUsage

VARIABLE = "ACCORD_TOKEN"
HELP = f"read the bearer token from this file (default: the variable {VARIABLE}, if it is set)"


def token(file: str | None) -> str | None:
    """The one token to be sent."""
    known = owners(file)
    if len(known) > 1:
        raise WrongUsage(f"{file} holds {len(known)} tokens; one is sent")
    return next(iter(known), None)


def owners(file: str | None) -> dict[str, str]:
    """The tokens that may come in, each with its owner. In a file: TOKEN, or TOKEN and OWNER, on each line."""
    if file is None:
        given = os.environ.get(VARIABLE, "").strip()
        return {given: ""} if given else {}
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"cannot read the tokens in {file}: {getattr(error, 'strerror', None) or error}") from error
    found: dict[str, str] = {}
    for line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            secret, _, owner = line.strip().partition(" ")
            found[secret] = owner.strip()
    if not found:
        raise WrongUsage(f"{file} holds no token")
    return found
