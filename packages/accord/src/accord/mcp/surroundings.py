"""What MCP servers need of the session that they belong to, and the kinds of servers that can be used here."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from accord.engine.peer import Peer
from accord.schema import v1

if TYPE_CHECKING:
    from accord.mcp.mcp_line import LinesToClient


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


@functools.cache
def installed() -> bool:
    """Whether the official package is installed. Each connection asks, and each look searches the whole path."""
    return importlib.util.find_spec("mcp") is not None


def mcp_capabilities() -> v1.McpCapabilities:
    """The MCP capabilities that an agent can declare: all transports of the official package, if it is installed."""
    is_usable = installed()
    return v1.McpCapabilities(http=is_usable, sse=is_usable, acp=is_usable)
