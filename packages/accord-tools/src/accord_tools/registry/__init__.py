"""The registry of agents: an index that lists agents by id, how each is installed, and what is installed here.

    agent_index, entry                    where the index is, each entry read leniently, and what fits this machine
    install_agent, package_installers,    install an agent once, into a folder of its own
    archives, downloads                   ... that matches earlier checksums, and those of a team's lock file
    installed_agents                      what is installed, and what a name means
    entry_rules, publish_registry         for authors of agents: check, build and verify entries

Nothing here starts an agent: `configuration.resolve_agent` turns a name into how the agent is reached. This module has
what all of them share: their exceptions, and the progress that an installation reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord import AccordError, ConfigurationError

if TYPE_CHECKING:
    from accord_tools.registry.entry import RegistryEntry


class RegistryError(AccordError):
    """The index cannot be read, or an agent cannot be installed."""


class InstallError(RegistryError):
    """An agent could not be installed; `words` are the last lines of the program that installs, such as npm."""

    def __init__(self, text: str, words: str = "") -> None:
        super().__init__(text)
        self.words = words


class UnsafeArchive(InstallError):
    """An archive holds what could harm this machine, such as a path outside of its folder. Nothing of it is kept."""


class NotInstalled(ConfigurationError):
    """An agent was named that the registry lists and that is not installed."""

    def __init__(self, entry: RegistryEntry, instead: str = "") -> None:
        self.entry = entry
        super().__init__(
            f"{entry.id} ({entry.name} {entry.version}) is in the registry and not installed; "
            f"install it: accord agents install {entry.id}{instead}"
        )


class Progress:
    """Told what an installation does; each method does nothing by default."""

    def step(self, text: str) -> None:
        """A step begins, such as a download."""

    def bytes(self, done: int, total: int | None) -> None:
        """So many bytes of the step are done; `total` is None if it is not known."""

    def waiting(self) -> None:
        """A program that tells nothing is still at work; called a few times a second."""

    def note(self, text: str) -> None:
        """Something that the user should know, such as an older version that was installed instead."""
