"""Hosts around the host that `accord serve` serves: `ReloadingHost` for `--reload`, `RecordedHost` for `--trace`.

`--reload` ends open connections when a Python file changes, so that clients get an agent with the new code. Each
connection has its own process, which reads the code when it starts. So the server itself continues.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from accord.http import Host, WrappedHost
from accord.transports import End, Transport
from accord.transports.wrapped_transport import RecordedTransport

if TYPE_CHECKING:
    from accord.trace import Observer
    from accord_tools.cli.watched_files import WatchedFiles


class ReloadingHost(WrappedHost):
    """A host whose open connections can be ended."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._open: set[Transport] = set()

    async def serve(self, transport: Transport, owner: str) -> End | None:
        self._open.add(transport)
        try:
            return await super().serve(transport, owner)
        finally:
            self._open.discard(transport)

    async def end_connections(self) -> int:
        """End the open connections; returns how many there were."""
        ending = list(self._open)
        await asyncio.gather(*(transport.close() for transport in ending), return_exceptions=True)
        return len(ending)


async def end_on_change(host: ReloadingHost, files: WatchedFiles, report: Callable[[str, int], None]) -> None:
    """End the connections of this host after each change of the files.

    `report` is called with the file that changed, and how many connections were ended.
    """
    while True:
        await files.change()
        for file in files.take_changes()[:1]:
            report(file, await host.end_connections())


class RecordedHost(WrappedHost):
    """A host whose connections an observer sees; they are numbered from 1."""

    def __init__(self, host: Host, observer: Observer) -> None:
        super().__init__(host)
        self._observer = observer
        self._links = itertools.count(1)

    async def serve(self, transport: Transport, owner: str) -> End | None:
        return await super().serve(RecordedTransport(transport, self._observer, next(self._links)), owner)
