"""The sessions of an agent: those that it lists, or the last that were opened here, if it cannot list them.

`sessions.json` in the folder for state stores the program of the agent (`Target.program`), the folder and the id of
each session, and nothing of its conversation.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from accord_tools.state_file import StateFile

if TYPE_CHECKING:
    from accord import RemoteAgent

MOST = 200


class LastSession(msgspec.Struct, frozen=True):
    """A session that was opened: its program, folder, id and time."""

    program: str
    folder: str
    id: str
    at: str


class _OpenedSessions(msgspec.Struct):
    version: int = 1
    sessions: list[LastSession] = []


_FILE = StateFile("sessions.json", _OpenedSessions)


def remember(program: str, folder: str | Path, session_id: str) -> None:
    """Remember that this session was opened now. If the folder cannot be written, the session continues without it."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    made = LastSession(program, os.path.realpath(folder), session_id, now)
    with suppress(OSError), _FILE.changed() as opened:
        others = [it for it in opened.sessions if (it.program, it.id) != (made.program, made.id)]
        opened.sessions = [*others, made][-MOST:]


def last_sessions(program: str, folder: str | Path | None = None) -> list[LastSession]:
    """The sessions of this program, in one folder or in all, the latest first."""
    wanted = None if folder is None else os.path.realpath(folder)
    return [it for it in reversed(_FILE.read().sessions) if it.program == program and wanted in (None, it.folder)]


def latest_opened(most: int) -> list[LastSession]:
    """The sessions of all programs and folders that were opened last, the latest first."""
    return _FILE.read().sessions[: -most - 1 : -1]


class KnownSession(NamedTuple):
    """A session that the agent lists, or that our own record has."""

    id: str
    folder: str
    updated: str | None = None
    title: str | None = None


MOST_LISTED = 5_000
"""Sessions of an agent that are considered."""


async def known_sessions(remote: RemoteAgent, program: str, folder: str | None = None) -> list[KnownSession]:
    """Return the sessions of one folder or all, the latest first: the agent's list, or our own record if it
    has none.
    """
    if not remote.capabilities.sessions.list:
        return [KnownSession(it.id, it.folder, it.at) for it in last_sessions(program, folder)]
    found: list[KnownSession] = []
    async for info in remote.sessions(folder):
        found.append(KnownSession(info.session_id, info.cwd, info.updated_at, info.title))
        if len(found) == MOST_LISTED:
            break
    # Sorting is stable: sessions without a time stay in the agent's order, after the others.
    return sorted(found, key=lambda session: session.updated or "", reverse=True)


def forget(program: str, session_id: str) -> None:
    """Forget a session that was deleted."""
    with suppress(OSError), _FILE.changed() as opened:
        opened.sessions = [it for it in opened.sessions if (it.program, it.id) != (program, session_id)]
