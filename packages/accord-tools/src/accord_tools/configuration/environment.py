"""The environment of an agent's process: what of ours it sees, and where the values of its own variables come from.

A value in a settings file, in a file of variables or on the command line is its text, or `keyring:NAME`, which is the
secret of that name in the system's keyring. So no file needs to hold a secret. Only settings of the user's name the
keyring: the variables of an entry in the registry come from strangers, and are texts.

An agent sees our whole environment, as any program that a shell starts. With `clean_env` it sees the variables in
`PASSED_ON` only, and what is set for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from accord import ConfigurationError
from accord.extras import needs_extra

if TYPE_CHECKING:
    from accord_tools.configuration.settings import AgentSettings

KEYRING = "keyring:"
SERVICE = "accord"
"""The service that the secrets are stored under."""

PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TERM", "TMPDIR", "XDG_*",
    "SSL_CERT_*", "NODE_EXTRA_CA_CERTS", "*_PROXY",
)  # fmt: skip
"""The variables that an agent with a clean environment sees: where programs and folders are, the language, and how to
reach the network. `*` stands for any text, and case does not count."""

PASSED_ON_WINDOWS = (
    "SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "APPDATA",
    "LOCALAPPDATA", "PROGRAM*",
)  # fmt: skip
"""Those that it sees as well on Windows, where most programs do not start without them."""

LARGEST = 1_000_000
"""Bytes: a larger file holds no variables."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def inherited(settings: AgentSettings) -> bool | list[str]:
    """The variables of ours that the agent sees: all, or the names of a clean environment."""
    if not settings.clean_env:
        return True
    patterns = passed_on()
    return [name for name in os.environ if any(fnmatchcase(name.upper(), pattern) for pattern in patterns)]


def changes(settings: AgentSettings) -> dict[str, str | None]:
    """The agent's environment as what differs from ours: its own variables, and None for each that it must not see."""
    seen = inherited(settings)
    hidden = set[str]() if isinstance(seen, bool) else os.environ.keys() - set(seen)
    return {**dict.fromkeys(hidden), **variables(settings)}


def passed_on() -> tuple[str, ...]:
    """The patterns of a clean environment on this system."""
    return (*PASSED_ON, *PASSED_ON_WINDOWS) if os.name == "nt" else PASSED_ON


def variables(settings: AgentSettings) -> dict[str, str]:
    """The variables that are set for the agent, with their values; those of `env` come before those of `env_file`.

    Raises ConfigurationError for a file that cannot be read, and for a secret that the keyring does not have.
    """
    written = {**(read_env_file(Path(settings.env_file)) if settings.env_file else {}), **settings.env}
    return {name: value_of(name, value) for name, value in written.items()}


def value_of(name: str, written: str) -> str:
    """The value of a variable, from the keyring if it is written so."""
    if not written.startswith(KEYRING):
        return written
    secret = written.removeprefix(KEYRING)
    try:
        import keyring

        found = keyring.get_password(SERVICE, secret)
    except Exception as error:  # a keyring is a program of others, and may fail in any way
        if isinstance(error, ImportError) and error.name == "keyring":
            raise ConfigurationError(needs_extra("agent", f"{name}={written}")) from None
        raise ConfigurationError(f"the value of {name}, {written!r}, cannot be read: {error}") from None
    if found is None:
        raise ConfigurationError(
            f"the value of {name} is {written!r}, and the keyring has no such secret; "
            f"store it: keyring set {SERVICE} {secret}"
        )
    return found


def without_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that do not name the keyring."""
    return {name: value for name, value in env.items() if not value.startswith(KEYRING)}


def read_env_file(path: Path) -> dict[str, str]:
    """The variables in a file, NAME=VALUE on each line; empty lines and those that begin with # say nothing.

    `export` before a name and a pair of quotes around a value are left out. Nothing in a value is replaced.
    """
    try:
        with path.open("rb") as file:
            lines = file.read(LARGEST).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the variables in {path}: {_reason(error)}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.removeprefix("export ").partition("=")
        if not equals or not _NAME.fullmatch(name.strip()):  # the line is not shown: it may be a secret
            raise ConfigurationError(f"{path}, line {number}: must be NAME=VALUE, a comment or empty")
        found[name.strip()] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is no text in UTF-8"
