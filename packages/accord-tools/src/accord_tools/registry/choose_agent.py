"""Which distribution of an agent fits a platform, and the command that the registry means by it.

Platforms have the registry's names, such as `linux-x86_64`. We install once and then start the program itself, so the
commands with npx and uvx are what an entry says, not what we run. An archive needs no other program, so it comes first;
then npm, then PyPI.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from accord_tools.registry import InstallError
from accord_tools.registry.entry import KINDS, BinarySource, Kind, PackageSource, RegistryEntry

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


INTERPRETERS = frozenset({"node", "python", "python3", "java", "ruby"})
"""Programs of the system that an archive's `cmd` may name."""


@dataclass(frozen=True)
class Distribution:
    """One distribution of an agent."""

    kind: Kind
    source: BinarySource | PackageSource

    @property
    def args(self) -> tuple[str, ...]:
        """The arguments of the agent's program."""
        return self.source.args

    @property
    def env(self) -> Mapping[str, str]:
        """The variables of the agent's process."""
        return self.source.env

    @property
    def origin(self) -> str:
        """The archive's address, or the package."""
        return self.source.archive if isinstance(self.source, BinarySource) else self.source.package

    def command(self, platform: Platform) -> list[str]:
        """The command that the entry means, as the registry's page on its format says."""
        source = self.source
        if isinstance(source, BinarySource):
            return [program_path(source.cmd, platform), *source.args]
        if self.kind == "npx":
            start = ["npx", "-y", source.package] if not source.cmd else ["npx", "-y", "--package", source.package]
        else:
            start = ["uvx", source.package] if not source.cmd else ["uvx", "--from", source.package]
        return [*start, *([source.cmd] if source.cmd else []), *source.args]


def choices(entry: RegistryEntry, platform: Platform) -> list[Distribution]:
    """The distributions that fit this platform, the best first."""
    found: list[Distribution] = []
    if (binary := entry.binary.get(platform.key)) is not None:
        found.append(Distribution("binary", binary))
    if entry.npx is not None:
        found.append(Distribution("npx", entry.npx))
    if entry.uvx is not None:
        found.append(Distribution("uvx", entry.uvx))
    return found


def choose(
    entry: RegistryEntry, platform: Platform, kind: Kind | None = None, tools: Collection[str] = KINDS
) -> Distribution | str:
    """The distribution to install; a text with the reason if none fits.

    `kind` asks for one; `tools` are the kinds that this machine has the programs for.
    """
    fitting = choices(entry, platform)
    if kind is not None:
        return next((it for it in fitting if it.kind == kind), None) or _without(entry, platform, kind)
    if not fitting:
        return _without(entry, platform, None)
    return next((it for it in fitting if it.kind in tools), fitting[0])


def _without(entry: RegistryEntry, platform: Platform, kind: Kind | None) -> str:
    """Why an entry has nothing for this platform, or nothing of this kind."""
    if kind is not None and kind not in entry.kinds:
        return f"{entry.id} has no {kind}; it has {', '.join(entry.kinds) or 'nothing that is known here'}"
    if entry.binary:
        known = [it for it in PLATFORMS if it in entry.binary] or sorted(entry.binary)
        return f"{entry.id} has nothing for {platform.key}; it has {', '.join(known)}"
    return f"{entry.id} cannot be installed: {'; '.join(entry.notes) or 'it has no distribution'}"


def program_path(cmd: str, platform: Platform) -> str:
    """The program in an archive as a relative path with slashes; the name of a program of the system stays.

    Raises InstallError for a path that leaves the archive. A backslash separates folders on Windows only.
    """
    path = cmd.replace("\\", "/") if platform.is_windows else cmd
    parts = [part for part in path.split("/") if part not in ("", ".")]
    is_outside = path.startswith("/") or ".." in parts or (platform.is_windows and ":" in path)
    if not parts or is_outside or "\0" in path:
        raise InstallError(f"'cmd' must be a relative path inside of the archive, got {cmd!r}")
    return "/".join(parts)
