"""What a name means in the registry: an agent that is installed, or one that could be.

gemini              the id of an agent
gemini@0.55.0       one of its installed versions
claude              a usual name for an id, such as claude-acp
company/helper      an id of another registry
registry:gemini     the same as gemini, and never a named agent or a program on PATH
"""

from __future__ import annotations

import re

from accord import ConfigurationError
from accord_tools.registry import installed
from accord_tools.registry.entry import RegistryEntry
from accord_tools.registry.errors import RegistryError
from accord_tools.registry.index import FRESH, load_index
from accord_tools.registry.installed import InstalledAgent

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
"""Usual names of agents, and their ids. An agent whose id is such a name comes first."""

_NAME = re.compile(r"(?P<id>(?:[a-z][a-z0-9-]*/)?[a-z][a-z0-9-]{0,99})(?:@(?P<version>[0-9A-Za-z][0-9A-Za-z.+_-]*))?")


def split_name(name: str) -> tuple[str, str | None] | None:
    """The id and the version of a name; None for what cannot be the name of an agent.

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
            if (agent := installed.current(agent_id)) is not None:
                return agent
        elif known := installed.versions_of(agent_id):
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
    """The agent of the index that a name means; None if there is none, or no index can be read."""
    given = split_name(name)
    if given is None:
        return None
    try:
        index = load_index(offline=offline, fresh=fresh)
    except (RegistryError, ConfigurationError):
        return None
    return index.find(given[0]) or index.find(ALIASES.get(given[0], given[0]))


def hold_installed(name: str) -> InstalledAgent | None:
    """The installed agent that a name means, which is then not removed while this process lives."""
    agent = find_installed(name)
    if agent is not None:
        installed.hold(agent)
    return agent


def registry_names() -> list[str]:
    """The ids of agents that are installed, and of those in the kept index; nothing is fetched."""
    names = [agent.id for agent in installed.all_installed()]
    try:
        return list(dict.fromkeys([*names, *(entry.id for entry in load_index(offline=True))]))
    except (RegistryError, ConfigurationError):
        return names
