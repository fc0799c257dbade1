"""Asks whether the addresses of entries answer: archives, pages, and nothing else is downloaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from accord_tools.registry.fetching import answers
from accord_tools.registry.publishing.build import SourceEntry
from accord_tools.registry.publishing.findings import Finding
from accord_tools.registry.publishing.rules import ADDRESSES


def check_online(sources: list[SourceEntry], base: Path) -> list[Finding]:
    """The addresses that do not answer. Packages are left to npm and PyPI: `accord agents verify` installs them."""
    found: list[Finding] = []
    known: dict[str, str | None] = {}
    for source in sources:
        for path, address in _addresses(source.raw):
            if address not in known:
                known[address] = answers(address)
            if (problem := known[address]) is not None:
                file = source.file.resolve().relative_to(base.resolve()).as_posix()
                found.append(Finding(file, path, "online", problem))
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
