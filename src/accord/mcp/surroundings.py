"""Whose servers they are: what a link needs to know of its session, and whom it can ask."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from accord.engine.peer import Peer
from accord.schema import v1


class Surroundings(msgspec.Struct, frozen=True):
    """A session, seen from its MCP servers."""

    peer: Peer
    """The client: it asks its user what a server wants to know."""
    session_id: v1.SessionId
    roots: Sequence[str]
    """Absolute folders; the first is where server processes start."""

    def can_elicit(self) -> bool:
        has = self.peer.capabilities.has
        return has("elicitation.form") or has("elicitation.url")
