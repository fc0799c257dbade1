"""The client of one connection: how to reach it, what it told about itself, and what it lends."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from accord._internal.tasks import Tasks
from accord.agent.asks import Asks
from accord.agent.negotiation import Version
from accord.capabilities import Capabilities
from accord.dialects.dialect import Dialect
from accord.dialects.v1_dialect import V1Dialect
from accord.engine.interceptors import Interceptors
from accord.engine.peer import Peer
from accord.schema import v1
from accord.services.service import ServedSession

if TYPE_CHECKING:
    from accord.mcp.over_acp.lines_to_client import LinesToClient
    from accord.services.local import LocalHost


class ConnectedClient(msgspec.Struct):
    """The client, as its connection knows it."""

    peer: Peer
    local: LocalHost | None = None
    """Services of this machine, for what the client does not lend."""
    interceptors: Interceptors = msgspec.field(default_factory=Interceptors)
    """The handlers of single sessions."""
    info: v1.Implementation | None = None
    """The client's name and version, once `initialize` has told them."""
    version: Version = 1
    """The version of the protocol that this connection has."""
    mcp_lines: LinesToClient | None = None
    """The MCP connections to servers that the client itself offers; made when the first is needed."""

    def dialect(self) -> Dialect:
        """How a session of this connection speaks."""
        if self.version == 1:
            return V1Dialect()
        from accord.dialects.v2_dialect import V2Dialect  # loads the types of version 2

        return V2Dialect()

    def asks(self, dialect: Dialect | None = None) -> Asks:
        """What sends requests to the client, in the words of version 1 whatever the version is."""
        if self.version == 1:
            return self.peer
        from accord.dialects.v2_requests import V2Client

        return V2Client(self.peer, dialect)

    def on_in_session(self, session_id: v1.SessionId, message: Any, handler: Callable[..., Any]) -> Callable[[], None]:
        """Handle this message in one session from now on; the result removes the handler."""
        if self.version == 2:
            from accord.dialects.v1_handlers_on_v2 import handler_on_v2

            message, handler = handler_on_v2(message, handler, "agent")
        return self.interceptors.of_session(message, session_id, handler)

    @property
    def capabilities(self) -> Capabilities:
        return self.peer.capabilities

    def lends(self, capability: str) -> bool:
        """Whether requests that need this capability are answered, by the client or by this machine."""
        return self.capabilities.has(capability) or (self.local is not None and self.local.capabilities.has(capability))

    def lines(self) -> LinesToClient:
        """What connects with MCP servers that the client itself offers."""
        from accord.mcp.over_acp.lines_to_client import LinesToClient

        if self.mcp_lines is None:
            self.mcp_lines = LinesToClient(self.peer)
            self.peer.handle(self.mcp_lines.handlers())
        return self.mcp_lines

    def asked_for(self, session: ServedSession, dialect: Dialect) -> Asks:
        """What answers this session's requests."""
        asks = self.asks(dialect)
        if self.local is None:
            return asks
        from accord.services.local import HelpedPeer

        return HelpedPeer(asks, self.peer, self.local, session)


class SessionClient(msgspec.Struct, frozen=True):
    """The client, as one session knows it: what `RemoteClient` and its terminals need."""

    client: ConnectedClient
    asks: Asks
    """Sends requests that outlast a turn: a turn's end does not cancel them."""
    errands: Tasks
    """Work that no request waits for, such as releasing a terminal."""
    session_id: v1.SessionId
    cwd: Path

    def resolve(self, path: str | PathLike[str]) -> str:
        """This path as an absolute one; a relative path starts at `cwd`."""
        return str(self.cwd / path)
