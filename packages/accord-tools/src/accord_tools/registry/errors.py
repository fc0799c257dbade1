"""The exceptions of the registry."""

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
