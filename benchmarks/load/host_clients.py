"""The clients of a load run over several hosts: each of their requests reaches the next host.

    python -m benchmarks.load.host_clients URL...

It is told what to do with a line of JSON each, and answers with one, or with two where it says so:

| told | does, and answers with |
|---|---|
| `["open", N]` | N connections with a session each: `seconds`, and `places`, how many agents each host has |
| `["listen", N, PACE]` | a turn of N numbered messages on each: `{}` when all are half through, and at the end |
| `["ask", N, RATE]` | N numbered prompts, RATE a second, over all in turn: `{}` when half are sent, and times |
| `["probe"]` | one more prompt on each connection: `checked`, `wrong`, and `ended`, how many ended of each host |

The sessions of connections that have ended are loaded through the other hosts, and must have all that was seen. The
last answer has `missing`, how many numbers they lack.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import accord
from accord import v1
from benchmarks.contract import percentile
from benchmarks.load.clients import OPENING, PATIENCE, Caller, more_files
from benchmarks.load.spread import SpreadTransport


class HostedCaller(Caller):
    """One connection through several hosts, which may end when the host of its agent does."""

    def __init__(self, urls: Sequence[str], first: int) -> None:
        self._spread = SpreadTransport(urls, first)
        super().__init__(self._spread)
        self.sent = 0
        self.has_ended = False
        self.is_half_through = asyncio.Event()
        self._half = 0

    @property
    def host(self) -> str:
        return self._spread.host

    @property
    def seen(self) -> int:
        """How many numbers have come."""
        return self._next

    def hear(self, notification: v1.SessionNotification) -> None:
        super().hear(notification)
        if self._next >= self._half:
            self.is_half_through.set()

    async def listen(self, count: int, pace: float) -> None:
        self._half = count // 2
        try:
            await super().listen(count, pace)
        except accord.ConnectionClosed:
            self.has_ended = True
        self.is_half_through.set()

    async def ask_numbered(self) -> float | None:
        """Milliseconds of a round trip; None if the connection has ended."""
        if self.has_ended:
            return None
        self.sent += 1
        begun = time.perf_counter()
        try:
            await self.request(v1.PromptRequest.of(self.session, "taken"), timeout=PATIENCE)
        except accord.ConnectionClosed:
            self.has_ended = True
            return None
        return (time.perf_counter() - begun) * 1e3

    async def probe(self) -> None:
        """Send a prompt without an answer in words, and note whether the connection has ended."""
        try:
            await self.request(v1.PromptRequest.of(self.session, "hello"), timeout=PATIENCE)
        except accord.ConnectionClosed:
            self.has_ended = True

    def count_missing(self) -> None:
        """Note what has not come, if the connection is still there."""
        if not self.has_ended:
            self.wrong += abs(self.sent - self._next)


class LoadedAgain(Caller):
    """A connection that loads a session which another one has seen."""

    async def load(self, session: v1.SessionId) -> int:
        """How many numbers the session has; they come in order, from 0."""
        await self.__aenter__()
        await self.initialize(v1.InitializeRequest(1), timeout=PATIENCE)
        await self.request(v1.LoadSessionRequest(session, "/project", []), timeout=PATIENCE)
        return -1 if self.wrong else self._next


class HostedCallers:
    """All connections of this process."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._all: list[HostedCaller] = []
        self._firsts = count()
        self._room = asyncio.Semaphore(OPENING)

    async def open(self, count: int) -> dict[str, Any]:
        begun = time.perf_counter()
        self._all += await asyncio.gather(*(self._open_one() for _ in range(count)))
        places = Counter(caller.host for caller in self._all)
        return {"seconds": time.perf_counter() - begun, "places": places}

    async def _open_one(self) -> HostedCaller:
        async with self._room:
            caller = HostedCaller(self._urls, next(self._firsts))
            await caller.open()
            return caller

    async def listen(self, count: int, pace: float) -> dict[str, Any]:
        turns = [asyncio.create_task(caller.listen(count, pace)) for caller in self._all]
        for caller in self._all:
            await caller.is_half_through.wait()
        say({})
        await asyncio.gather(*turns)
        return {}

    async def ask(self, count: int, rate: float) -> dict[str, Any]:
        # By the clock, not one after the other: hosts that stall must not be spared the questions of that time.
        begun = time.perf_counter()
        asked: list[asyncio.Task[float | None]] = []
        for number in range(count):
            await asyncio.sleep(begun + number / rate - time.perf_counter())
            asked.append(asyncio.create_task(self._all[number % len(self._all)].ask_numbered()))
            if number == count // 2:
                say({})
        times = [taken for taken in await asyncio.gather(*asked) if taken is not None]
        for caller in self._all:
            caller.count_missing()
        return {"p50ms": percentile(times, 0.5), "p99ms": percentile(times, 0.99)}

    async def probe(self) -> dict[str, Any]:
        await asyncio.gather(*(self._probe_one(caller) for caller in self._all))
        ended = [caller for caller in self._all if caller.has_ended]
        missing = await asyncio.gather(*(self._missing(caller) for caller in ended))
        return {
            "checked": sum(caller.checked for caller in self._all),
            "wrong": sum(caller.wrong for caller in self._all),
            "ended": Counter(caller.host for caller in ended),
            "missing": sum(missing),
        }

    async def _probe_one(self, caller: HostedCaller) -> None:
        async with self._room:
            await caller.probe()

    async def _missing(self, caller: HostedCaller) -> int:
        """How many of the numbers that this connection has seen its session lacks; it is loaded through other hosts."""
        async with self._room:
            again = LoadedAgain(SpreadTransport(self._urls, next(self._firsts)))
            kept = await again.load(caller.session)
            await again.leave()
        return max(0, caller.seen - kept)

    async def close(self) -> dict[str, Any]:
        for caller in self._all:
            with suppress(accord.AccordError):
                await caller.leave()
        self._all.clear()
        return {}


def say(told: Any) -> None:
    print(json.dumps(told), flush=True)


async def main(urls: Sequence[str]) -> None:
    callers = HostedCallers(urls)
    while line := await asyncio.to_thread(sys.stdin.readline):
        verb, *numbers = json.loads(line)
        say(await getattr(callers, verb)(*numbers))


if __name__ == "__main__":
    more_files()
    asyncio.run(main(sys.argv[1:]))
