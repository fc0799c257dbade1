"""Which files of projects the user trusts.

A project's file names programs, and the files of a project are someone else's. Before its first use the user is asked,
or runs `accord agents trust`. The answer holds for one path with one content: after any change it is asked for again.
What the file starts, such as a script of the project, is not watched.

The answers are in `trusted.json` in the folder for state.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from accord.configuration.agents_file import AgentsFile
from accord.errors import ConfigurationError
from accord.folders import state_folder
from accord.own_files import locked
from accord.services.files.atomic import replace_own

HOW = "read it, then run: accord agents trust"


class NotTrusted(ConfigurationError):
    """An agent of a project's file was named, and the user has not trusted the file with its present content."""

    def __init__(self, file: AgentsFile) -> None:
        self.file = file
        super().__init__(f"{file.path} names commands to run, and is not trusted; {HOW}")


class _Trusted(msgspec.Struct, frozen=True):
    path: str
    digest: str
    at: str = ""


class _Document(msgspec.Struct):
    version: int = 1
    files: list[_Trusted] = []


def is_trusted(file: AgentsFile) -> bool:
    """Whether this file may be used: it is the user's own, or they have trusted its content."""
    if file.owner == "user":
        return True
    path = os.path.realpath(file.path)
    return any((it.path, it.digest) == (path, file.digest) for it in _read().files)


def trust(file: AgentsFile) -> None:
    """Remember that the user trusts this file with its present content, and no other content of it."""
    place, path = _place(), os.path.realpath(file.path)
    with locked(place):
        others = [it for it in _read().files if it.path != path]
        now = datetime.now(UTC).isoformat(timespec="seconds")
        document = _Document(files=[*others, _Trusted(path, file.digest, now)])
        replace_own(place, msgspec.json.format(msgspec.json.encode(document)) + b"\n")


def _read() -> _Document:
    """What is trusted; a file that cannot be read trusts nothing."""
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return _decode(_place().read_bytes())
    return _Document()


def _place() -> Path:
    return state_folder() / "trusted.json"


# Made at import: msgspec's first look at a class is not safe in two threads.
_decode = msgspec.json.Decoder(_Document).decode
