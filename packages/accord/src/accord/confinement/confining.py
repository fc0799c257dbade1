"""What limits processes, as those who start agents see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence


class Confined(ABC):
    """One agent within its limits."""

    command: list[str]
    """The command that starts it."""

    @abstractmethod
    async def limit_hit(self) -> str:
        """Which limit ended it, in words; empty if none did. It has ended."""

    @abstractmethod
    async def close(self) -> None:
        """End what is left of it, and give back what it took."""


class Confinement(ABC):
    """A way to limit agents."""

    @abstractmethod
    def confine(self, command: Sequence[str], env: Mapping[str, str | None]) -> Confined:
        """Make room for one agent, which this command starts. `env` are the variables that are set for it."""

    @abstractmethod
    def sweep(self) -> None:
        """Remove what servers that have ended have left behind."""
