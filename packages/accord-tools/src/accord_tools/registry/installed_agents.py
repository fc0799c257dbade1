"""The installed agents: a folder for each version, the current version of each, and the meaning of a name.

    DATA/agents/ID/VERSION-KIND/installed.json     about one version; written last, so a folder without it is unfinished
    DATA/agents/ID/current.json                    the name of the folder that the id means

Agents are installed in their final place, because virtual environments and some packages of npm contain their paths. An
installation is atomic by its record, and by the file that names the current folder.

A process that may start an agent holds a shared lock in its folder (`hold`). A version that was replaced is removed
when no process holds it.

A name of the registry means an agent that is installed, or one that could be:

    gemini              the id of an agent
    gemini@0.55.0       one of its installed versions
    claude              a usual name for an id, such as claude-acp
    company/helper      an id of another registry
    registry:gemini     the same as gemini, and never a named agent or a program on PATH
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from accord import ConfigurationError
from accord.paths import data_folder, replace_file
from accord.transports.launch import program_file
from accord_tools.registry import RegistryError
from accord_tools.registry.agent_index import FRESH, load_index
from accord_tools.registry.entry import Kind, RegistryEntry, folder_part, order_of
from accord_tools.state_file import try_lock

RECORD = "installed.json"
CURRENT = "current.json"
REPLACED = "replaced"
IN_USE = "in-use.lock"
RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{it}{n}" for it in ("com", "lpt") for n in range(10))})
"""Names that a folder cannot have on Windows."""


class InstalledAgent(msgspec.Struct, frozen=True, kw_only=True):
    """One version of an agent that is installed."""

    id: str
    name: str
    version: str
    kind: Kind
    argv: list[str]
    """The program itself and its arguments."""
    env: dict[str, str] = {}
    origin: str = ""
    """The archive's address, or the package."""
    integrity: str = ""
    """The digest of the installed content, in the form of the lock file."""
    listed: str = ""
    """The version that the registry listed, if another one was installed."""
    license: str | None = None
    at: str = ""
    """When it was installed, as ISO 8601."""
    size: int = 0
    """Bytes on the disk."""
    folder: Path = Path()

    @property
    def is_whole(self) -> bool:
        """Whether its program is still there."""
        return program_file(self.argv[0]) is not None


def agents_folder() -> Path:
    """The folder that all agents are installed in."""
    return data_folder() / "agents"


def folder_of(name: str) -> Path:
    """Return the folder of one agent's versions.

    An id has lower-case letters, digits and -, and perhaps a registry's name and a slash before them.
    """
    part = name.replace("/", "+")
    return agents_folder() / (f"{part}_" if part in RESERVED else part)


def new_folder(name: str, version: str, kind: Kind) -> Path:
    """A folder for an installation, which no process uses."""
    base = folder_of(name) / f"{folder_part(version)}-{kind}"
    path, count = base, 1
    while (path / RECORD).exists() or not _is_free(path):
        count += 1
        path = base.with_name(f"{base.name}.{count}")
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o700, parents=True)
    return path


def versions_of(name: str) -> list[InstalledAgent]:
    """The installed versions of an agent, the newest first."""
    try:
        found = [_read(path) for path in folder_of(name).iterdir()]
    except OSError:
        return []
    agents = [agent for agent in found if agent is not None and not (agent.folder / REPLACED).exists()]
    return sorted(agents, key=lambda agent: (order_of(agent.version), agent.at), reverse=True)


def current(name: str) -> InstalledAgent | None:
    """The version that an id means: the one that was installed last, else the newest."""
    agents = versions_of(name)
    with suppress(OSError, msgspec.DecodeError):
        chosen = msgspec.json.decode((folder_of(name) / CURRENT).read_bytes(), type=dict[str, str])["folder"]
        return next((agent for agent in agents if agent.folder.name == chosen), agents[0] if agents else None)
    return agents[0] if agents else None


def all_installed() -> Iterator[InstalledAgent]:
    """Return the current version of each agent that is installed, by id."""
    try:
        names = sorted(path.name for path in agents_folder().iterdir() if path.is_dir())
    except OSError:
        return
    for name in names:
        plain = name.removesuffix("_") if name.removesuffix("_") in RESERVED else name
        agent = current(plain.replace("+", "/"))
        if agent is not None:
            yield agent


def keep(agent: InstalledAgent) -> None:
    """Write the record of an installation, and make it the current one."""
    old = current(agent.id)
    record = msgspec.structs.replace(agent, folder=Path(agent.folder.name))
    replace_file(agent.folder / RECORD, _encoded(record))
    replace_file(folder_of(agent.id) / CURRENT, _encoded({"folder": agent.folder.name}))
    is_again = old is not None and (old.version, old.kind) == (agent.version, agent.kind)
    if old is not None and is_again and old.folder != agent.folder:
        mark_replaced(old)


def mark_replaced(agent: InstalledAgent) -> None:
    """Let a version be removed as soon as no process uses it."""
    with suppress(OSError):
        (agent.folder / REPLACED).touch()


def sweep(name: str) -> list[str]:
    """Remove unfinished and replaced versions that are not in use; the result names those that still are.

    The caller holds the lock of the agent's folder.
    """
    kept: list[str] = []
    with suppress(OSError):
        for path in list(folder_of(name).iterdir()):
            if not path.is_dir() or ((path / RECORD).exists() and not (path / REPLACED).exists()):
                continue
            if _is_free(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                kept.append(path.name)
    return kept


def remove(name: str, version: str | None = None) -> list[str]:
    """Remove an agent, or one version of it; the result names those in use, which will be removed later."""
    for agent in versions_of(name):
        if version is None or agent.version == version:
            mark_replaced(agent)
    kept = sweep(name)
    left = versions_of(name)
    if not left:
        with suppress(OSError):
            (folder_of(name) / CURRENT).unlink()
    return kept


def hold(agent: InstalledAgent) -> None:
    """Keep this version from being removed as long as this process lives."""
    place = agent.folder / IN_USE
    if place in _held:
        return
    with suppress(OSError):
        fd = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
        if try_lock(fd, shared=True):
            _held[place] = fd
        else:
            os.close(fd)


_held: dict[Path, int] = {}


def _is_free(folder: Path) -> bool:
    """Whether no process holds a version."""
    try:
        fd = os.open(folder / IN_USE, os.O_RDWR)
    except OSError:
        return True
    try:
        return try_lock(fd)
    finally:
        os.close(fd)


def _read(folder: Path) -> InstalledAgent | None:
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        found = _decode((folder / RECORD).read_bytes())
        return msgspec.structs.replace(found, folder=folder) if found.argv else None
    return None


def _encoded(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str)) + b"\n"


def _path(kind: type, value: object) -> object:
    return Path(str(value)) if kind is Path else value


# Made at import: msgspec's first use of a class is not safe in two threads.
_decode = msgspec.json.Decoder(InstalledAgent, dec_hook=_path).decode


PREFIX = "registry:"

ALIASES = {
    "amp": "amp-acp",
    "augment": "auggie",
    "claude": "claude-acp",
    "claude-code": "claude-acp",
    "codebuddy": "codebuddy-code",
    "codex": "codex-acp",
    "copilot": "github-copilot-cli",
    "copilot-cli": "github-copilot-cli",
    "cortex": "cortex-code",
    "cursor-agent": "cursor",
    "droid": "factory-droid",
    "fast-agent-acp": "fast-agent",
    "gemini-cli": "gemini",
    "glm": "glm-acp-agent",
    "grok": "grok-build",
    "kimi-cli": "kimi",
    "mistral": "mistral-vibe",
    "pi": "pi-acp",
    "qwen": "qwen-code",
    "vibe": "mistral-vibe",
}
"""Usual names of agents, and their ids. An agent whose id is such a name takes precedence."""

_NAME = re.compile(r"(?P<id>(?:[a-z][a-z0-9-]*/)?[a-z][a-z0-9-]{0,99})(?:@(?P<version>[0-9A-Za-z][0-9A-Za-z.+_-]*))?")


def split_name(name: str) -> tuple[str, str | None] | None:
    """Return the id and the version of a name; None for text that cannot be the name of an agent.

    >>> split_name("registry:gemini@0.55.0"), split_name("./agent.py")
    (('gemini', '0.55.0'), None)
    """
    found = _NAME.fullmatch(name.removeprefix(PREFIX))
    return None if found is None else (found["id"], found["version"])


def find_installed(name: str) -> InstalledAgent | None:
    """The installed agent that a name means; raises ConfigurationError if only other versions are installed."""
    given = split_name(name)
    if given is None:
        return None
    for agent_id in dict.fromkeys((given[0], ALIASES.get(given[0], given[0]))):
        if given[1] is None:
            if (agent := current(agent_id)) is not None:
                return agent
        elif known := versions_of(agent_id):
            for agent in known:
                if agent.version == given[1]:
                    return agent
            versions = ", ".join(agent.version for agent in known)
            raise ConfigurationError(
                f"{agent_id} {given[1]} is not installed; installed: {versions}. "
                f"Install it: accord agents install {agent_id}@{given[1]}"
            )
    return None


def find_listed(name: str, *, offline: bool = False, fresh: float = FRESH) -> RegistryEntry | None:
    """Return the agent of the index that a name means; None if there is none, or no index can be read."""
    given = split_name(name)
    if given is None:
        return None
    try:
        index = load_index(offline=offline, fresh=fresh)
    except (RegistryError, ConfigurationError):
        return None
    return index.find(given[0]) or index.find(ALIASES.get(given[0], given[0]))


def hold_installed(name: str) -> InstalledAgent | None:
    """Return the installed agent that a name means, which is then not removed while this process lives."""
    agent = find_installed(name)
    if agent is not None:
        hold(agent)
    return agent


def registry_names() -> list[str]:
    """Return the ids of agents that are installed, and of those in the cached index; nothing is fetched."""
    names = [agent.id for agent in all_installed()]
    try:
        return list(dict.fromkeys([*names, *(entry.id for entry in load_index(offline=True))]))
    except (RegistryError, ConfigurationError):
        return names
