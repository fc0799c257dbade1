"""`AgentSettings`: the address of one agent, its default options, and the environment of its process.

A value in a settings file, in a file of variables or on the command line is its text, or `keyring:NAME`, the secret of
that name in the system's keyring. So no file needs to contain a secret. Only the user's own settings may name the
keyring: the variables of an entry in the registry are not trusted, and are texts.

An agent sees our whole environment, as any program that a shell starts. With `clean_env` it sees only the variables in
`PASSED_ON`, and those that are set for it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from accord import AccordError, ConfigurationError
from accord.agent_file import PYTHON_FILE
from accord.installation import needs_extra, scheme_of
from accord.mistakes import nearest
from accord.transports.server_access import network_proxy
from accord_tools.configuration import passed_on

if TYPE_CHECKING:
    import ssl

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""The form of a name: it needs no quotes in TOML, and is neither a path nor a URL."""

Allow = Literal["none", "ask", "edit", "auto"]


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The address of one agent, by a command, a URL or an id of the registry, and its default options."""

    command: list[str] | str | None = None
    """The program and its arguments; a string is split like a shell would, and never run by one."""
    url: str | None = None
    registry: str | None = None
    """An agent of the registry, by its id; then `command` is not set."""
    description: str | None = None
    """A description for people."""
    env: dict[str, str] = {}
    """Variables of the agent's process, besides ours; `keyring:NAME` is a secret of the system's keyring."""
    env_file: str | None = None
    """A file with more of them, NAME=VALUE on each line."""
    clean_env: bool = False
    """Whether the agent sees only a few of our variables."""
    cwd: str | None = None
    """The folder in which the agent's process is started."""
    mode: str | None = None
    config: dict[str, str | bool] = {}
    """Config options of each session, by their ids."""
    allow: Allow | None = None
    """The agent's permissions, as for `accord run --allow`."""
    token_file: str | None = None
    """For a URL: the file with the bearer token."""
    headers: dict[str, str] = {}
    ca: str | None = None
    """For a URL: a file with additional trusted certificates."""
    proxy: str | None = None
    """For a URL: the proxy, or "none"."""

    @property
    def words(self) -> list[str]:
        """The command as a list; empty if the agent has a URL or an id of the registry."""
        if isinstance(self.command, str):
            return shlex.split(self.command, posix=os.name == "posix")
        return list(self.command or ())

    @property
    def where(self) -> str:
        """The command, the URL or the id, for people."""
        return self.url or (f"registry:{self.registry}" if self.registry else shlex.join(self.words))


FIELDS = AgentSettings.__struct_fields__


def trusting(ca: str | None) -> ssl.SSLContext | None:
    """Return the TLS context of a URL's requests with the certificates of this file, too; None for the usual
    authorities.
    """
    if ca is None:
        return None
    import ssl

    trusted = ssl.create_default_context()
    try:
        trusted.load_verify_locations(ca)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"cannot read the certificates in {ca}: {error.strerror}") from None
    return trusted


def read_settings(name: str, given: Any, source: str) -> AgentSettings:
    """The settings of one section of a file; raises ConfigurationError, which names the file and the section."""
    section = f"{source}: [agents.{name}]"
    if not NAME.fullmatch(name):
        raise ConfigurationError(f"{section}: a name must have only letters, digits, - and _, and at most 64 of them")
    if not isinstance(given, dict):
        raise ConfigurationError(f"{section} must be a table, got {given!r}")
    for key in cast("dict[str, Any]", given):
        if key not in FIELDS:
            raise ConfigurationError(f"{section}: unknown key {key!r}{nearest(key, FIELDS)}")
    try:
        settings = msgspec.convert(given, AgentSettings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{section}: {_readable(str(error))}") from None
    if problem := _problem(settings):
        raise ConfigurationError(f"{section}: {problem}")
    return settings


def _readable(text: str) -> str:
    """Return the text of an error of msgspec, with the key's name instead of a JSON path."""
    what, _, path = text.partition(" - at `$.")
    return f"{path.rstrip('`')}: {what[:1].lower()}{what[1:]}" if path else text


def _problem(settings: AgentSettings) -> str | None:
    """Describe what is wrong with settings that have the right types."""
    if [settings.command, settings.url, settings.registry].count(None) != 2:
        return "must have either 'command' or 'url', or 'registry' with the id of an agent"
    if settings.url is not None:
        if scheme_of(settings.url) is None:
            return f"'url' must begin with a scheme, such as http://, https://, ws:// or wss://, got {settings.url!r}"
        unused = [key for key in ("env", "env_file", "clean_env", "cwd") if getattr(settings, key)]
        if unused:
            return f"{unused[0]!r} is for a command, and the agent has a URL"
        try:
            network_proxy(settings.url, settings.proxy or False)
        except AccordError as error:
            return str(error)
        return None
    if settings.registry is None:
        try:
            words = settings.words
        except ValueError as error:
            return f"cannot split 'command' into words: {error}; write a list"
        if not words or not words[0]:
            return "'command' must name a program"
    elif not settings.registry:
        return "'registry' must be the id of an agent"
    unused = [key for key in ("token_file", "headers", "ca", "proxy") if getattr(settings, key)]
    return f"{unused[0]!r} is for a URL, and the agent has a command" if unused else None


def placed(settings: AgentSettings, base: Path) -> AgentSettings:
    """The same with absolute paths: relative ones are in the folder `base`, `~` is the user's."""
    changed: dict[str, Any] = {
        key: str(base / Path(given).expanduser())
        for key in ("cwd", "token_file", "ca", "env_file")
        if (given := getattr(settings, key)) is not None
    }
    if (words := settings.words) and is_path(words[0]):
        changed["command"] = [str(base / Path(words[0]).expanduser()), *words[1:]]
    return msgspec.structs.replace(settings, **changed)


def is_path(word: str) -> bool:
    """Whether a program is given by a path, and not looked up on PATH; a Python file always is."""
    return os.sep in word or bool(os.altsep and os.altsep in word) or PYTHON_FILE.fullmatch(word) is not None


KEYRING = "keyring:"
SERVICE = "accord"
"""The service that the secrets are stored under."""

LARGEST = 1_000_000
"""Bytes: a larger file contains no variables."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def inherited(settings: AgentSettings) -> bool | list[str]:
    """The variables of ours that the agent sees: all, or the names of a clean environment."""
    if not settings.clean_env:
        return True
    patterns = passed_on()
    return [name for name in os.environ if any(fnmatchcase(name.upper(), pattern) for pattern in patterns)]


def changes(settings: AgentSettings) -> dict[str, str | None]:
    """Return the changes of our environment for the agent: its own variables, and None for each that it must
    not see.
    """
    seen = inherited(settings)
    hidden = set[str]() if isinstance(seen, bool) else os.environ.keys() - set(seen)
    return {**dict.fromkeys(hidden), **variables(settings)}


def variables(settings: AgentSettings) -> dict[str, str]:
    """Return the variables that are set for the agent, with their values; those of `env` override those of `env_file`.

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
    except Exception as error:  # a keyring is another program, and may fail in any way
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
    """Return the variables in a file, NAME=VALUE on each line; empty lines and those that begin with # are ignored.

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
