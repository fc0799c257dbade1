"""Bearer tokens for commands: read from a file or the environment, never from arguments, which other users can see."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from accord_tools.cli.endings import WrongUsage

if TYPE_CHECKING:
    from accord.http import Observer

VARIABLE = "ACCORD_TOKEN"
OBSERVER = "observer"
"""The word that ends the line of a token that may only watch."""
HELP = f"read the bearer token from this file (default: the variable {VARIABLE}, if it is set)"

ROUNDS = 20_000
"""Rounds of PBKDF2 for an owner's name. Logs show the name, and it must not help to guess a short token."""


def token(file: str | None) -> str | None:
    """The bearer token to send: from this file, or from the variable, which is then removed from the environment.

    An agent that is a local command, and every terminal it asks for, would inherit the variable otherwise.
    """
    given = os.environ.get(VARIABLE, "").strip() or None
    forget()
    if file is None:
        return given
    known = _read(file)
    if len(known) > 1:
        raise WrongUsage(f"--token-file {file} must hold exactly one token to send, got {len(known)}")
    return next(iter(known))


def owners(file: str | None) -> dict[str, str | Observer]:
    """The accepted tokens and their owners or observers; empty without a file and with the variable unset.

    A token without an owner in its line is an owner of its own. `observer` after an owner makes it one that only
    watches.
    """
    if file is not None:
        return {secret: _user(owner) if owner else _owner_of(secret) for secret, owner in _read(file).items()}
    given = os.environ.get(VARIABLE)
    if given is None:
        return {}
    if not given.strip():
        raise WrongUsage(f"{VARIABLE} is set but empty: set it to a token, or unset it to allow everyone")
    return {given.strip(): ""}


def _user(owner: str) -> str | Observer:
    from accord.http import Observer

    name, _, role = owner.rpartition(" ")
    return Observer(name.strip()) if role == OBSERVER and name.strip() else owner


def forget() -> None:
    """Remove the token from this process's environment.

    An agent that we start can read the environment that we were started with (/proc/PID/environ on Linux). Deleting a
    variable does not change that text, so the value is also overwritten in place.
    """
    if VARIABLE not in os.environ:
        return
    if sys.platform != "win32":
        import ctypes

        find = ctypes.CDLL(None).getenv
        find.restype = ctypes.c_void_p
        if (place := find(VARIABLE.encode())) is not None:
            ctypes.memset(place, 0, len(os.environb[VARIABLE.encode()]))
    del os.environ[VARIABLE]


def _read(file: str) -> dict[str, str]:
    """Read a token file: each line is TOKEN, TOKEN OWNER, TOKEN OWNER observer, or a comment that begins with #."""
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"cannot read the tokens in {file}: {getattr(error, 'strerror', None) or error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        secret, *owner = line.split(maxsplit=1)[:2] or ("",)
        if not secret or secret.startswith("#"):
            continue
        if secret in found:
            raise WrongUsage(
                f"--token-file {file}: the token in line {number} is a duplicate; give each owner a token of its own"
            )
        found[secret] = owner[0].strip() if owner else ""
    if not found:
        raise WrongUsage(f"--token-file {file} contains no token: write at least one, each on its own line")
    return found


def _owner_of(secret: str) -> str:
    """A stable name for the owner of a token, from which the token cannot be found."""
    derived = hashlib.pbkdf2_hmac("sha256", secret.encode(), b"accord owner", ROUNDS, dklen=8)
    return f"token-{derived.hex()}"
