"""Agents, hosts and clients end at random steps of prompts, which are sent again under their keys: each ends once."""

import asyncio
import os
import random
import sys
from collections import Counter
from contextlib import asynccontextmanager

import pytest

import accord
from accord import SqliteStore
from accord.session.replay_scan import has_key, key_in, stop_reason_in
from tests.hosts.hosting import HostProcesses

STEPS = ["sent", "inserted", "running", "idle"]
LEAST = 3
"""Rounds that are played in any case; `make torture` plays 500 over each kind of connection."""
SESSION = 50
"""Rounds in one session: each attempt loads it, so a longer one would make later rounds dearer."""


class Program:
    """The agent as a program for each connection."""

    def __init__(self, file):
        self.target = [sys.executable, "-m", "tests.hosts.host_process", str(file)]

    async def kill(self, remote):
        remote.kill()


class Served:
    """The agent on one or several hosts; a host that was killed is replaced."""

    def __init__(self, hosts, scheme, chance):
        self.hosts, self.scheme, self.chance = hosts, scheme, chance

    @property
    def target(self):
        return self.chance.choice(self.hosts.all).url.replace("http", self.scheme, 1)

    async def kill(self, _):
        victim = self.chance.choice(self.hosts.all)
        self.hosts.all.remove(victim)
        await victim.end()
        await self.hosts.add()
        await self.hosts.know_each_other()


@asynccontextmanager
async def service_of(kind, folder, chance):
    file = folder / "sessions.sqlite3"
    if kind == "stdio":
        yield Program(file)
        return
    settings = {"directory": str(folder / "hosts.sqlite3"), "store": str(file)}
    scheme, _, count = kind.partition(", ")
    async with HostProcesses(settings, 3 if count else 1) as hosts:
        yield Served(hosts, scheme, chance)


async def attempt(service, session_id, key, fault, step, words):
    """Send the prompt under its key, with this fault at this step; why the turn ended, None if that was not seen."""
    try:
        async with accord.connect(service.target, versions=(2,)) as remote:
            session = await remote.load(session_id, "/project")
            reply = session.prompt("slowly 12", idempotency_key=key)
            if step in ("inserted", "running"):
                await reply.inserted
            if step == "running":
                seen = 0
                async for _ in reply:
                    if (seen := seen + 1) == words:
                        break
            ended = await reply if step in ("idle", None) else None
            if fault == "agent":
                await service.kill(remote)
            return None if ended is None else ended.stop_reason
    except (accord.AccordError, OSError) as error:
        return print(f"  {type(error).__name__}: {str(error)[:100]}")


async def played(kind, folder, chance, rounds):
    """Play rounds; how often each fault came at each step."""
    done = Counter()
    async with service_of(kind, folder, chance) as service:
        for first in range(0, rounds, SESSION):
            keys = [f"{number}" for number in range(first, min(first + SESSION, rounds))]
            async with accord.connect(service.target, versions=(2,)) as remote:
                session_id = (await remote.new_session("/project")).id
            for key in keys:
                done.update(await one_round(service, session_id, key, chance))
            async with SqliteStore(folder / "sessions.sqlite3") as store:
                entries = [entry async for page in store.updates(session_id) for entry in page]
            found = [key_in(entry, session_id) for entry in entries if has_key(entry)]
            assert [key for key, _ in found] == keys
            assert [reason for entry in entries if (reason := stop_reason_in(entry))] == ["end_turn"] * len(keys)
    return done


async def one_round(service, session_id, key, chance):
    """Prompt under this key with one or two faults, and then until it ends; returns what was done."""
    done = []
    for _ in range(1 + (chance.random() < 0.3)):
        fault, step = chance.choice(["agent", "client"]), chance.choice(STEPS)
        print(f"round {key}: {fault} at {step}")
        done.append(f"{fault} at {step}")
        await attempt(service, session_id, key, fault, step, chance.randint(1, 10))
    while (reason := await attempt(service, session_id, key, None, None, 0)) is None:
        pass
    assert reason == "end_turn", f"round {key}: {reason}"
    return done


@pytest.mark.torture
@pytest.mark.timeout(7200)  # as long as its rounds take
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
@pytest.mark.parametrize("kind", ["stdio", "http", "ws", "http, three hosts"])
def test_a_prompt_is_inserted_once_and_ends_once_whoever_dies(kind, tmp_path, seconds, pytestconfig):
    seed = pytestconfig.option.seed
    seed = seed if seed is not None else 0 if os.environ.get("CI") else random.SystemRandom().randrange(10**9)
    print(f"seed {seed}")
    rounds = max(LEAST, int(seconds) - 100)  # a round takes about half a second of a core
    done = asyncio.run(played(kind, tmp_path, random.Random(seed), rounds))
    print(f"{rounds} rounds over {kind}: {dict(done)}")
