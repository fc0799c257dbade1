"""Checksums that an installation must match: those of the first installation here, and those of a team's lock file.

The registry is not signed. Its index comes over TLS, and a checksum in it protects only against an archive that was
changed on its way or at its host. So what was installed once is remembered: the same version with other content is
refused. A team goes further with `agents.lock`, which stands in the project's repository:

    {"version": 1, "agents": [
        {"id": "gemini", "version": "0.56.0", "kind": "npx", "integrity": {"any": "sha512-..."}}]}

The integrity stands by platform, because archives and many packages of PyPI are different on each of them. A package of
npm is the same on `any`.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from accord.folders import locked, state_folder
from accord.services.files.atomic import replace_own
from accord_tools.registry.errors import RegistryError
from accord_tools.registry.packages import Kind

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


class _Seen(msgspec.Struct):
    version: int = 1
    digests: dict[str, str] = {}


def check_agreed(agent_id: str, version: str, platform: str, origin: str, integrity: str) -> None:
    """Raise RegistryError if this version was installed here before with other content."""
    if integrity and (seen := _seen().digests.get(_key(agent_id, version, platform, origin))) not in (None, integrity):
        raise RegistryError(
            f"{agent_id} {version} has changed since it was first installed here: its content was {seen} and is "
            f"{integrity}. A version should never change. Ask its publisher, and if the change is right, run: "
            f"accord agents forget {agent_id}"
        )


def agree(agent_id: str, version: str, platform: str, origin: str, integrity: str) -> None:
    """Remember the content of a version that was installed."""
    if not integrity:
        return
    place = _place()
    with suppress(OSError), locked(place):
        document = _seen()
        document.digests[_key(agent_id, version, platform, origin)] = integrity
        replace_own(place, msgspec.json.format(msgspec.json.encode(document)) + b"\n")


def forget(agent_id: str) -> int:
    """Forget the content of all versions of an agent; the result is how many were remembered."""
    place = _place()
    with locked(place):
        document = _seen()
        kept = {key: value for key, value in document.digests.items() if key.split(" ")[0] != agent_id}
        forgotten = len(document.digests) - len(kept)
        replace_own(place, msgspec.json.format(msgspec.json.encode(_Seen(digests=kept))) + b"\n")
    return forgotten


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
        replace_own(path, text)
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


def _seen() -> _Seen:
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return _decode(_place().read_bytes())
    return _Seen()


def _place() -> Path:
    return state_folder() / "agent-checksums.json"


# Made at import: msgspec's first look at a class is not safe in two threads.
_decode = msgspec.json.Decoder(_Seen).decode
