"""The one resolver: from the user's words for an agent to its command or address.

| written | means, in this order |
|---|---|
| one word, as a name | a URL; a named agent; an agent of the registry; a Python file, `FILE.py`; a program on PATH |
| words, as a command | a URL; a program; a Python file; a named agent; one of the registry; a command in one word |

A name that is both an agent and a program means the agent if it was written as a name, otherwise the program: a command
that works without named agents means the same with them. `registry:ID` means the registry's agent in both.

An agent of the registry is named by its id or a usual name, such as `claude`. One that is not installed is an error
that explains how to install it. A program on PATH is not looked up over the network: only a cached index counts, and
only if the user can be asked. So the meaning of a script does not depend on the cache.

`KnownAgents` is one list of all agents with a name, from all files and registries.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from accord import CommandTarget, ConfigurationError, Target
from accord.agent_file import PYTHON_FILE, python_command, startable
from accord.client.connect import url_target
from accord.installation import own_command, scheme_of
from accord.mistakes import meant, nearest
from accord.transports.launch import program_file
from accord_tools.configuration.agent_settings import AgentSettings, inherited, variables, without_secrets
from accord_tools.configuration.agents_file import AgentsFile, project_file, read_file, user_file
from accord_tools.configuration.trust import NotTrusted, is_trusted
from accord_tools.registry import NotInstalled
from accord_tools.registry.installed_agents import PREFIX, find_listed, hold_installed, registry_names


@dataclass(frozen=True)
class KnownAgent:
    """An agent with a name, and the file that defines it."""

    name: str
    settings: AgentSettings
    file: AgentsFile
    is_default: bool = False
    is_hidden: bool = False
    """Whether a file that comes before has an agent of the same name."""


class KnownAgents:
    """The agents of several files. The first file that has a name wins: the project's precedes the user's.

    A source of agents that is not a file, such as a registry, adds its own after them.
    """

    def __init__(self, files: list[AgentsFile]) -> None:
        self.files = files

    @classmethod
    def of(cls, folder: str | Path = ".") -> KnownAgents:
        """The agents that are known in this folder; raises ConfigurationError for an invalid file."""
        project = project_file(folder)
        files = [None if project is None else read_file(project, "project"), read_file(user_file(), "user")]
        return cls([file for file in files if file is not None])

    @property
    def project(self) -> AgentsFile | None:
        """The project's file."""
        return next((file for file in self.files if file.owner == "project"), None)

    @property
    def default(self) -> str | None:
        """The name of the default agent. Raises NotTrusted if a project's file sets it and is not trusted."""
        for file in self.files:
            if file.default is not None:
                return _trusted(file).default
        return None

    def __iter__(self) -> Iterator[KnownAgent]:
        """Iterate over all agents, including those that another of the same name hides."""
        default = next((file.default for file in self.files if file.default is not None), None)
        seen: set[str] = set()
        for file in self.files:
            for name, settings in file.agents.items():
                yield KnownAgent(name, settings, file, name == default and name not in seen, name in seen)
                seen.add(name)

    @property
    def names(self) -> list[str]:
        """The names of all agents, each once."""
        return list(dict.fromkeys(agent.name for agent in self))

    def find(self, name: str) -> KnownAgent | None:
        """Return the agent of this name, or None. Raises NotTrusted if its file is a project's that is not trusted."""
        found = next((agent for agent in self if agent.name == name), None)
        if found is not None:
            _trusted(found.file)
        return found


def _trusted(file: AgentsFile) -> AgentsFile:
    if not is_trusted(file):
        raise NotTrusted(file)
    return file


class UnknownAgent(ConfigurationError):
    """There is no agent of this name."""


DEMO = "demo"
"""The name of the built-in agent, unless the user has given it to another."""


def resolve(name: str, folder: str | Path = ".", *, offline: bool = False, may_ask: bool = False) -> AgentSettings:
    """Return how to reach the agent that one word names.

    Offline, the registry's index is not fetched. `may_ask` is whether the caller can ask whether to install an agent:
    otherwise a program on PATH takes precedence over an agent that is not installed.

    Raises UnknownAgent, NotTrusted for an agent of a project's file that is not trusted, NotInstalled for an agent of
    the registry that is not installed, and ConfigurationError for a file that is invalid.
    """
    if scheme_of(name):
        return AgentSettings(url=name)
    known = KnownAgents.of(folder)
    if not name.startswith(PREFIX) and (agent := known.find(name)) is not None:
        return started_by_us(_of_registry(agent.settings, offline=offline))
    is_program = program_file(name) is not None
    found = from_registry(name, offline=offline or is_program, only_installed=is_program and not may_ask)
    if found is not None:
        return found
    if name == DEMO:
        return AgentSettings(command=own_command("accord", "demo"))
    if (python := python_command([name])) is not None:
        return AgentSettings(command=python)
    if is_program:
        return AgentSettings(command=[name])
    if name.startswith(PREFIX):
        raise UnknownAgent(f"no agent of the registry is {name!r}, or its list cannot be read: accord agents search")
    how = (
        meant(name, [*known.names, *registry_names()])
        or nearest(name, known.names)
        or "; `accord agents` lists the agents that have names"
    )
    raise UnknownAgent(f"no agent has the name {name!r}, and no program on PATH has it{how}")


def from_registry(name: str, *, offline: bool = False, only_installed: bool = False) -> AgentSettings | None:
    """Return how to reach the registry's agent of this name; None if the registry has none, or cannot be asked.

    Raises NotInstalled if it is not installed.
    """
    agent = hold_installed(name)
    if agent is not None:
        return AgentSettings(command=agent.argv, env=without_secrets(agent.env), description=agent.name)
    entry = None if only_installed else find_listed(name, offline=offline)
    if entry is None:
        return None
    here = f"; the program on PATH is `-- {name}`" if program_file(name) is not None else ""
    raise NotInstalled(entry, here)


def _of_registry(settings: AgentSettings, *, offline: bool) -> AgentSettings:
    """The same settings, with the command of the registry's agent that they name."""
    if settings.registry is None:
        return settings
    found = from_registry(settings.registry, offline=offline)
    if found is None:
        raise UnknownAgent(f"the registry has no agent {settings.registry!r}; `accord agents search` lists them")
    env = {**found.env, **settings.env}
    return msgspec.structs.replace(settings, command=found.command, registry=None, env=env)


def resolve_command(words: Sequence[str], folder: str | Path = ".") -> AgentSettings:
    """Return how to reach the agent of these words, as they are written after `--`."""
    first = words[0]
    if scheme_of(first):
        return AgentSettings(url=first)
    if program_file(first) is not None:
        return AgentSettings(command=list(words))
    if (python := python_command(words)) is not None:
        return AgentSettings(command=python)
    if len(words) == 1:
        if not first.startswith(PREFIX) and (agent := KnownAgents.of(folder).find(first)) is not None:
            return started_by_us(_of_registry(agent.settings, offline=False))
        return from_registry(first) or AgentSettings(command=first)
    return AgentSettings(command=list(words))


def started_by_us(settings: AgentSettings) -> AgentSettings:
    """The same settings; a Python file as the program is started with this Python."""
    words = settings.words
    return settings if (command := startable(words)) == words else msgspec.structs.replace(settings, command=command)


def python_file(settings: AgentSettings) -> Path | None:
    """Return the Python file that `python_command` starts; None for another command."""
    words = settings.words
    start = own_command("accord.agent_file")
    if words[: len(start)] != start:
        return None
    found = PYTHON_FILE.fullmatch(words[len(start)])
    return None if found is None else Path(settings.cwd or ".") / found["file"]


def target_of(
    settings: AgentSettings,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    proxy: str | bool = True,
    on_stderr: Callable[[str], object] | None = None,
) -> Target:
    """Return the target for `accord.connect`.

    `token`, `headers`, `tls` and `proxy` are for a URL; `headers` add to those that are set. `on_stderr` gets the lines
    of a command's standard error.

    Raises AccordError if the URL is invalid or its extra is not installed, and ConfigurationError if a variable of the
    agent has no value.
    """
    if settings.url is not None:
        headers = {**settings.headers, **(headers or {})}
        return url_target(settings.url, token=token, headers=headers, tls=tls, proxy=proxy, on_stderr=on_stderr)
    try:
        words = settings.words
    except ValueError as error:
        raise ConfigurationError(
            f"cannot split the command {settings.command!r} into words: {error}; pass a list instead"
        ) from None
    env, inherit = variables(settings), inherited(settings)
    return CommandTarget(words, cwd=settings.cwd, env=env, inherit=inherit, on_stderr=on_stderr)
