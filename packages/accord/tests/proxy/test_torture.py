"""Chains of three whose components die, stop and flood at random: nothing hangs, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import random
import shlex
import sys
from pathlib import Path

import pytest

from accord.testing import ScriptedPeer
from accord.transports.process_transport import ProcessTransport
from tests.proxy.conftest import CONDUCT
from tests.waiting import eventually

CHAOS = Path(__file__).parent / "chaos.py"
PROMPTS = 6


def component(kind, seed, folder):
    return shlex.join([sys.executable, str(CHAOS), kind, str(seed), str(folder)])


class Outcome:
    """What became of the requests of a run."""

    def __init__(self):
        self.answered = set()
        self.ended = False


async def ask_away(client, dice, outcome):
    """Send prompts, and wait until each is answered, or the chain ends."""
    initialize = client.call("initialize", {"protocolVersion": 1}, id="init")
    await answer_to(client, initialize, outcome)
    session = client.call("session/new", {"cwd": "/", "mcpServers": []}, id="new")
    opened = await answer_to(client, session, outcome)
    session_id = (opened or {}).get("result", {}).get("sessionId", "s")
    for number in range(PROMPTS):
        params = {"sessionId": session_id, "prompt": [{"type": "text", "text": "go"}]}
        asked = client.call("session/prompt", params, id=number)
        if dice.random() < 0.3:
            client.tell("session/cancel", {"sessionId": session_id})
        await answer_to(client, asked, outcome)
        outcome.answered.add(number)


async def answer_to(client, request_id, outcome):
    """The answer to this request; fails if the chain ends without it."""
    while True:
        message = await client.receive()
        if "method" not in message and message.get("id") == request_id:
            return message


async def play(seed, folder):
    """One run: all requests are answered, unless a component was stopped, which only a user can notice."""
    dice = random.Random(seed)
    components = [component("proxy", f"{seed}-1", folder), component("proxy", f"{seed}-2", folder)]
    transport = ProcessTransport([*CONDUCT, *components, component("agent", f"{seed}-3", folder)])
    client = ScriptedPeer(transport, deadline=60)
    outcome = Outcome()
    await client.open()
    asking = asyncio.create_task(ask_away(client, dice, outcome))
    stopped = asyncio.create_task(eventually(lambda: asking.done() or any(folder.glob("stopped-*"))))
    await asyncio.wait([stopped])
    if not any(folder.glob("stopped-*")):
        failed = (await asyncio.wait([asking])) and asking.exception()
        # After the chain has ended, the client's next request cannot be answered any more.
        assert failed is None or (client.end is not None and "connection ended" in str(failed)), str(failed)
        if failed is not None:
            assert unanswered(client) <= 1
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    async with asyncio.timeout(60):
        await client.close()
    pids = [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]
    await eventually(lambda: not any(lives(pid) for pid in pids))


def unanswered(client):
    """How many requests were sent before the end and have no answer: one may have been sent after it."""
    told = [(way, json.loads(frame)) for way, frame in client.conversation]
    asked = {message["id"] for way, message in told if way == "out" and "id" in message and "method" in message}
    answered = {message["id"] for way, message in told if way == "in" and "method" not in message}
    return len(asked - answered)


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pytest_generate_tests(metafunc):
    seeds = metafunc.config.option.seeds or 6
    one = metafunc.config.option.seed
    metafunc.parametrize("seed", range(seeds) if one is None else [one])


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
async def test_nothing_hangs_and_nothing_is_left_behind(seed, tmp_path):
    await play(seed, tmp_path)
