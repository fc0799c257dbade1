"""The last sessions that were opened here, for agents that cannot list theirs.

`sessions.json` in the folder for state holds the program of the agent (`Target.program`), the folder and the id of each
session, and nothing of what was said in it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from accord.paths import locked, replace_file, state_folder

MOST = 200


class LastSession(msgspec.Struct, frozen=True):
    """A session that was opened: of which program, in which folder, its id, and when."""

    program: str
    folder: str
    id: str
    at: str


class _Document(msgspec.Struct):
    version: int = 1
    sessions: list[LastSession] = []


def remember(program: str, folder: str | Path, session_id: str) -> None:
    """Remember that this session was opened now. If the folder cannot be written, the session goes on without it."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    made = LastSession(program, os.path.realpath(folder), session_id, now)
    place = _place()
    with suppress(OSError), locked(place):
        others = [it for it in _read() if (it.program, it.id) != (made.program, made.id)]
        document = _Document(sessions=[*others, made][-MOST:])
        replace_file(place, msgspec.json.format(msgspec.json.encode(document)) + b"\n")


def last_sessions(program: str, folder: str | Path | None = None) -> list[LastSession]:
    """The sessions of this program, in one folder or in all, the latest first."""
    wanted = None if folder is None else os.path.realpath(folder)
    return [it for it in reversed(_read()) if it.program == program and wanted in (None, it.folder)]


def forget(program: str, session_id: str) -> None:
    """Forget a session that was deleted."""
    place = _place()
    with suppress(OSError), locked(place):
        document = _Document(sessions=[it for it in _read() if (it.program, it.id) != (program, session_id)])
        replace_file(place, msgspec.json.format(msgspec.json.encode(document)) + b"\n")


def _read() -> list[LastSession]:
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return _decode(_place().read_bytes()).sessions
    return []


def _place() -> Path:
    return state_folder() / "sessions.json"


# Made at import: msgspec's first look at a class is not safe in two threads.
_decode = msgspec.json.Decoder(_Document).decode
