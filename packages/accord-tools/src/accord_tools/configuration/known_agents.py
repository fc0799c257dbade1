"""`KnownAgents`: one list of all agents that have a name, whichever file or registry says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from accord_tools.configuration.agents_file import AgentsFile, project_file, read_file, user_file
from accord_tools.configuration.settings import AgentSettings
from accord_tools.configuration.trust import NotTrusted, is_trusted


@dataclass(frozen=True)
class KnownAgent:
    """An agent with a name, and the file that says so."""

    name: str
    settings: AgentSettings
    file: AgentsFile
    is_default: bool = False
    is_hidden: bool = False
    """Whether a file that comes before has an agent of the same name."""


class KnownAgents:
    """The agents of several files. The first file that has a name wins: the project's comes before the user's.

    A source of agents that is not a file, such as a registry, adds its own after them.
    """

    def __init__(self, files: list[AgentsFile]) -> None:
        self._files = files

    @classmethod
    def of(cls, folder: str | Path = ".") -> KnownAgents:
        """The agents that are known in this folder; raises ConfigurationError for an invalid file."""
        project = project_file(folder)
        files = [None if project is None else read_file(project, "project"), read_file(user_file(), "user")]
        return cls([file for file in files if file is not None])

    @property
    def files(self) -> list[AgentsFile]:
        """The files in the order in which they are searched."""
        return list(self._files)

    @property
    def project(self) -> AgentsFile | None:
        """The project's file."""
        return next((file for file in self._files if file.owner == "project"), None)

    @property
    def default(self) -> str | None:
        """The name of the default agent. Raises NotTrusted if a project's file sets it and is not trusted."""
        for file in self._files:
            if file.default is not None:
                return _trusted(file).default
        return None

    def __iter__(self) -> Iterator[KnownAgent]:
        """All agents, also those that another of the same name hides."""
        default = next((file.default for file in self._files if file.default is not None), None)
        seen: set[str] = set()
        for file in self._files:
            for name, settings in file.agents.items():
                yield KnownAgent(name, settings, file, name == default and name not in seen, name in seen)
                seen.add(name)

    @property
    def names(self) -> list[str]:
        """The names of all agents, each once."""
        return list(dict.fromkeys(agent.name for agent in self))

    def find(self, name: str) -> KnownAgent | None:
        """The agent of this name, or None. Raises NotTrusted if its file is a project's that is not trusted."""
        found = next((agent for agent in self if agent.name == name), None)
        if found is not None:
            _trusted(found.file)
        return found


def _trusted(file: AgentsFile) -> AgentsFile:
    if not is_trusted(file):
        raise NotTrusted(file)
    return file
