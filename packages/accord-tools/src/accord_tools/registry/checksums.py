"""Checksums that an installation must match: those of the first installation here, and those of a team's lock file.

An installer first finds out what would be installed, without running any of it: npm and uv write a lock file for that,
an archive is downloaded. Then it asks `InstallRequirements.judge`. So a package with other content than expected never
runs a script.

The registry is not signed. Its index comes over TLS, and a checksum in it protects only against an archive that was
changed on its way or at its host. So what was installed once is remembered: the same version with other content is
refused. A team goes further with `agents.lock`, which stands in the project's repository:

    {"version": 1, "agents": [
        {"id": "gemini", "version": "0.56.0", "kind": "npx", "integrity": {"any": "sha512-..."}}]}

The integrity stands by platform, because archives and many packages of PyPI are different on each of them. A package of
npm is the same on `any`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from accord.paths import replace_file
from accord_tools.registry import InstallError, RegistryError
from accord_tools.registry.entry import Kind
from accord_tools.state_file import StateFile


@dataclass(frozen=True)
class Built:
    """The program that an installer made, and the digest of its content."""

    argv: list[str]
    """The program, and the arguments that it needs before those of the entry."""
    integrity: str
    """The digest of the content, such as `sha512-...` of npm; empty if there is none."""
    version: str
    """The version that was installed."""


SHOWN = 5
"""Packages without a checksum that an error names."""


@dataclass(frozen=True)
class InstallRequirements:
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


ANY = "any"
"""Stands for every platform, for content that is the same on all of them."""
LOCK_FILE = Path(".accord", "agents.lock")


class LockedAgent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent as a lock file has it: which version, and what its content must be, by platform."""

    id: str
    version: str
    kind: Kind
    integrity: dict[str, str] = {}


class _LockDocument(msgspec.Struct):
    version: int = 1
    agents: list[LockedAgent] = []


class _Remembered(msgspec.Struct):
    version: int = 1
    digests: dict[str, str] = {}


_FILE = StateFile("agent-checksums.json", _Remembered)


def check_remembered(agent_id: str, version: str, platform: str, origin: str, integrity: str) -> None:
    """Raise RegistryError if this version was installed here before with other content."""
    if integrity and (seen := _FILE.read().digests.get(_key(agent_id, version, platform, origin))) not in (
        None,
        integrity,
    ):
        raise RegistryError(
            f"{agent_id} {version} has changed since it was first installed here: its content was {seen} and is "
            f"{integrity}. A version should never change. Ask its publisher, and if the change is right, run: "
            f"accord agents forget {agent_id}"
        )


def remember(agent_id: str, version: str, platform: str, origin: str, integrity: str) -> None:
    """Remember the content of a version that was installed."""
    if not integrity:
        return
    with suppress(OSError), _FILE.changed() as remembered:
        remembered.digests[_key(agent_id, version, platform, origin)] = integrity


def forget(agent_id: str) -> int:
    """Forget the content of all versions of an agent; the result is how many were remembered."""
    with _FILE.changed() as remembered:
        before = len(remembered.digests)
        remembered.digests = {key: it for key, it in remembered.digests.items() if key.split(" ")[0] != agent_id}
        return before - len(remembered.digests)


def read_lock(path: Path) -> dict[str, LockedAgent]:
    """The agents of a lock file, by id. Raises RegistryError if it is missing or invalid."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=_LockDocument)
    except FileNotFoundError:
        raise RegistryError(f"{path} does not exist; write it with: accord agents lock") from None
    except (OSError, msgspec.DecodeError) as error:
        raise RegistryError(f"cannot read {path}: {error}") from None
    if document.version != 1:
        raise RegistryError(f"{path} has the version {document.version}, and this Accord knows 1; update Accord")
    return {agent.id: agent for agent in document.agents}


def write_lock(path: Path, agents: list[LockedAgent]) -> None:
    """Write a lock file, sorted by id, so that the same agents give the same file."""
    document = _LockDocument(agents=sorted(agents, key=lambda agent: agent.id))
    text = msgspec.json.format(msgspec.json.encode(document, order="sorted")) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
        path.chmod(0o644)  # it belongs to a team
    except OSError as error:
        raise RegistryError(f"cannot write {path}: {error.strerror}") from None


def check_locked(agent: LockedAgent, platform: str, integrity: str) -> None:
    """Raise RegistryError unless this content is what the lock file asks for."""
    wanted = agent.integrity.get(ANY) or agent.integrity.get(platform)
    if wanted is None:
        raise RegistryError(
            f"the lock file has no integrity of {agent.id} for {platform}; on such a machine, run: accord agents lock"
        )
    if wanted != integrity:
        raise RegistryError(
            f"{agent.id} {agent.version} is not what the lock file has: it must be {wanted}, and is {integrity}"
        )


def _key(agent_id: str, version: str, platform: str, origin: str) -> str:
    return f"{agent_id} {version} {platform} {origin}"
