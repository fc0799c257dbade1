"""`OpenSessions`: the sessions that are open on any connection of an agent in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from accord.agent.open_session import OpenSession

if TYPE_CHECKING:
    from accord.agent.watching import Followed


class OpenSessions:
    """Which sessions of an agent are open, on whichever connection.

    A client may archive or name a session that another connection has open. Sessions of other processes are not known
    here: the store keeps them apart.
    """

    def __init__(self) -> None:
        self.followed: Followed | None = None
        """The sessions that clients watch; made when the first does."""
        self._open: dict[tuple[str, str], tuple[OpenSession, Callable[[str], Awaitable[None]]]] = {}

    def entered(self, owner: str, session: OpenSession, end: Callable[[str], Awaitable[None]]) -> None:
        """A connection has opened this session, and `end` closes it there."""
        self._open[owner, session.id] = session, end

    def left(self, owner: str, session: OpenSession) -> None:
        """A connection has closed this session; if another has opened it meanwhile, it stays."""
        found = self._open.get((owner, session.id))
        if found is not None and found[0] is session:
            del self._open[owner, session.id]

    def find(self, owner: str, session_id: str) -> OpenSession | None:
        """The open session with this id; None if it is not open."""
        found = self._open.get((owner, session_id))
        return None if found is None else found[0]

    async def end(self, owner: str, session_id: str) -> None:
        """Close this session where it is open, if it is."""
        found = self._open.get((owner, session_id))
        if found is not None:
            _, end = found
            await end(session_id)
