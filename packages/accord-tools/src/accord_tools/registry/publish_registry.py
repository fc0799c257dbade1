"""Reads the sources of a registry, a folder for each agent, checks them, and builds the files that clients fetch.

The same sources give the same bytes: agents are sorted by id, keys stand in one order, and nothing says when or where
it was built. `registry.json` leaves previews out, as the public one does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from accord_tools.registry import RegistryError
from accord_tools.registry.agent_index import entry_files
from accord_tools.registry.downloads import address_problem
from accord_tools.registry.entry_rules import ADDRESSES, EntryFinding, check_entry, check_icon

KEYS = (
    "id", "name", "version", "description", "repository", "website", "authors", "license", "license_url", "icon",
    "distribution",
)  # fmt: skip
FORMAT = "1.0.0"


@dataclass(frozen=True)
class SourceEntry:
    """An agent in the sources of a registry."""

    file: Path
    folder: str | None
    """The name of its folder; None for a file that was given by itself."""
    raw: object
    icon: Path | None
    problem: str = ""
    """Why the file cannot be read."""


def read_sources(place: Path) -> list[SourceEntry]:
    """The entries of a registry's folder, of one agent's folder, or of a file. Raises RegistryError for none."""
    if place.is_file():
        return [_source(place, None)]
    if (place / "agent.json").is_file():
        return [_source(place / "agent.json", place.resolve().name)]
    found = [_source(path, path.parent.name) for path in entry_files(place)]
    if not found:
        raise RegistryError(f"{place} has no agent.json, and no folder in it has one")
    return found


def _source(file: Path, folder: str | None) -> SourceEntry:
    icon = file.with_name("icon.svg")
    try:
        raw: object = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        return SourceEntry(file, folder, None, None, f"must be JSON: {error}")
    return SourceEntry(file, folder, raw, icon if icon.is_file() else None)


def check_sources(sources: list[SourceEntry], base: Path) -> list[EntryFinding]:
    """What is wrong with these entries and their icons. Files are named relative to `base`."""
    found: list[EntryFinding] = []
    seen: dict[str, str] = {}
    for source in sources:
        file = _shown(source.file, base)
        if source.problem:
            found.append(EntryFinding(file, "", "json", source.problem))
            continue
        found += check_entry(source.raw, source.folder, file)
        name = _id(source)
        if name is not None:
            if name in seen:
                found.append(EntryFinding(file, "id", "unique", f"must be unique, and {seen[name]} has it too"))
            seen.setdefault(name, file)
        found += _icon(source, file, base)
    return found


def _icon(source: SourceEntry, file: str, base: Path) -> Iterator[EntryFinding]:
    if source.icon is not None:
        yield from check_icon(source.icon.read_bytes(), _shown(source.icon, base))
    elif source.folder is not None:
        yield EntryFinding(file, "", "icon", "needs an icon: icon.svg beside it")


def _shown(file: Path, base: Path) -> str:
    try:
        return file.resolve().relative_to(base.resolve()).as_posix()
    except ValueError:
        return file.as_posix()


def _id(source: SourceEntry) -> str | None:
    raw = source.raw
    if not isinstance(raw, dict):
        return None
    name: Any = cast("dict[str, Any]", raw).get("id")
    return name if isinstance(name, str) else None


def build(
    sources: list[SourceEntry], out: Path, icons_at: str = "", hash_of: Callable[[str], str] | None = None
) -> list[Path]:
    """Write registry.json and the icons to a folder, and return the files. The sources must have no errors.

    `icons_at` is the address that icons will have; by default they are named relative to the list. `hash_of` computes
    the SHA-256 of an archive that has none.
    """
    agents = [_published(source, icons_at, hash_of) for source in sorted(sources, key=lambda it: _id(it) or "")]
    document = {"version": FORMAT, "agents": agents, "extensions": []}
    out.mkdir(parents=True, exist_ok=True)
    written = [out / "registry.json"]
    written[0].write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    for source in sources:
        if source.icon is not None:
            written.append(out / f"{_id(source)}.svg")
            written[-1].write_bytes(source.icon.read_bytes())
    return written


def _published(source: SourceEntry, icons_at: str, hash_of: Callable[[str], str] | None) -> dict[str, Any]:
    raw = cast("dict[str, Any]", source.raw)
    entry = {key: raw[key] for key in KEYS if key in raw}
    entry |= {key: raw[key] for key in sorted(raw) if key not in (*KEYS, "preview", "$schema")}
    if source.icon is not None:
        entry["icon"] = f"{icons_at.rstrip('/')}/{entry['id']}.svg" if icons_at else f"{entry['id']}.svg"
    distribution = entry.get("distribution")
    if hash_of is not None and isinstance(distribution, dict):
        entry["distribution"] = _with_hashes(cast("dict[str, Any]", distribution), hash_of)
    return entry


def _with_hashes(distribution: dict[str, Any], hash_of: Callable[[str], str]) -> dict[str, Any]:
    targets = cast("dict[str, dict[str, Any]]", distribution.get("binary", {}))
    hashed = {
        platform: target if target.get("sha256") else {**target, "sha256": hash_of(str(target["archive"]))}
        for platform, target in targets.items()
    }
    return {**distribution, **({"binary": hashed} if hashed else {})}


def check_online(sources: list[SourceEntry], base: Path) -> list[EntryFinding]:
    """The addresses that do not answer. Packages are left to npm and PyPI: `accord agents verify` installs them."""
    found: list[EntryFinding] = []
    known: dict[str, str | None] = {}
    for source in sources:
        for path, address in _addresses(source.raw):
            if address not in known:
                known[address] = address_problem(address)
            if (problem := known[address]) is not None:
                found.append(EntryFinding(_shown(source.file, base), path, "online", problem))
    return found


def _addresses(raw: object) -> Iterator[tuple[str, str]]:
    """The addresses of an entry, with their paths."""
    if not isinstance(raw, dict):
        return
    entry = cast("dict[str, Any]", raw)
    yield from ((key, entry[key]) for key in ADDRESSES if isinstance(entry.get(key), str))
    distribution: Any = entry.get("distribution")
    binary: Any = cast("dict[str, Any]", distribution).get("binary") if isinstance(distribution, dict) else None
    if not isinstance(binary, dict):
        return
    for platform, target in cast("dict[str, Any]", binary).items():
        archive: Any = cast("dict[str, Any]", target).get("archive") if isinstance(target, dict) else None
        if isinstance(archive, str):
            yield f"distribution.binary.{platform}.archive", archive
