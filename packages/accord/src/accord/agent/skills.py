"""Skills of an agent: folders with a file SKILL.md, which has instructions for one kind of task.

    skills/
      release/SKILL.md        ---
                              name: release
                              description: Use this to release a version.
                              ---
                              1. Run the tests ...

The file begins with its name and a description, by which the user or the model chooses; the text below is read only
when the skill is used. `Agent(skills=...)` names folders of such folders, or a function that returns those of a
session. The user sees a command `/release`; a client of version 2 that shows skills gets them as skills.

A project's folder is not trusted. One in the session's folders is read through them, like every file of a project: no
link leads out, only ordinary files are read, and only up to a limit of bytes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from accord.mistakes import wrong_type
from accord.project.project import Project
from accord.session import updates

if TYPE_CHECKING:
    from accord.services.service import ServedSession

FILE = "SKILL.md"
MOST_SKILLS = 100
"""The most skills of one folder."""
MOST_ENTRIES = 1_000
"""The most entries of a folder that are examined."""
LONGEST_HEAD = 16 * 1024
"""Bytes within which the name and the description must be."""
LARGEST = 256 * 1024
"""Bytes of a SKILL.md."""
LONGEST_DESCRIPTION = 1_024

SkillFolders: TypeAlias = "str | Path | Sequence[str | Path] | Callable[[Any], Iterable[str | Path]]"
"""A folder of skills, several, or a function of the `Session` that names those of a session."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_MEMBER = re.compile(r"(name|description):(?:\s+(.*))?")


class AgentSkill:
    """A skill that a session offers, from the front matter of its SKILL.md.

    >>> async def answer(turn):
    ...     for skill in turn.skills:
    ...         await turn.think(skill.read())
    """

    def __init__(self, name: str, description: str, path: Path, project: Project) -> None:
        self.name = name
        """Its name: lower-case letters, digits and hyphens."""
        self.description = description
        """Its purpose, in one line."""
        self.path = path
        """The folder of its SKILL.md, where the files lie that its text names."""
        self._project = project

    def __repr__(self) -> str:
        return f"AgentSkill({self.name!r}, {str(self.path)!r})"

    def read(self) -> str:
        """Read the text below the front matter; raises OSError or ValueError if it can no longer be read."""
        text = self._project.read(self.path / FILE, LARGEST).decode("utf-8", "replace")
        return _split(text)[1].strip()


def check_skills(folders: SkillFolders | None) -> SkillFolders | None:
    """Return the value of `Agent(skills=...)` with absolute folders; raises TypeError or ValueError for an invalid
    one.
    """
    if folders is None or callable(folders):
        return folders
    given = [folders] if isinstance(folders, str | Path) else folders
    if not isinstance(cast("object", given), Sequence):
        raise wrong_type("Agent(skills=...)", "a folder, several, or a function of the session", folders)
    found = [Path(folder).expanduser().absolute() for folder in given]
    for folder in found:
        if not folder.is_dir():
            raise ValueError(f"Agent(skills=...) must name folders, but there is no folder {folder}")
    return found


def skills_of(session: ServedSession, folders: SkillFolders) -> list[AgentSkill]:
    """The skills that a session offers; of two with one name the first."""
    named = folders(session) if callable(folders) else folders
    found: dict[str, AgentSkill] = {}
    for folder in [named] if isinstance(named, str | Path) else named:
        path = session.cwd / Path(folder).expanduser()
        for skill in _in_folder(path, Project(session.roots) if path in session.roots else Project([path])):
            found.setdefault(skill.name, skill)
    return list(found.values())


def _in_folder(folder: Path, project: Project) -> Iterator[AgentSkill]:
    """Return the skills of one folder, sorted by name; none if it cannot be read."""
    names: list[str] = []
    with suppress(OSError, ValueError), ExitStack() as held:
        place, fd = held.enter_context(project.enter(folder))
        if fd is not None:
            fd = os.open(".", os.O_RDONLY, dir_fd=fd)  # a descriptor that only names a folder cannot list it
            held.callback(os.close, fd)
        with os.scandir(place if fd is None else fd) as entries:
            names = sorted(entry.name for entry in islice(entries, MOST_ENTRIES))
    found = (skill for name in names if (skill := _skill(folder / name, project)) is not None)
    yield from islice(found, MOST_SKILLS)


def _skill(folder: Path, project: Project) -> AgentSkill | None:
    with suppress(OSError, ValueError):
        head = project.read(folder / FILE, LONGEST_HEAD, cut=True).decode("utf-8", "replace")
        members = _split(head)[0]
        name, description = members.get("name") or folder.name, " ".join(members.get("description", "").split())
        if _NAME.fullmatch(name) and description:
            return AgentSkill(name, description[:LONGEST_DESCRIPTION], folder, project)
    return None


def _split(text: str) -> tuple[dict[str, str], str]:
    """Return the name and description of the front matter, and the text below it.

    >>> _split("---\\nname: pdf\\ndescription: >\\n  Reads\\n  files\\n---\\nUse it.")
    ({'name': 'pdf', 'description': 'Reads files'}, 'Use it.')
    """
    first, *lines = text.removeprefix("\ufeff").splitlines() or [""]
    ends = [number for number, line in enumerate(lines) if line.rstrip() == "---"]
    if first.rstrip() != "---" or not ends:
        return {}, text
    members: dict[str, list[str]] = {}
    member: list[str] = []
    for line in lines[: ends[0]]:
        if line[:1].isspace():
            member.append(line.strip())
        elif (found := _MEMBER.fullmatch(line.rstrip())) is not None:
            member = members[found[1]] = [found[2] or ""]
        else:
            member = []
    return {name: _scalar(parts) for name, parts in members.items()}, "\n".join(lines[ends[0] + 1 :])


def _scalar(parts: Sequence[str]) -> str:
    """Return a YAML text: plain, in quotes, or on lines of its own."""
    if re.fullmatch(r"[>|][+-]?\d?", parts[0].strip()):
        return " ".join(parts[1:]).strip()
    text = " ".join(parts).strip()
    if text.startswith('"'):
        with suppress(ValueError):
            return str(json.loads(text))
    if text.startswith("'"):
        return text.strip("'").replace("''", "'")
    return re.split(r"\s#", text, maxsplit=1)[0].strip()


def named_skills(prompt: Sequence[updates.ContentBlock], skills: Sequence[AgentSkill]) -> list[AgentSkill]:
    """The skills that a prompt names: by the command that it begins with, and by blocks."""
    names = [block.name for block in prompt if isinstance(block, updates.SkillReference)]
    text = next((block.text for block in prompt if isinstance(block, updates.TextContent)), "").lstrip()
    if text.startswith("/"):
        names.insert(0, (text[1:].split(maxsplit=1) or [""])[0])
    by_name = {skill.name: skill for skill in skills}
    return [by_name[name] for name in dict.fromkeys(names) if name in by_name]
