"""Our server beside others with the same application: processor time of a turn and of an update, each end.

    pip install granian hypercorn uvicorn
    python -m benchmarks.http_turns

This process is the client, our own. A turn is a prompt, one update and the answer. The figures are microseconds of
processor time from /proc, so this runs on Linux only. docs/design/http-libraries.md holds a recorded run.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from accord import Handlers, Peer, v1
from accord.http import connect_transport
from accord.transports import Transport
from benchmarks.http_servers import SERVERS, processor_time, running

TURNS, UPDATES = 400, 4_000
WARMING = 50
WAYS = ("WebSocket", "HTTP/1.1", "HTTP/2")
NONE = {"uvicorn": ("HTTP/2",)}
"""What a server does not speak."""


class Cost(NamedTuple):
    """Microseconds of processor time: the server's and the client's."""

    server: float
    client: float

    def __str__(self) -> str:
        return f"{self.server:.0f} + {self.client:.0f}"


def transport(url: str, way: str) -> Transport:
    if way == "WebSocket":
        return connect_transport(url.replace("http", "ws", 1))
    return connect_transport(url, http2=way == "HTTP/2")


async def costs(pid: int, url: str, way: str) -> tuple[Cost, Cost]:
    """What a turn and what an update costs."""
    handlers = Handlers()
    handlers.on(v1.SessionNotification)(lambda _: None)
    async with Peer(transport(url, way), handlers, role="client") as peer:
        await peer.initialize(v1.InitializeRequest(1))
        session = (await peer.request(v1.NewSessionRequest("/", []))).session_id

        async def spent(turns: int, updates: int) -> Cost:
            before = processor_time(pid), processor_time(os.getpid())
            for _ in range(turns):
                await peer.request(v1.PromptRequest.of(session, str(updates)))
            return Cost(processor_time(pid) - before[0], processor_time(os.getpid()) - before[1])

        await spent(WARMING, 1)
        turns, updates = await spent(TURNS, 1), await spent(1, UPDATES)
        return _each(turns, TURNS), _each(updates, UPDATES)


def _each(spent: Cost, count: int) -> Cost:
    return Cost(spent.server / count * 1e6, spent.client / count * 1e6)


def rows(name: str, folder: Path) -> list[str]:
    if name != "Accord" and find_spec(name) is None:
        return [f"| {name} | not installed |"]
    found: list[str] = []
    for way in WAYS:
        if way in NONE.get(name, ()):
            found.append(f"| {name} | {way} | has none | has none |")
            continue
        with running(name, folder) as (pid, port):
            try:
                turn, update = asyncio.run(costs(pid, f"http://127.0.0.1:{port}/acp", way))
                found.append(f"| {name} | {way} | {turn} | {update} |")
            except Exception as error:  # each server fails in its own way
                found.append(f"| {name} | {way} | failed: {error} | |")
    return found


def main() -> None:
    print("| server | way | µs of a turn, server + client | µs of an update, server + client |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in SERVERS:
            for row in rows(name, Path(folder)):
                print(row, flush=True)


if __name__ == "__main__":
    sys.exit(main())
