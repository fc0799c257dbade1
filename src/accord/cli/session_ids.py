"""Which session is meant: by its id, by the start of its id, or as the latest of a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.cli.endings import WrongUsage
from accord.configuration import last_sessions
from accord.printable import label

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent
    from accord.schema import v1

MOST = 5_000
"""Sessions of an agent that are considered; its latest come first."""
LISTED = 5


async def listed(remote: RemoteAgent, folder: str | None = None) -> list[v1.SessionInfo]:
    """The agent's sessions, of one folder or all, at most `MOST`, the latest first."""
    found: list[v1.SessionInfo] = []
    async for info in remote.sessions(folder):
        found.append(info)
        if len(found) == MOST:
            break
    # Sorting is stable: sessions without a time stay in the agent's order, after the others.
    return sorted(found, key=lambda info: info.updated_at or "", reverse=True)


async def full_id(remote: RemoteAgent, program: str, given: str) -> str:
    """The id of the session whose id starts with `given`; raises WrongUsage if there are several.

    An id that neither the agent's list nor our own record has is returned as it is: the agent may know it.
    """
    known = {it.id for it in last_sessions.last_sessions(program)}
    if remote.capabilities.sessions.list:
        known = {str(it.session_id) for it in await listed(remote)}
    if given in known:
        return given
    found = sorted(session_id for session_id in known if session_id.startswith(given))
    if len(found) > 1:
        shown = ", ".join(label(session_id, 60) for session_id in found[:LISTED])
        more = f" and {len(found) - LISTED:,} more" if len(found) > LISTED else ""
        raise WrongUsage(f"several sessions have an id that starts with {given!r}: {shown}{more}")
    return found[0] if found else given


async def latest(remote: RemoteAgent, program: str, folder: str) -> str:
    """The id of the latest session of this folder: from the agent's list, otherwise from our own record."""
    ours = [it.id for it in last_sessions.last_sessions(program, folder)]
    if remote.capabilities.sessions.list:
        theirs = await listed(remote, folder)
        if theirs and theirs[0].updated_at:
            return theirs[0].session_id
        ids = [str(it.session_id) for it in theirs]
        # An agent that does not tell times may list its sessions in any order.
        ours = [session_id for session_id in ours if session_id in ids] or ids
    if not ours:
        raise WrongUsage(f"the agent has no session of the folder {folder} to continue; leave out --continue")
    return ours[0]
