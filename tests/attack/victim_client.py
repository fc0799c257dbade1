"""A client in two threads: honest peers in both, and hostile agents that it is told to meet.

python -m tests.attack.victim_client SEED TARGETS TARGETS
    TARGETS is a JSON list of URLs and commands, of the first and of the second event loop
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import accord
from tests.attack.honest_agent import honest_agent, honest_proxy
from tests.attack.honest_peers import Peers
from tests.attack.measuring import Probe, counted
from tests.attack.puppet import obey

T = TypeVar("T")

IN_MEMORY = "memory:"
"""The beginning of a target that is an agent in the memory of this process; the rest is the path of its store."""

POLICY = """
[[rules]]
answer = "reject"
paths = ["**/.env"]
"""

PATIENCE = 15.0
"""Seconds that leaving a hostile agent may take."""


class Side:
    """One event loop: its peers and its probe."""

    def __init__(self, targets: list[Any], seed: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.probe = Probe()
        self.peers = Peers([target_of(it) for it in targets], seed)
        self._tasks = [asyncio.create_task(self.probe.beat()), asyncio.create_task(self.peers.work())]

    async def begin(self) -> None:
        self.peers.begin()

    async def rest(self) -> None:
        await self.peers.rest()


def target_of(target: Any) -> Any:
    if isinstance(target, str) and target.startswith(IN_MEMORY):
        return honest_agent(accord.SqliteStore(target.removeprefix(IN_MEMORY)))
    if isinstance(target, str) and " " in target:
        token, _, url = target.partition(" ")
        return accord.http.UrlTarget(url, token=token)
    return target


class Victim:
    """Both sides, and the meetings with hostile agents, which are in the first."""

    def __init__(self, seed: int, first: list[Any], second: list[Any]) -> None:
        self._seed = seed
        self._first = first
        self._second = second
        self._sides: list[Side] = []

    async def run(self) -> None:
        self._sides.append(Side(self._first, self._seed))
        if self._second:
            ready = threading.Event()
            threading.Thread(target=asyncio.run, args=[self._second_loop(ready)], daemon=True).start()
            await asyncio.to_thread(ready.wait)
        from tests.attack.victim_chat import chat  # before the base is measured, and in no other program

        commands = {"begin": self.begin, "rest": self.rest, "measure": self.measure, "so_far": self.so_far}
        await obey({**commands, "meet": meet, "chat": chat})

    async def _second_loop(self, ready: threading.Event) -> None:
        self._sides.append(Side(self._second, self._seed + 1))
        ready.set()
        await asyncio.Event().wait()

    async def begin(self) -> None:
        for side in self._sides:
            await in_loop(side, side.begin())

    async def rest(self) -> None:
        for side in self._sides:
            await in_loop(side, side.rest())

    async def so_far(self) -> dict[str, Any]:
        """What the honest peers have done, and what was wrong."""
        done: dict[str, int] = {}
        for side in self._sides:
            for name, number in side.peers.done.items():
                done[name] = done.get(name, 0) + number
        return {"done": done, "problems": [problem for side in self._sides for problem in side.peers.problems]}

    async def measure(self) -> dict[str, Any]:
        numbers = counted(*(side.loop for side in self._sides))
        return {**numbers, "standstill": max(side.probe.read() for side in self._sides)}


async def in_loop(side: Side, work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, side.loop))


async def meet(target: Any, seconds: float, lends: bool, place: str = "") -> str:
    """Connect with a hostile agent, or with a chain in which it has a place; prompt it, and leave; how it went."""
    permissions = accord.Permissions(allow_after_thought, policy=accord.PermissionPolicy.parse(POLICY))
    client = accord.Client(
        files=lends,
        terminals=lends,
        permissions=permissions,
        elicitation=lambda question: dict(question.content),
    )
    match place:
        case "agent":
            target = accord.chain(honest_proxy(), target)
        case "proxy":
            target = accord.chain(target, honest_agent())
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    try:
        async with accord.connect(target, client=client, timeout=seconds) as remote:
            async with asyncio.timeout_at(ends):
                session = await remote.new_session("/tmp")
                async for _ in session.prompt("go"):
                    pass
            word = "it ended the turn"
    except TimeoutError:
        word = "it was left"
    except accord.AccordError as error:
        word = f"{type(error).__name__}: {error}"[:200]
    if (late := loop.time() - ends) > PATIENCE:
        raise RuntimeError(f"leaving a hostile agent took {late:.0f} s, and not {PATIENCE:.0f} s at most")
    return word


async def allow_after_thought(question: accord.PermissionQuestion) -> bool:
    """Answers most questions, and leaves some open as a user does who is away."""
    if question.tool_call.title == "forever":
        await asyncio.Event().wait()
    return True


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    seed, first, second = sys.argv[1:]
    asyncio.run(Victim(int(seed), json.loads(first), json.loads(second)).run())
