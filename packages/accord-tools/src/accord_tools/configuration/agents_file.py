"""`AgentsFile`: a TOML file with named agents, the user's own or a project's.

    default = "gemini"

    [agents.gemini]
    command = ["gemini", "--acp"]
    env = { GEMINI_MODEL = "flash" }
    mode = "plan"

The user's file is `agents.toml` in the folder for settings, or the file that the variable ACCORD_CONFIG names. A
project's file is `.accord/agents.toml` in the current folder or the nearest folder above that has one.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from accord import ConfigurationError
from accord.folders import config_folder
from accord.mistakes import nearest
from accord.project.project import Project
from accord_tools.configuration.settings import AgentSettings, placed, read_settings

VARIABLE = "ACCORD_CONFIG"
IN_PROJECT = Path(".accord", "agents.toml")

LARGEST = 1_000_000
"""Bytes: a larger file was not written by a person."""

Owner = Literal["user", "project"]


@dataclass(frozen=True)
class AgentsFile:
    """A file with named agents, as it was read."""

    path: Path
    owner: Owner
    digest: str
    """The SHA-256 of the content."""
    agents: dict[str, AgentSettings]
    default: str | None = None


def user_file() -> Path:
    """The path of the user's file, which may not exist."""
    given = os.environ.get(VARIABLE)
    return Path(given).expanduser().absolute() if given else config_folder() / "agents.toml"


def project_file(folder: str | Path = ".") -> Path | None:
    """The path of the file of the project that this folder belongs to; None if the project has no file."""
    try:
        start = Path(folder).absolute()
        own = user_file()
        for place in (start, *start.parents):
            path = place / IN_PROJECT
            if path != own and Project([place]).size(path) is not None:
                return path
    except OSError:  # a deleted or unreadable folder has no project
        pass
    return None


def read_file(path: Path, owner: Owner) -> AgentsFile | None:
    """Read a file; None if it does not exist. Raises ConfigurationError if it is invalid."""
    try:
        content = _content(path, owner)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    agents, default = parse(content, str(path))
    base = base_of(path, owner)
    there = {name: placed(settings, base) for name, settings in agents.items()}
    return AgentsFile(path, owner, hashlib.sha256(content).hexdigest(), there, default)


def _content(path: Path, owner: Owner) -> bytes:
    """The bytes of a file. That of the user may be a pipe or a link to anywhere; that of a project is a stranger's."""
    if owner == "project":
        return Project([base_of(path, owner)]).read(path, LARGEST)
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{path} is larger than {LARGEST:,} bytes")
    return content


def base_of(path: Path, owner: Owner) -> Path:
    """The folder that relative paths in a file start from: the project's, or that of the user's file."""
    return path.parent.parent if owner == "project" else path.parent


def parse(content: bytes, source: str) -> tuple[dict[str, AgentSettings], str | None]:
    """The agents and the default of a file's content; raises ConfigurationError, which names the place."""
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{source}: {error}") from None
    for key in document:
        if key not in ("agents", "default", "chat"):  # `[chat]` is read by `tui.settings`
            raise ConfigurationError(f"{source}: unknown key {key!r}{nearest(key, ('agents', 'default'))}")
    sections: Any = document.get("agents", {})
    if not isinstance(sections, dict):
        raise ConfigurationError(f"{source}: 'agents' must be tables such as [agents.gemini]")
    agents = {name: read_settings(name, given, source) for name, given in cast("dict[str, Any]", sections).items()}
    default: Any = document.get("default")
    if default is not None and not isinstance(default, str):
        raise ConfigurationError(f"{source}: 'default' must be the name of an agent, got {default!r}")
    return agents, default
