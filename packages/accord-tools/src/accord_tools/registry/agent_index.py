"""`AgentIndex`: the agents of all registries, from the cache as long as it is fresh, and from an old cache if
necessary.

The variable ACCORD_REGISTRY has the registries, as addresses, files or folders:

    ACCORD_REGISTRY=https://mirror.example/registry.json            a mirror instead of the public registry
    ACCORD_REGISTRY=/srv/agents                                     a folder with registry.json, or with ID/agent.json
    ACCORD_REGISTRY="default company=https://agents.example/r.json" two; ids of the second are company/ID
    ACCORD_REGISTRY=off                                             no registry

A folder is for a company's repository, or an agent that its author is about to publish.

A fetched index is stored in one file: a line of JSON about it, and its text. The line has the text's digest, so a file
that was half written counts as no file. An index that cannot be fetched is taken from the cache, however old; the list
then shows its age and the reason.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

import msgspec

from accord import ConfigurationError
from accord.paths import cache_folder, path_of_uri, replace_file
from accord.project.project import Project
from accord.redaction import mask_urls
from accord_tools.presentation.quantities import ago
from accord_tools.registry import RegistryError
from accord_tools.registry.entry import RegistryEntry, read_entry

VARIABLE = "ACCORD_REGISTRY"
PUBLIC = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"
OFF = "off"

_PREFIX = re.compile(r"(?P<prefix>[a-z][a-z0-9-]*)=(?P<where>.+)")


@dataclass(frozen=True)
class IndexSource:
    """One registry: its address or path, and the prefix of its ids."""

    where: str
    prefix: str = ""

    @property
    def is_remote(self) -> bool:
        """Whether the index is fetched, and not a file of this machine."""
        return self.where.startswith(("https://", "http://"))

    @property
    def shown(self) -> str:
        """The address or the path, for people."""
        return mask_urls(self.where)

    @property
    def path(self) -> Path:
        """The file or the folder of a registry on this machine."""
        return Path(self.where).expanduser().absolute()

    @property
    def cache_name(self) -> str:
        """The name of the file that stores a fetched index."""
        return f"{hashlib.sha256(self.where.encode()).hexdigest()[:24]}.index"

    def archive(self, named: str) -> str:
        """Return the address of an archive that this index names; a relative one is relative to the index."""
        if urlsplit(named).scheme in ("https", "http"):
            return named
        if self.is_remote:
            return urljoin(self.where, named)
        base = self.path if self.path.is_dir() else self.path.parent
        return str(base / (path_of_uri(named) or named))


def index_sources() -> list[IndexSource]:
    """Return the registries in the order in which they are asked. Raises ConfigurationError for an invalid setting."""
    given = os.environ.get(VARIABLE, "").split()
    if not given:
        return [IndexSource(PUBLIC)]
    if given == [OFF]:
        return []
    found = [_source(word) for word in given]
    prefixes = [source.prefix for source in found]
    if len(set(prefixes)) < len(prefixes):
        raise ConfigurationError(
            f"{VARIABLE} must give each registry but one a name, as in company=https://agents.example/registry.json; "
            f"got {os.environ[VARIABLE]!r}"
        )
    return found


def _source(word: str) -> IndexSource:
    named = _PREFIX.fullmatch(word)
    prefix, where = (named["prefix"], named["where"]) if named else ("", word)
    if where.startswith("http://") and urlsplit(where).hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ConfigurationError(f"{VARIABLE} must have addresses that begin with https://, got {where!r}")
    return IndexSource(PUBLIC if where == "default" else str(path_of_uri(where) or where), prefix)


LARGEST = 32 * 1024 * 1024
"""Bytes of an index that is a file of this machine."""
FRESH = 3600.0
"""Seconds for which a fetched index is used without asking again."""


@dataclass(frozen=True)
class SourceState:
    """How the index of one registry was read."""

    source: IndexSource
    entries: tuple[RegistryEntry, ...] = ()
    skipped: tuple[str, ...] = ()
    """The parts of the index that could not be used."""
    age: float | None = None
    """Seconds since it was fetched or found unchanged; None for a file of this machine."""
    trouble: str | None = None
    """Why it could not be fetched; the entries are then from an old cache, if there are any."""


class AgentIndex:
    """The agents of all registries, by their ids."""

    def __init__(self, states: Iterable[SourceState]) -> None:
        self.states = list(states)
        self._found: dict[str, tuple[RegistryEntry, IndexSource]] = {}
        for state in self.states:
            for entry in state.entries:
                full = entry.named(state.source.prefix) if state.source.prefix else entry
                self._found.setdefault(full.id, (full, state.source))

    def __iter__(self) -> Iterator[RegistryEntry]:
        return (entry for entry, _ in self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def find(self, name: str) -> RegistryEntry | None:
        """The agent with this id."""
        found = self._found.get(name)
        return None if found is None else found[0]

    def source_of(self, entry: RegistryEntry) -> IndexSource:
        """Return the registry that an entry comes from."""
        return self._found[entry.id][1]

    @property
    def troubles(self) -> list[str]:
        """Return the problems, in a line for each registry, with the age of its substitute."""
        lines: list[str] = []
        for state in self.states:
            if state.trouble is not None:
                used = f"; the list was fetched {ago(state.age)}" if state.age is not None else ""
                lines.append(f"{state.trouble}{used}")
        return lines


def load_index(*, offline: bool = False, fresh: float = FRESH, sources: list[IndexSource] | None = None) -> AgentIndex:
    """Return the agents of all registries. Offline, only files of this machine are read, including the cache.

    Raises ConfigurationError for an invalid setting, and RegistryError if no registry could be read.
    """
    states = [
        _load(source, offline=offline, fresh=fresh) for source in (index_sources() if sources is None else sources)
    ]
    if states and all(state.trouble is not None and state.age is None for state in states):
        raise RegistryError("; ".join(str(state.trouble) for state in states))
    return AgentIndex(states)


def _load(source: IndexSource, *, offline: bool, fresh: float) -> SourceState:
    if not source.is_remote:
        return _read_here(source)
    cached = _Cached.read(source)
    if cached is not None and (offline or 0 <= cached.age < fresh):
        return cached.state(source)
    if offline:
        return SourceState(source, trouble=f"no list of {source.shown} is kept on this machine; go online once")
    from accord_tools.registry.downloads import fetch  # urllib, which a cached index does not need

    try:
        got = fetch(source.where, *((cached.etag, cached.modified) if cached is not None else (None, None)))
        body = got.body if got.body is not None else b"" if cached is None else cached.body
        new = _Cached(body, got.etag, got.modified, time.time())
        state = new.state(source)
    except RegistryError as error:
        if cached is None:
            return SourceState(source, trouble=f"{error}, and no list of it is kept on this machine; go online once")
        return cached.state(source, str(error))
    new.write(source)
    return state


@dataclass(frozen=True)
class _Cached:
    """An index as the cache has it."""

    body: bytes
    etag: str | None
    modified: str | None
    at: float

    @property
    def age(self) -> float:
        return time.time() - self.at

    def state(self, source: IndexSource, trouble: str | None = None) -> SourceState:
        entries, skipped = parse(self.body, source.shown)
        return SourceState(source, entries, skipped, max(0.0, self.age), trouble)

    @classmethod
    def read(cls, source: IndexSource) -> _Cached | None:
        with suppress(OSError, ValueError, KeyError, TypeError):
            head, _, body = _place(source).read_bytes().partition(b"\n")
            about: dict[str, Any] = json.loads(head)
            if about["sha256"] == hashlib.sha256(body).hexdigest():
                return cls(body, about["etag"], about["modified"], float(about["at"]))
        return None

    def write(self, source: IndexSource) -> None:
        about = {
            "sha256": hashlib.sha256(self.body).hexdigest(),
            "etag": self.etag,
            "modified": self.modified,
            "at": self.at,
            "from": source.where.rpartition("@")[2],
        }
        with suppress(OSError):  # an index that cannot be stored is fetched again
            place = _place(source)
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(place, json.dumps(about).encode() + b"\n" + self.body)


def _place(source: IndexSource) -> Path:
    return cache_folder() / "registry" / source.cache_name


def _read_here(source: IndexSource) -> SourceState:
    path = source.path
    try:
        if path.is_dir() and not (path / "registry.json").is_file():
            entries, skipped = _sorted_out(_objects(path), source.where)
        else:
            with (path / "registry.json" if path.is_dir() else path).open("rb") as file:
                entries, skipped = parse(file.read(LARGEST), source.where)
    except OSError as error:
        return SourceState(source, trouble=f"cannot read {path}: {error.strerror}")
    except RegistryError as error:
        return SourceState(source, trouble=str(error))
    return SourceState(source, entries, skipped)


def entry_files(folder: Path) -> list[Path]:
    """The files of a registry's sources: a folder for each agent."""
    return [path for path in sorted(folder.glob("*/agent.json")) if not path.parent.name.startswith(("_", "."))]


def _objects(folder: Path) -> Iterator[object]:
    project = Project([folder.absolute()])
    for path in entry_files(folder.absolute()):
        try:
            yield msgspec.json.decode(project.read(path, LARGEST))
        except ValueError as error:  # it is not JSON, a pipe, too large, or a link that leads out of the folder
            yield f"{path}: {error}"


def parse(body: bytes, where: str) -> tuple[tuple[RegistryEntry, ...], tuple[str, ...]]:
    """Return the entries of an index, and its unusable parts. Raises RegistryError for text that is not an index."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RegistryError(f"{where} is not a list of agents: {error}") from None
    agents: Any = cast("dict[str, Any]", document).get("agents") if isinstance(document, dict) else None
    if not isinstance(agents, list):
        raise RegistryError(f"{where} is not a list of agents: it has no array 'agents'")
    return _sorted_out(cast("list[object]", agents), where)


def _sorted_out(given: Iterable[object], where: str) -> tuple[tuple[RegistryEntry, ...], tuple[str, ...]]:
    entries: dict[str, RegistryEntry] = {}
    skipped: list[str] = []
    for item in given:
        entry = item if isinstance(item, str) else read_entry(item)
        if isinstance(entry, str):
            skipped.append(f"{where}: {entry}")
        elif entry.id in entries:
            skipped.append(f"{where}: the id {entry.id} is listed twice; the first counts")
        else:
            entries[entry.id] = entry
    return tuple(entries.values()), tuple(skipped)
