"""Platforms as the registry names them, such as `linux-x86_64`, and the one that we run on."""

from __future__ import annotations

import platform
from typing import NamedTuple

SYSTEMS = {"darwin": "darwin", "linux": "linux", "windows": "windows"}
MACHINES = {"arm64": "aarch64", "aarch64": "aarch64", "x86_64": "x86_64", "amd64": "x86_64", "x64": "x86_64"}

PLATFORMS = tuple(f"{system}-{machine}" for system in SYSTEMS.values() for machine in ("aarch64", "x86_64"))
"""Every platform that the registry has a name for."""


class Platform(NamedTuple):
    """An operating system and a processor, in the registry's words."""

    system: str
    machine: str

    @property
    def key(self) -> str:
        """The platform's name in an entry."""
        return f"{self.system}-{self.machine}"

    @property
    def is_windows(self) -> bool:
        """Whether programs end in .exe or .cmd, and paths may have backslashes."""
        return self.system == "windows"

    @classmethod
    def of(cls, key: str) -> Platform:
        """The platform with this name."""
        system, _, machine = key.partition("-")
        return cls(system, machine)


def here() -> Platform:
    """The platform that this program runs on; one that the registry has no name for keeps its own words."""
    system, machine = platform.system().lower(), platform.machine().lower()
    return Platform(SYSTEMS.get(system, system), MACHINES.get(machine, machine))
