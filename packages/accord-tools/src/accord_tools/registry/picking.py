"""Agents to choose from: what `accord chat` and other programs list, so that a user can pick one by its name.

The list is made without a network, from what is installed and from the index that is kept on this machine. `fetching`
asks the registry if the kept index is old; it blocks, so a program with an event loop calls it in a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accord import ConfigurationError
from accord_tools.registry import installed
from accord_tools.registry.entry import RegistryEntry
from accord_tools.registry.errors import RegistryError
from accord_tools.registry.index import FRESH, load_index
from accord_tools.registry.installed import InstalledAgent
from accord_tools.registry.launching import choices
from accord_tools.registry.packages import in_words
from accord_tools.registry.platforms import here
from accord_tools.registry.versions import is_newer

State = Literal["installed", "available", "unavailable"]


@dataclass(frozen=True)
class PickableAgent:
    """An agent of the registry, as a list of agents shows it. The texts come from the registry: clean them to print."""

    name: str
    """What names the agent in commands and in `accord.connect`."""
    title: str
    version: str
    description: str
    state: State
    """Whether it is installed, can be installed, or has nothing for this platform."""
    detail: str = ""
    """Where it comes from, which newer version there is, or why it cannot be installed."""

    @property
    def words(self) -> str:
        """What a search compares with, in lower case."""
        return f"{self.name} {self.title} {self.description}".casefold()


def pickable_agents(search: str = "", *, fetching: bool = False) -> list[PickableAgent]:
    """The agents that can be picked: installed ones first, then those that can be installed, by their names.

    With `search`, only agents in which each of its words occurs. An index that cannot be read hides no installed agent.
    """
    try:
        listed = {entry.id: entry for entry in load_index(offline=not fetching, fresh=FRESH)}
    except (RegistryError, ConfigurationError):
        listed = {}
    there = {agent.id: agent for agent in installed.all_installed() if agent.is_whole}
    found = [_installed(agent, listed.get(agent.id)) for agent in there.values()]
    found += [_listed(entry) for entry in listed.values() if entry.id not in there]
    order: list[State] = ["installed", "available", "unavailable"]
    found.sort(key=lambda agent: (order.index(agent.state), agent.name))
    words = search.casefold().split()
    return [agent for agent in found if all(word in agent.words for word in words)]


def _installed(agent: InstalledAgent, entry: RegistryEntry | None) -> PickableAgent:
    new = "" if entry is None else entry.version
    detail = f"{new} is available" if new and is_newer(new, agent.listed or agent.version) else in_words(agent.kind)
    return PickableAgent(
        agent.id, agent.name, agent.version, "" if entry is None else entry.description, "installed", detail
    )


def _listed(entry: RegistryEntry) -> PickableAgent:
    fitting = choices(entry, here())
    if fitting:
        state: State = "available"
        detail = in_words(fitting[0].kind)
    else:
        state = "unavailable"
        detail = f"nothing for {here().key}" if entry.binary else "; ".join(entry.notes) or "no distribution"
    return PickableAgent(entry.id, entry.name, entry.version, entry.description, state, detail)
