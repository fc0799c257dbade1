"""`AgentSettings`: how one agent is reached, and the options that it is used with. PURE."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from accord import AccordError, ConfigurationError
from accord.agent_file import PYTHON_FILE
from accord.mistakes import nearest
from accord.plugins import scheme_of
from accord.transports.server_access import network_proxy

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""What a name may look like: it needs no quotes in TOML, and is neither a path nor a URL."""

Allow = Literal["all", "reads", "ask", "none"]


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How one agent is reached, by a command, a URL or an id of the registry, and the options that it is used with."""

    command: list[str] | str | None = None
    """The program and its arguments; a string is split like a shell would, and never run by one."""
    url: str | None = None
    registry: str | None = None
    """An agent of the registry, by its id; `command` is then not given."""
    description: str | None = None
    """For people: what the agent is for."""
    env: dict[str, str] = {}
    """Variables of the agent's process, besides ours; `keyring:NAME` is a secret of the system's keyring."""
    env_file: str | None = None
    """A file with more of them, NAME=VALUE on each line."""
    clean_env: bool = False
    """Whether the agent sees only a few of our variables."""
    cwd: str | None = None
    """The folder that the agent's process is started in."""
    mode: str | None = None
    config: dict[str, str | bool] = {}
    """Config options of each session, by their ids."""
    allow: Allow | None = None
    """What the agent may use, as `accord run --allow` says."""
    token_file: str | None = None
    """For a URL: the file with the bearer token."""
    headers: dict[str, str] = {}
    ca: str | None = None
    """For a URL: a file with certificates that are trusted as well."""
    proxy: str | None = None
    """For a URL: the proxy on the way, or "none"."""

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
    """An error of msgspec, with the key's name in place of a JSON path."""
    what, _, path = text.partition(" - at `$.")
    return f"{path.rstrip('`')}: {what[:1].lower()}{what[1:]}" if path else text


def _problem(settings: AgentSettings) -> str | None:
    """What is wrong with settings that have the right types."""
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
    """Whether a program is named by its place, and not looked up on PATH; a Python file always is."""
    return os.sep in word or bool(os.altsep and os.altsep in word) or PYTHON_FILE.fullmatch(word) is not None
