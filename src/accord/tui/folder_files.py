"""The files of a session's folder, for mentions: what git knows and does not ignore, else what is there."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

from accord.printable import printable
from accord.project.git import FolderNotTrusted, Git, Repository
from accord.project.project import SKIPPED, Project

MOST = 100_000
_SKIPPED = SKIPPED | {"target", "dist", "build", "venv"}


def files_of(folder: Path, trusts: Callable[[Repository], bool]) -> list[str]:
    """The files and folders below a folder, from it, the ones with names that can be shown as they are.

    Git is asked only if `trusts` says so of the folder's repository.
    """
    try:
        files = Git(folder, trusts).files()
    except (ValueError, FolderNotTrusted):
        files = _found(folder)
    folders = {f"{parent}/" for file in files[:MOST] for parent in _parents(file)}
    return [path for path in (*files[:MOST], *sorted(folders)) if printable(path) == path and "\n" not in path]


def _found(folder: Path) -> list[str]:
    def skip(name: str) -> bool:
        return name.startswith(".") or name in _SKIPPED

    walk = Project([folder]).walk(folder, skip=skip, links=True)
    shown = (path for path in walk if not path.rpartition("/")[2].startswith("."))
    return list(islice(shown, MOST))


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]
