"""`AgentsFile`: a TOML file with named agents, the user's own or a project's.

    default = "gemini"

    [agents.gemini]
    command = ["gemini", "--acp"]
    env = { GEMINI_MODEL = "flash" }
    mode = "plan"

    [allow]
    "*" = "ask"                   what agents may do without a question, in any folder
    "~/notes" = "edit"            and in this one, and below it

The user's file is `agents.toml` in the folder for settings, or the file that the variable ACCORD_CONFIG names. A
project's file is `.accord/agents.toml` in the current folder or the nearest folder above that has one. It has no
levels: a project must not decide which uses need a question.

A change preserves the rest of the file's text, including comments. A section is text from its header to the next
header. A change edits that text, and the result is read again: if it does not have exactly the intended values, for
instance because the user wrote the section in another form, nothing is written and the user is asked to edit the file.
So no TOML writer is needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec

from accord import ConfigurationError
from accord.mistakes import nearest
from accord.paths import config_folder, locked, replace_file
from accord.project.project import Project
from accord_tools.configuration.agent_settings import AgentSettings, Allow, placed, read_settings

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
    levels: Mapping[str, Allow] = field(default_factory=dict[str, Allow])
    """The permissions of agents without a question, by folders; `*` is any other folder."""

    def level_in(self, folder: Path) -> tuple[str, Allow] | None:
        """The nearest entry of `levels` for this folder, and its level."""
        named = {Path(os.path.realpath(Path(it).expanduser())): it for it in self.levels if it != EVERY_FOLDER}
        real = Path(os.path.realpath(folder))
        found = next((named[place] for place in (real, *real.parents) if place in named), EVERY_FOLDER)
        return (found, self.levels[found]) if found in self.levels else None


EVERY_FOLDER = "*"


def user_file() -> Path:
    """The path of the user's file, which may not exist."""
    given = os.environ.get(VARIABLE)
    return Path(given).expanduser().absolute() if given else config_folder() / "agents.toml"


def project_file(folder: str | Path = ".") -> Path | None:
    """Return the path of the file of the project that this folder belongs to; None if the project has no file."""
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
    agents, default, levels = parse(content, str(path))
    if levels and owner == "project":
        raise ConfigurationError(f"{path}: 'allow' belongs in your own file, {user_file()}")
    base = base_of(path, owner)
    there = {name: placed(settings, base) for name, settings in agents.items()}
    return AgentsFile(path, owner, hashlib.sha256(content).hexdigest(), there, default, levels)


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


def parse(content: bytes, source: str) -> tuple[dict[str, AgentSettings], str | None, dict[str, Allow]]:
    """Return the agents, the default and the levels in a file's content; raises ConfigurationError, which names the
    place.
    """
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{source}: {error}") from None
    for key in document:
        if key not in KEYS:
            raise ConfigurationError(f"{source}: unknown key {key!r}{nearest(key, KEYS)}")
    sections: Any = document.get("agents", {})
    if not isinstance(sections, dict):
        raise ConfigurationError(f"{source}: 'agents' must be tables such as [agents.gemini]")
    agents = {name: read_settings(name, given, source) for name, given in cast("dict[str, Any]", sections).items()}
    default: Any = document.get("default")
    if default is not None and not isinstance(default, str):
        raise ConfigurationError(f"{source}: 'default' must be the name of an agent, got {default!r}")
    levels: Any = document.get("allow", {})
    if not isinstance(levels, dict):
        raise ConfigurationError(f"{source}: 'allow' must be a table of folders and their levels, got {levels!r}")
    for folder, level in cast("dict[str, Any]", levels).items():
        if level not in get_args(Allow):
            known = ", ".join(get_args(Allow))
            raise ConfigurationError(f"{source}: [allow]: {folder!r} must be one of {known}, got {level!r}")
        if folder != EVERY_FOLDER and not Path(folder).expanduser().is_absolute():
            raise ConfigurationError(
                f"{source}: [allow]: {folder!r} must be an absolute path, or begin with ~, or be *"
            )
    return agents, default, cast("dict[str, Any]", levels)


KEYS = ("agents", "allow", "chat", "default")
"""The keys of a file; `[chat]` is read by `tui.chat_settings`."""

_HEADER = re.compile(r"\s*\[")
Value: TypeAlias = "str | bool | int | float | list[str] | dict[str, Any]"
START = "# Agents with names. `accord help agents` says what a section may have.\n"


def add_agent(path: Path, name: str, settings: AgentSettings) -> None:
    """Append an agent to the file, which is created if it is missing; raises ConfigurationError if it has the name."""
    given = msgspec.to_builtins(settings)
    read_settings(name, given, str(path))
    with locked(path):
        text, document = _read(path)
        if name in document.get("agents", {}):
            raise ConfigurationError(f"{path} has an agent {name!r}; remove it first: accord agents remove {name}")
        separated = text.rstrip("\n") + "\n\n" if text.strip() else START + "\n"
        document.setdefault("agents", {})[name] = given
        _write(path, separated + _section(name, given), document)


def remove_agent(path: Path, name: str) -> None:
    """Remove an agent, and the default if it names that agent; raises ConfigurationError if the name is unknown."""
    with locked(path):
        text, document = _read(path)
        known = document.get("agents", {})
        if name not in known:
            raise ConfigurationError(f"{path} has no agent {name!r}{nearest(name, known)}")
        del known[name]
        if not known:
            del document["agents"]
        text = _without(text, name)
        if document.get("default") == name:
            del document["default"]
            text = _with_value(text, (), "default", None)
        _write(path, text, document)


def set_default(path: Path, name: str | None) -> None:
    """Set the default agent, or remove the setting."""
    set_value(path, (), "default", name)


def set_value(path: Path, section: tuple[str, ...], key: str, value: Value | None) -> None:
    """Set a key of a section, `()` for the top of the file; None removes it."""
    with locked(path):
        text, document = _read(path)
        table = document
        for name in section:
            table = table.setdefault(name, {})
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
        _write(path, _with_value(text, section, key, value), document)


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")  # with the line ends as they are
        return text, tomllib.loads(text)
    except FileNotFoundError:
        return "", {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read {path}: {error}") from error


def _write(path: Path, text: str, expected: dict[str, Any]) -> None:
    if not _says(text, expected):
        raise ConfigurationError(f"{path} is written in a form that cannot be changed here: edit it yourself")
    try:
        # A link, for instance into a folder with the user's settings for all programs, stays one.
        replace_file(path.resolve(), text.encode())
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error


def _says(text: str, expected: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == expected
    except ValueError:
        return False


def _section(name: str, given: dict[str, Any]) -> str:
    lines = [f"[agents.{name}]"]
    lines += [f"{key} = {_toml(value)}" for key, value in given.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Value) -> str:
    """A value in TOML; strings are as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(key)} = {_toml(it)}" for key, it in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _without(text: str, name: str) -> str:
    """The text without the sections of this agent. Comments above the next header belong to the next section."""
    header = re.compile(rf"\s*\[\s*agents\s*\.\s*([\"']?){re.escape(name)}\1\s*(\.[^\]]*)?\]")
    kept: list[str] = []
    pending: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            inside = header.match(line) is not None
            kept += _after(kept, pending)
            pending = []
        if not inside:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            pending.append(line)
        else:
            pending = []
    return "".join([*kept, *_after(kept, pending)])


def _after(kept: list[str], rest: list[str]) -> list[str]:
    """Return the rest after a removed section, without a second blank line where the section was."""
    is_blank = not kept or not kept[-1].strip()
    return list(dropwhile(lambda line: not line.strip(), rest)) if is_blank else rest


def _with_value(text: str, section: tuple[str, ...], key: str, value: Value | None) -> str:
    lines = text.splitlines(keepends=True)
    begin = 0
    if section:
        name = r"\s*\.\s*".join(rf"[\"']?{re.escape(it)}[\"']?" for it in section)
        header = re.compile(rf"\s*\[\s*{name}\s*\]")
        found = next((place for place, line in enumerate(lines) if header.match(line)), None)
        if found is None:
            lines += ["\n"] * bool(lines) + [f"[{'.'.join(map(_key, section))}]\n"]
        begin = len(lines) if found is None else found + 1
    end = next((place for place in range(begin, len(lines)) if _HEADER.match(lines[place])), len(lines))
    written = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
    old = next((place for place in range(begin, end) if written.match(lines[place])), None)
    new = [] if value is None else [f"{_key(key)} = {_toml(value)}\n"]
    if old is not None:
        _, hash_sign, comment = lines[old].partition(" #")
        if new and hash_sign:
            new = [new[0].rstrip("\n") + hash_sign + comment]
        lines[old : old + 1] = new
    elif new:
        lines[begin:begin] = new if section else [*new, "\n"]
    return "".join(lines)


def _key(name: str) -> str:
    """A key in TOML, in quotes where it has to be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)
