"""The client of one connection: how to reach it, what it told about itself, and what it lends."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import msgspec

from accord.agent.asks import Asks
from accord.capabilities import Capabilities
from accord.engine.interceptors import Interceptors
from accord.engine.peer import Peer
from accord.schema import v1
from accord.services.local import HelpedPeer, LocalHost
from accord.services.service import ServedSession
from accord.tasks import Tasks


class ConnectedClient(msgspec.Struct):
    """The client, as its connection knows it."""

    peer: Peer
    local: LocalHost | None = None
    """Services of this machine, for what the client does not lend."""
    interceptors: Interceptors = msgspec.field(default_factory=Interceptors)
    """The handlers of single sessions."""
    info: v1.Implementation | None = None
    """The client's name and version, once `initialize` has told them."""

    @property
    def capabilities(self) -> Capabilities:
        return self.peer.capabilities

    def lends(self, capability: str) -> bool:
        """Whether requests that need this capability are answered, by the client or by this machine."""
        return self.capabilities.has(capability) or (self.local is not None and self.local.capabilities.has(capability))

    def asked_for(self, session: ServedSession) -> Asks:
        """What answers this session's requests."""
        return self.peer if self.local is None else HelpedPeer(self.peer, self.local, session)


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
