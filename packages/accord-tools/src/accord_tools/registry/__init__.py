"""The registry of agents: an index that lists agents by id, how each is installed, and the installed ones.

    agent_index, entry                    where the index is, each entry read leniently, and what fits this machine
    install_agent, package_installers,    install an agent once, into a folder of its own
    archives, downloads                   ... that matches earlier checksums, and those of a team's lock file
    installed_agents                      what is installed, and what a name means
    entry_rules, publish_registry         for authors of agents: check, build and verify entries

Nothing here starts an agent: `configuration.resolve_agent` turns a name into a command or address. This module has the
common parts: their exceptions, and the progress of an installation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord import AccordError, ConfigurationError

if TYPE_CHECKING:
    from accord_tools.registry.entry import RegistryEntry


class RegistryError(AccordError):
    """The index cannot be read, or an agent cannot be installed."""


class InstallError(RegistryError):
    """An agent could not be installed; `words` are the last lines of the installing program, such as npm."""

    def __init__(self, text: str, words: str = "") -> None:
        super().__init__(text)
        self.words = words


class UnsafeArchive(InstallError):
    """An archive contains something that could harm this machine, such as a path outside of its folder. It is
    removed.
    """


class NotInstalled(ConfigurationError):
    """An agent was named that the registry lists and that is not installed."""

    def __init__(self, entry: RegistryEntry, instead: str = "") -> None:
        self.entry = entry
        super().__init__(
            f"{entry.id} ({entry.name} {entry.version}) is in the registry and not installed; "
            f"install it: accord agents install {entry.id}{instead}"
        )


class Progress:
    """Receives the progress of an installation; each method does nothing by default."""

    def step(self, text: str) -> None:
        """Note that a step begins, such as a download."""

    def bytes(self, done: int, total: int | None) -> None:
        """Note that this many bytes of the step are done; `total` is None if it is not known."""

    def waiting(self) -> None:
        """Note that a program without progress reports is still at work; called a few times a second."""

    def note(self, text: str) -> None:
        """Pass on a note for the user, such as an older version that was installed instead."""
