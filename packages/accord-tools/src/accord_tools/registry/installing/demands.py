"""`Demands`: what a package must fulfil before anything of it runs on this machine. PURE.

An installer first finds out what would be installed, without running any of it: npm and uv write a lock file for that,
an archive is downloaded. Then it asks `judge`. So a package with other content than expected never runs a script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accord_tools.registry.errors import InstallError

SHOWN = 5
"""Packages without a checksum that an error names."""


@dataclass(frozen=True)
class Demands:
    """What the user, a team's lock file and earlier installations ask of what is installed."""

    judge: Callable[[str, str], None] = lambda _version, _integrity: None
    """Takes the version and the integrity; raises RegistryError if they are not what is expected."""
    require_hash: bool = False
    """Whether everything that is installed must have a checksum in the index that it comes from."""


def refuse_unhashed(packages: Sequence[str], place: str) -> None:
    """Raise InstallError if there are packages without a checksum; `place` is where they come from."""
    if packages:
        named = ", ".join(sorted(packages)[:SHOWN])
        more = f" and {len(packages) - SHOWN} more" if len(packages) > SHOWN else ""
        raise InstallError(f"{place} has no checksum of {named}{more}, and one is required; nothing was installed")
