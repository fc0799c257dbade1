"""Agents of the registry, for the list of agents: those that are installed, and those that can be."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from accord.errors import AccordError
from accord.extras import own_command
from accord.tui.connection import AgentChoice
from accord.tui.pickers import Entry

OFFERED = "Agents of the registry"


@dataclass(frozen=True)
class RegistryChoice:
    """An agent of the registry that is not among the known ones."""

    name: str
    is_installed: bool


async def registry_entries(known: Iterable[AgentChoice]) -> list[Entry]:
    """The agents of the registry that have no name here yet, the installed ones first. An old index will do."""
    names = {choice.name for choice in known}
    try:
        return await asyncio.to_thread(_entries, names)
    except AccordError as error:
        return [Entry("the registry cannot be read", None, str(error), group=OFFERED)]


def _entries(known: set[str]) -> list[Entry]:
    from accord.registry import installed
    from accord.registry.index import load_index

    here = {agent.id: agent for agent in installed.all_installed()}
    entries = [
        Entry(agent.name or agent.id, RegistryChoice(agent.id, True), f"{agent.id} {agent.version}", group="Installed")
        for agent in here.values()
        if agent.id not in known
    ]
    for entry in load_index():
        if entry.id not in known and entry.id not in here:
            about = f"{entry.id} {entry.version}  {entry.description}  enter installs it"
            entries.append(Entry(entry.name, RegistryChoice(entry.id, False), about, group=OFFERED))
    return entries


def install(name: str) -> None:
    """Install an agent in the terminal, which the chat has left; raises ValueError if it was not installed."""
    done = subprocess.run(own_command("accord", "agents", "install", name), check=False)
    if done.returncode:
        raise ValueError(f"{name} was not installed; `accord agents install {name}` says why")
