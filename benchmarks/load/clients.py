"""The clients of a load run: many connections in one process, which does what it is told, a line of JSON each.

    python -m benchmarks.load.clients URL WAY

| told | does, and answers with |
|---|---|
| `["open", N]` | N connections with a session each: `seconds` |
| `["listen", N, PACE]` | a turn of N numbered messages on each connection: `checked`, `wrong` |
| `["ask", N, RATE]` | N prompts, RATE a second, in turn over all connections: `p50ms`, `p99ms` |
| `["close"]` | all connections closed |
"""

import asyncio
import json
import resource
import sys
import time
from contextlib import suppress
from typing import Any

from accord import Handlers, Peer, v1
from accord.http import HttpTransport
from accord.transports import Transport
from accord.transports.websocket_client import WebSocketTransport
from benchmarks.contract import percentile

OPENING = 32
"""Connections that are opened at the same time."""

PATIENCE = 120.0
"""Seconds after which an answer will not come any more."""


def more_files() -> None:
    """Let this process, and what it starts, have as many open files as it may: each connection is one, or three."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def transport_to(url: str, way: str) -> Transport:
    if way == "websocket":
        return WebSocketTransport(url.replace("http", "ws", 1))
    return HttpTransport(url, http2=way == "http2")


class Caller(Peer):
    """One connection, its session, and whether the numbers that it hears are the ones that come next."""

    session: v1.SessionId

    def __init__(self, transport: Transport) -> None:
        handlers = Handlers()
        handlers.on(v1.SessionNotification)(self.hear)
        super().__init__(transport, handlers, role="client")
        self.checked = 0
        self.wrong: int = 0
        self._next = 0

    def hear(self, notification: v1.SessionNotification) -> None:
        match notification.update:
            case v1.AgentMessageChunk(content=v1.TextContent(text=text)):
                for number in map(int, text.split()):  # a session that is loaded says many at once
                    self.checked += 1
                    self.wrong += number != self._next
                    self._next = number + 1
            case _:
                pass

    async def open(self) -> None:
        await self.__aenter__()
        await self.initialize(v1.InitializeRequest(1), timeout=PATIENCE)
        self.session = (await self.request(v1.NewSessionRequest("/project", []), timeout=PATIENCE)).session_id

    async def listen(self, count: int, pace: float) -> None:
        self._next = 0
        await self.request(v1.PromptRequest.of(self.session, f"count {count} {pace}"), timeout=PATIENCE + count * pace)
        self.wrong += count - self._next  # what is missing at the end

    async def ask(self) -> float:
        """Milliseconds of a round trip."""
        begun = time.perf_counter()
        await self.request(v1.PromptRequest.of(self.session, "hello"), timeout=PATIENCE)
        return (time.perf_counter() - begun) * 1e3

    async def leave(self) -> None:
        await self.__aexit__(None, None, None)


class Callers:
    """All connections of this process."""

    def __init__(self, url: str, way: str) -> None:
        self._url = url
        self._way = way
        self._all: list[Caller] = []

    async def open(self, count: int) -> dict[str, float]:
        begun = time.perf_counter()
        room = asyncio.Semaphore(OPENING)

        async def one() -> Caller:
            async with room:
                caller = Caller(transport_to(self._url, self._way))
                await caller.open()
                return caller

        self._all += await asyncio.gather(*(one() for _ in range(count)))
        return {"seconds": time.perf_counter() - begun}

    async def listen(self, count: int, pace: float) -> dict[str, float]:
        await asyncio.gather(*(caller.listen(count, pace) for caller in self._all))
        return {
            "checked": sum(caller.checked for caller in self._all),
            "wrong": sum(caller.wrong for caller in self._all),
        }

    async def ask(self, count: int, rate: float) -> dict[str, float | None]:
        # By the clock, not one after the other: a server that stalls must not be spared the questions of that time.
        begun = time.perf_counter()
        asked: list[asyncio.Task[float]] = []
        for number in range(count):
            await asyncio.sleep(begun + number / rate - time.perf_counter())
            asked.append(asyncio.create_task(self._all[number % len(self._all)].ask()))
        times = await asyncio.gather(*asked)
        return {"p50ms": percentile(times, 0.5), "p99ms": percentile(times, 0.99)}

    async def close(self) -> dict[str, float]:
        await asyncio.gather(*(caller.leave() for caller in self._all))
        self._all.clear()
        return {}


async def main(url: str, way: str) -> None:
    callers = Callers(url, way)
    while line := await asyncio.to_thread(sys.stdin.readline):
        verb, *numbers = json.loads(line)
        told: Any = await getattr(callers, verb)(*numbers)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    more_files()
    asyncio.run(main(sys.argv[1], sys.argv[2]))
