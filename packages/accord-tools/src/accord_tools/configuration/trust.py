"""The files of projects that the user trusts, and the folders in which git may run.

A project's file names programs, and the files of a project are someone else's. Before its first use the user is asked,
or runs `accord agents trust`. The answer applies to one path with one content: after any change the user is asked
again. Files that it starts, such as a script of the project, are not watched.

Git runs only in a folder that the user trusts, after one question. The answer applies to that folder with the
repository that it had: a `.git` that becomes a link to another one needs a new answer.

The answers are in `trusted.json` in the folder for state.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

import msgspec

from accord import ConfigurationError
from accord.project.git import Repository
from accord_tools.configuration.agents_file import AgentsFile
from accord_tools.state_file import StateFile

HOW = "read it, then run: accord agents trust"


class NotTrusted(ConfigurationError):
    """An agent of a project's file was named, and the user has not trusted the file with its present content."""

    def __init__(self, file: AgentsFile) -> None:
        self.file = file
        super().__init__(f"{file.path} names commands to run, and is not trusted; {HOW}")


class TrustedFile(msgspec.Struct, frozen=True):
    """A project's file that the user has trusted with this content."""

    path: str
    digest: str
    at: str = ""


class TrustedFolder(msgspec.Struct, frozen=True):
    """A folder that the user has trusted with this repository."""

    path: str
    git_dir: str
    at: str = ""


class _TrustedThings(msgspec.Struct):
    version: int = 1
    files: list[TrustedFile] = []
    folders: list[TrustedFolder] = []


_FILE = StateFile("trusted.json", _TrustedThings)


def is_trusted(file: AgentsFile) -> bool:
    """Whether this file may be used: it is the user's own, or they have trusted its content."""
    if file.owner == "user":
        return True
    path = os.path.realpath(file.path)
    return any((it.path, it.digest) == (path, file.digest) for it in _FILE.read().files)


def is_folder_trusted(repository: Repository) -> bool:
    """Whether git may run in this folder."""
    return any((it.path, it.git_dir) == (str(repository.root), str(repository.git_dir)) for it in _FILE.read().folders)


def trust(file: AgentsFile) -> None:
    """Remember that the user trusts this file with its present content, and no other content of it."""
    path = os.path.realpath(file.path)
    with _FILE.changed() as document:
        document.files = [it for it in document.files if it.path != path]
        document.files.append(TrustedFile(path, file.digest, _now()))


def trust_folder(repository: Repository) -> None:
    """Remember that git may run in this folder."""
    path = str(repository.root)
    with _FILE.changed() as document:
        document.folders = [it for it in document.folders if it.path != path]
        document.folders.append(TrustedFolder(path, str(repository.git_dir), _now()))


def trusted() -> list[TrustedFile | TrustedFolder]:
    """All that the user has trusted."""
    known = _FILE.read()
    return [*known.files, *known.folders]


def distrust(thing: TrustedFile | TrustedFolder) -> None:
    """Ask again before this is used."""
    with _FILE.changed() as document:
        document.files = [it for it in document.files if it != thing]
        document.folders = [it for it in document.folders if it != thing]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
