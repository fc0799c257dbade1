"""Which session is meant: by its id, by the start of its id, or as the latest of a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from accord.printable import label
from accord_tools.cli.endings import WrongUsage
from accord_tools.configuration import last_sessions

if TYPE_CHECKING:
    from accord import RemoteAgent

MOST = 5_000
"""Sessions of an agent that are considered."""
LISTED = 5
COLUMNS = 60


class KnownSession(NamedTuple):
    """A session that the agent lists, or that our own record has."""

    id: str
    folder: str
    updated: str | None = None
    title: str | None = None


async def known_sessions(remote: RemoteAgent, program: str, folder: str | None = None) -> list[KnownSession]:
    """The sessions of one folder or all, the latest first: the agent's list, or our own record if it has none."""
    if not remote.capabilities.sessions.list:
        ours = last_sessions.last_sessions(program, folder)
        return [KnownSession(it.id, it.folder, it.at) for it in ours]
    found: list[KnownSession] = []
    async for info in remote.sessions(folder):
        found.append(KnownSession(info.session_id, info.cwd, info.updated_at, info.title))
        if len(found) == MOST:
            break
    # Sorting is stable: sessions without a time stay in the agent's order, after the others.
    return sorted(found, key=lambda session: session.updated or "", reverse=True)


async def find(remote: RemoteAgent, program: str, given: str) -> KnownSession | None:
    """The session whose id is `given`, or starts with it; None if no session has it, WrongUsage if several do."""
    known = await known_sessions(remote, program)
    for session in known:
        if session.id == given:
            return session
    found = [session for session in known if session.id.startswith(given)]
    if len(found) > 1:
        shown = ", ".join(label(session.id, COLUMNS) for session in found[:LISTED])
        more = f" and {len(found) - LISTED:,} more" if len(found) > LISTED else ""
        raise WrongUsage(f"several sessions have an id that starts with {given!r}: {shown}{more}")
    return found[0] if found else None


async def latest(remote: RemoteAgent, program: str, folder: str) -> str:
    """The id of the latest session of this folder; raises WrongUsage if it has no session."""
    known = await known_sessions(remote, program, folder)
    if not known:
        raise WrongUsage(f"the agent has no session of the folder {folder} to continue; leave out --continue")
    if known[0].updated is None:  # an agent that does not tell times may list its sessions in any order
        there = {session.id for session in known}
        ours = [it.id for it in last_sessions.last_sessions(program, folder) if it.id in there]
        return next(iter(ours), known[0].id)
    return known[0].id
