"""Rounds of attacks. What a round does follows from its seed; when exactly, the machine decides."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.attack.attackers.families import ATTACKS
from tests.attack.bounds import ATTACKER_MEMORY
from tests.attack.field import Field, field
from tests.attack.hostiles import agents, servers
from tests.attack.puppet import bounded, environment

SECONDS = (2.0, 5.0)
"""How long an attack goes on."""

AT_ONCE = 3
"""Attacks on the server at the same time, at most; the client meets one hostile agent meanwhile."""

OVERTIME = 90.0
"""Seconds that an attacker may take over its time, to check what it did on a busy machine."""

LOOK = 0.1
"""Seconds between two looks at the victims' memory."""

TELL = 5.0
"""Seconds between two lines of progress."""

WAYS = {
    "a chat meets ": {"command": "chat"},
    "a chain ends in ": {"command": "meet", "place": "agent"},
    "a chain goes through ": {"command": "meet", "place": "proxy"},
}
"""How the client meets a hostile agent, if not by itself, and what it is told then."""

MEETINGS = (*agents.KINDS, *servers.KINDS, *(way + kind for way in WAYS for kind in agents.KINDS))


class Failed(Exception):
    """Something did not hold in the round of this seed."""

    def __init__(self, seed: int, seen: str) -> None:
        super().__init__(seen)
        self.seed = seed


class Run:
    """Rounds on one field, and what is told of them."""

    def __init__(self, ground: Field, say: Callable[[str], None]) -> None:
        self._field = ground
        self._say = say
        self._began = self._told = time.monotonic()
        self._tries: Counter[str] = Counter()
        self._turns = 0
        self._attackers: set[asyncio.subprocess.Process] = set()

    async def round(self, seed: int, attacks: Iterable[str] | None = None) -> None:
        """One round; raises Failed with what was seen."""
        chance = random.Random(seed)
        chosen = plan(chance) if attacks is None else list(attacks)
        seconds = chance.uniform(*SECONDS)
        problems: list[str] = []
        await self._field.work(sum(kind in ATTACKS for kind in chosen))
        working = asyncio.create_task(self._work(chosen, chance.randrange(10**9), seconds))
        watching = asyncio.create_task(self._watch(problems))
        await asyncio.wait([working, watching], return_when=asyncio.FIRST_COMPLETED)
        if watching.done() and not self._field.alive:  # nothing would come of waiting for it
            working.cancel()
        for came in await asyncio.gather(working, return_exceptions=True):
            problems += came if isinstance(came, list) else [repr(came)] if isinstance(came, Exception) else []
        watching.cancel()
        if problems:
            shown = "\n".join(dict.fromkeys(problems))
            raise Failed(seed, f"seed {seed}, {seconds:.1f} s of {', '.join(chosen)}:\n{shown}")
        self._tell()

    async def _work(self, attacks: list[str], seed: int, seconds: float) -> list[str]:
        """Attack, and look at what is left; the problems."""
        chance = random.Random(seed)
        fighting = [self._fight(kind, chance.randrange(10**9), seconds) for kind in attacks]
        problems: list[str] = []
        for complaints in await asyncio.gather(*fighting, return_exceptions=True):
            problems += [f"{complaints!r}"] if isinstance(complaints, BaseException) else complaints
        for look in (self._count_turns, self._field.remains):
            try:
                problems += await look()
            except RuntimeError as error:
                problems.append(str(error))
        return problems

    async def _count_turns(self) -> list[str]:
        """Let the honest peers finish, and see that they have done something."""
        await self._field.rest()
        done = await self._field.honest_work()
        before, self._turns = self._turns, done["turns"]
        return [] if self._turns > before else ["honest peers made no turn in the whole round"]

    async def _watch(self, problems: list[str]) -> None:
        """End all attackers once one has got through: a victim has died, or takes too much of the machine."""
        while True:
            if found := [*self._field.dead(), *self._field.overweight()]:
                problems += found
                for attacker in self._attackers:
                    with suppress(ProcessLookupError):
                        os.killpg(attacker.pid, signal.SIGKILL)
                return
            if time.monotonic() - self._told > TELL:
                self._tell()
            await asyncio.sleep(LOOK)

    def _tell(self) -> None:
        self._told = time.monotonic()
        attacks = ", ".join(f"{kind} {tries}" for kind, tries in self._tries.most_common())
        memory = ", ".join(f"{name} {size} MiB" for name, size in self._field.memory().items())
        peaks = ", ".join(f"{name} {size} MiB" for name, size in self._field.peaks().items())
        self._say(
            f"{self._told - self._began:4.0f} s  {self._turns} honest turns  {memory}, "
            f"peaks over the base {peaks}  attacks: {attacks}"
        )

    async def _fight(self, kind: str, seed: int, seconds: float) -> list[str]:
        if kind in ATTACKS:
            return await self._attack(kind, seed, seconds)
        return await self._meet(kind, seed, seconds)

    async def _attack(self, kind: str, seed: int, seconds: float) -> list[str]:
        """Run an attacker; what it complains about."""
        targets = json.dumps({**self._field.ports, "store": self._field.store, "hosts": self._field.hosts})
        command = ("tests.attack.attackers", kind, str(seed), str(seconds), targets)
        async with self._program(*command) as attacker:
            said, errors = await asyncio.wait_for(attacker.communicate(), seconds + OVERTIME)
            if attacker.returncode == -signal.SIGKILL:
                return []  # by `_watch`, which says why
            if attacker.returncode:
                return [f"the attacker {kind} failed: {errors.decode()[-1500:]}"]
        came = json.loads(said)
        self._tries[kind] += came["tries"]
        return [f"{kind}: {complaint}" for complaint in came["wrong"][:5]]

    async def _meet(self, kind: str, seed: int, seconds: float) -> list[str]:
        """Let the client meet a hostile agent."""
        lends = seed % 4 > 0
        way = next((way for way in WAYS if kind.startswith(way)), "")
        if (hostile := kind.removeprefix(way)) in agents.KINDS:
            command = [sys.executable, "-m", "tests.attack.hostiles.agents", hostile, str(seconds)]
            how = WAYS.get(way, {"command": "meet"})
            await self._field.client.ask(**how, target=command, seconds=seconds, lends=lends)
        else:
            async with self._program("tests.attack.hostiles.servers", kind, str(seconds)) as server:
                assert server.stdout is not None
                port = int(await server.stdout.readline())
                url = f"{kind.partition(':')[0]}://127.0.0.1:{port}/acp"
                await self._field.client.ask("meet", target=url, seconds=seconds, lends=lends)
        self._tries[kind] += 1
        return []

    @asynccontextmanager
    async def _program(self, module: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            preexec_fn=bounded(ATTACKER_MEMORY),
            start_new_session=True,
        )
        self._attackers.add(process)
        try:
            yield process
        finally:
            self._attackers.discard(process)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def plan(chance: random.Random) -> list[str]:
    """The attacks of a round: some on the server, an agent or the store, and one on the client."""
    return [*chance.sample(sorted(ATTACKS), chance.randint(1, AT_ONCE)), chance.choice(MEETINGS)]


async def run(folder: Path, seeds: Iterable[int], seconds: float, say: Callable[[str], None]) -> None:
    """Rounds with these seeds for so long, and at least one; raises Failed."""
    ends = time.monotonic() + seconds
    seeds = iter(seeds)
    first = next(seeds)
    async with field(folder, first) as made:
        ground = Run(made, say)
        await ground.round(first)
        for seed in seeds:
            if time.monotonic() > ends:
                return
            await ground.round(seed)
