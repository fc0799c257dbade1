"""`MeasuredHost`: a host whose connections are counted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from accord.http.server.hosting import Host, Hosted, host_of
from accord.metrics.conversation import MeasuredConversation
from accord.metrics.server import ServerMetrics
from accord.transports.wrapped_transport import RecordedTransport

if TYPE_CHECKING:
    from accord.http.server.owner_gate import OwnerGate
    from accord.transports.transport_interface import End, Transport


class MeasuredHost(Host):
    """Serves what another host serves, and counts connections, sessions, turns and bytes in `metrics`.

    A server of a measured host gives the figures at the path of `metrics`.
    """

    def __init__(self, hosted: Hosted, metrics: ServerMetrics) -> None:
        self._host = host_of(hosted)
        self.name = self._host.name
        self.starts_processes = self._host.starts_processes
        self.is_shared = self._host.is_shared
        self._counted = self.metrics = metrics

    def count_turns(self, gate: OwnerGate) -> bool:
        return self._host.count_turns(gate)

    async def close(self, grace: float) -> None:
        await self._host.close(grace)

    async def serve(self, transport: Transport, owner: str) -> End | None:
        conversation = MeasuredConversation(self._counted)
        try:
            return await self._host.serve(RecordedTransport(transport, conversation), owner)
        finally:
            conversation.close(time.monotonic())
