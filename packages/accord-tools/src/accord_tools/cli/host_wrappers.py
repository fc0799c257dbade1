"""Hosts around the host that `accord serve` serves: `ReloadingHost` for `--reload`, `RecordedHost` for `--trace`.

`--reload` ends open connections when a Python file changes, so that clients get an agent with the new code. Each
connection has a process of its own, which reads the code when it starts. So the server itself goes on.

Changes are found by looking at the times and sizes of the files, twice a second: a project has some hundred files, and
looking at them takes about a millisecond. A package that is told of changes by the system would save that, and need an
extra and a thread.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from accord.http import Host, WrappedHost
from accord.transports.wrapped_transport import RecordedTransport

if TYPE_CHECKING:
    from accord.trace import Observer
    from accord.transports import End, Transport

EVERY = 0.5
"""Seconds between two looks."""
MOST = 5_000
"""Files that are watched: the folder of a project has fewer."""
_LEFT_OUT = {"__pycache__", "node_modules", "venv", "env", "site-packages", "build", "dist"}

Snapshot = dict[str, tuple[int, int]]


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


async def end_on_change(host: ReloadingHost, folder: Path, seen: Snapshot, told: Callable[[str, int], None]) -> None:
    """End the connections of this host after each change below this folder since the snapshot `seen`.

    `told` is called with the file that changed, and how many connections were ended.
    """
    while True:
        await asyncio.sleep(EVERY)
        now = await asyncio.to_thread(snapshot, folder)
        if changed := sorted(path for path in seen.keys() | now.keys() if seen.get(path) != now.get(path)):
            seen = now
            told(changed[0], await host.end_connections())


def snapshot(folder: Path) -> Snapshot:
    """The time and size of each Python file below this folder, but for hidden folders and installed packages."""
    return {path: (status.st_mtime_ns, status.st_size) for path, status in _files(folder)}


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    left = MOST
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(it for it in folders if not it.startswith(".") and it not in _LEFT_OUT)
        for file in sorted(files):
            if file.endswith(".py") and left > 0:
                left -= 1
                path = os.path.join(place, file)  # noqa: PTH118
                try:
                    yield path, os.stat(path)  # noqa: PTH116
                except OSError:  # it was removed meanwhile
                    continue


class RecordedHost(WrappedHost):
    """A host whose connections an observer sees; their numbers begin with 1."""

    def __init__(self, host: Host, observer: Observer) -> None:
        super().__init__(host)
        self._observer = observer
        self._links = itertools.count(1)

    async def serve(self, transport: Transport, owner: str) -> End | None:
        return await super().serve(RecordedTransport(transport, self._observer, next(self._links)), owner)
