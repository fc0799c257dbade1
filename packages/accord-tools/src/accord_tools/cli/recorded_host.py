"""`accord serve --trace`: records the connections of a host, each as a link of one trace."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from accord.http.server.hosting import Host, Hosted, host_of
from accord.transports.wrapped_transport import RecordedTransport

if TYPE_CHECKING:
    from accord.http.server.owner_gate import OwnerGate
    from accord.trace import Observer
    from accord.transports.transport_interface import End, Transport


class RecordedHost(Host):
    """A host whose connections an observer sees; their numbers begin with 1."""

    def __init__(self, hosted: Hosted, observer: Observer) -> None:
        self._host = host_of(hosted)
        self.name = self._host.name
        self.starts_processes = self._host.starts_processes
        self.is_shared = self._host.is_shared
        self._observer = observer
        self._links = itertools.count(1)

    def count_turns(self, gate: OwnerGate) -> bool:
        return self._host.count_turns(gate)

    async def close(self, grace: float) -> None:
        await self._host.close(grace)

    async def serve(self, transport: Transport, owner: str) -> End | None:
        return await self._host.serve(RecordedTransport(transport, self._observer, next(self._links)), owner)
