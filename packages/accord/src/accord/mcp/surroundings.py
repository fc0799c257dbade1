"""What MCP servers need of the session that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from accord.engine.peer import Peer
from accord.schema import v1

if TYPE_CHECKING:
    from accord.mcp.over_acp.lines_to_client import LinesToClient


class Surroundings(msgspec.Struct, frozen=True):
    """A session, as its MCP servers see it."""

    peer: Peer
    """The client, which asks its user the servers' questions."""
    session_id: v1.SessionId
    """The session's id."""
    roots: Sequence[str]
    """The session's folders, absolute; server processes start in the first."""
    lines: LinesToClient | None = None
    """Connects with servers that the client itself offers; None if it cannot."""

    def can_elicit(self) -> bool:
        """Whether the client can ask its user anything."""
        has = self.peer.capabilities.has
        return has("elicitation.form") or has("elicitation.url")
