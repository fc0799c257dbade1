"""`GuardedHost`: a host whose turns are counted at the agent, because they outlast the connections of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.http.server.guarded import GuardedTransport
from accord.http.server.hosting import Host
from accord.http.server.owner_gate import OwnerGate

if TYPE_CHECKING:
    from accord.transports.transport_interface import End, Transport


class GuardedHost(Host):
    """Serves what another host serves, and has each turn admitted."""

    def __init__(self, host: Host, gate: OwnerGate) -> None:
        self.name = host.name
        self.starts_processes = host.starts_processes
        self._host = host
        self._gate = gate

    async def serve(self, transport: Transport, owner: str) -> End | None:
        guarded = GuardedTransport(transport, owner, self._gate, counts_messages=False, counts_turns=True)
        return await self._host.serve(guarded, owner)

    async def close(self, grace: float) -> None:
        await self._host.close(grace)
