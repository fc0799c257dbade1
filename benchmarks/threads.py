"""`python -m benchmarks.threads PYTHON ...`: what threads gain with and without the global lock of the interpreter.

    python -m benchmarks.threads python3.14 python3.14t

Each program is a Python that has Accord's requirements; the sources are this checkout's. Figures are the best of five
rounds: wall time, because the question is whether two cores work at once.

| row | what |
|---|---|
| a round trip | a prompt without an update, in one thread, both ends |
| a chunk | one of 2,000 updates of a turn, sent, received and awaited, in one thread |
| two event loops | two threads that do as many prompts each, with an agent and a client each, against one thread |
| two turns that compute | two functions that compute in `asyncio.to_thread`, together against one after the other |
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import accord

ROOT = Path(__file__).parents[1]
ROUNDS = 5
PROMPTS = 1_000
CHUNKS = 2_000
WORK = 2_000_000


def compute(amount: int) -> int:
    """Work that is Python and nothing else."""
    total = 0
    for number in range(amount):
        total ^= number * number
    return total


def new_agent() -> accord.Agent:
    """An agent that says as many chunks as it is asked for."""
    agent = accord.Agent("threads")

    @agent.on_prompt
    async def prompt(turn: accord.Turn) -> None:
        for _ in range(int(turn.text)):
            await turn.say("the quick brown fox jumps over the dog")

    return agent


def new_computer() -> accord.Agent:
    """An agent that computes, in a thread."""
    agent = accord.Agent("computes")

    @agent.on_prompt
    async def prompt(turn: accord.Turn) -> None:
        await asyncio.to_thread(compute, int(turn.text))

    return agent


async def prompts(count: int) -> float:
    """Seconds that so many empty turns take."""
    async with accord.connect(new_agent()) as remote:
        session = await remote.new_session("/")
        begun = time.perf_counter()
        for _ in range(count):
            await session.prompt("0")
        return time.perf_counter() - begun


async def chunks(count: int) -> float:
    """Seconds that a turn with so many chunks takes."""
    async with accord.connect(new_agent()) as remote:
        session = await remote.new_session("/")
        begun = time.perf_counter()
        await session.prompt(str(count))
        return time.perf_counter() - begun


async def computing(*, together: bool) -> float:
    """Seconds that two turns take which compute."""
    async with accord.connect(new_computer()) as remote:
        sessions = [await remote.new_session("/") for _ in range(2)]
        begun = time.perf_counter()
        if together:
            await asyncio.gather(*(_answered(session) for session in sessions))
        else:
            for session in sessions:
                await _answered(session)
        return time.perf_counter() - begun


async def _answered(session: accord.RemoteSession) -> None:
    await session.prompt(str(WORK))


def in_threads(count: int) -> float:
    """Seconds until so many threads, each with an event loop, have done their prompts."""
    with ThreadPoolExecutor(count) as threads:
        begun = time.perf_counter()
        for done in [threads.submit(asyncio.run, prompts(PROMPTS)) for _ in range(count)]:
            done.result()
        return time.perf_counter() - begun


def best(of: Callable[[], float]) -> float:
    """The least of some rounds."""
    return min(of() for _ in range(ROUNDS))


def run(work: Callable[[], Awaitable[float]]) -> float:
    """The least seconds of some rounds."""

    async def once() -> float:
        return await work()

    return best(lambda: asyncio.run(once()))


def measured() -> dict[str, float]:
    """The figures of this interpreter."""
    one, two = best(lambda: in_threads(1)), best(lambda: in_threads(2))
    apart = run(lambda: computing(together=False))
    return {
        "a round trip, µs": run(lambda: prompts(PROMPTS)) / PROMPTS * 1e6,
        "a chunk, µs": run(lambda: chunks(CHUNKS)) / CHUNKS * 1e6,
        "two event loops, times as fast": 2 * one / two,
        "two turns that compute, times as fast": apart / run(lambda: computing(together=True)),
    }


def has_lock() -> bool:
    """Whether the interpreter has its global lock."""
    asked = getattr(sys, "_is_gil_enabled", None)
    return True if asked is None else asked()


def main(pythons: Sequence[str]) -> None:
    """Measure in each of these interpreters, or in this one."""
    if not pythons:
        print(json.dumps({"lock": has_lock(), "python": sys.version.split()[0], **measured()}))
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*ROOT.glob("packages/*/src"), ROOT)))}
    for python in pythons:
        subprocess.run([python, "-m", "benchmarks.threads"], env=environment, cwd=ROOT, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
