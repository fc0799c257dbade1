"""The files of a session's folder, for mentions: what git knows and does not ignore, else what is there."""

from __future__ import annotations

import os
from pathlib import Path

from accord.printable import printable
from accord.tui.git import git

MOST = 100_000
_SKIPPED = {"node_modules", "__pycache__", "target", "dist", "build", "venv"}


def files_of(folder: Path) -> list[str]:
    """The files and folders below a folder, from it, the ones with names that can be shown as they are."""
    files = _of_git(folder)
    if files is None:
        files = _found(folder)
    folders = {f"{parent}/" for file in files for parent in _parents(file)}
    return [path for path in (*files[:MOST], *sorted(folders)) if printable(path) == path]


def _of_git(folder: Path) -> list[str] | None:
    try:
        listed = git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    except ValueError:
        return None
    return [it for it in listed.split("\0") if it][:MOST]


def _found(folder: Path) -> list[str]:
    found: list[str] = []
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(it for it in folders if not it.startswith(".") and it not in _SKIPPED)
        base = os.path.relpath(where, folder)
        found += sorted(it if base == "." else f"{base}/{it}" for it in files if not it.startswith("."))
        if len(found) >= MOST:
            break
    return found


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]
