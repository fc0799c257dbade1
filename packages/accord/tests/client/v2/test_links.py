"""Version 2 over each kind of connection, between our client and our agent."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager

import pytest

import accord
from accord.http import serving

SCRIPT = """
import asyncio
import accord

agent = accord.Agent("linked")


@agent.on_prompt
async def reply(turn: accord.Turn) -> None:
    if turn.text == "wait":
        await turn.say("waiting")
        await asyncio.get_running_loop().create_future()
    async with turn.tool("Edit", kind="edit") as tool:
        allowed = await tool.ask()
    for word in ("two", " words"):
        await turn.say(word)
    await turn.say(f", {bool(allowed)}")


agent.run()
"""


@asynccontextmanager
async def stdio(command):
    yield command


@asynccontextmanager
async def http(command):
    async with serving(command) as server:
        yield server.url


@asynccontextmanager
async def websocket(command):
    async with serving(command) as server:
        yield server.url.replace("http", "ws", 1)


@asynccontextmanager
async def bridge(command):
    async with serving(command) as server:
        yield [sys.executable, "-m", "accord", "bridge", server.url]


@pytest.mark.parametrize("link", [stdio, http, websocket, bridge])
async def test_a_turn_a_question_a_held_prompt_and_a_cancel(link, tmp_path):
    program = tmp_path / "linked.py"
    program.write_text(SCRIPT)
    client = accord.Client(permissions=True)
    async with (
        link([sys.executable, str(program)]) as where,
        accord.connect(where, client, versions=(2, 1)) as remote,
    ):
        assert (remote.version, remote.name) == (2, "linked")
        session = await remote.new_session("/")
        assert (await session.prompt("go")).text == "two words, True"
        waiting = session.prompt("wait")
        assert await anext(waiting.iter_text()) == "waiting"
        held, withdrawn = session.prompt("go"), session.prompt("go")
        assert (await withdrawn.cancel()).stop_reason == "cancelled"
        assert (await waiting.cancel()).stop_reason == "cancelled"
        assert (await held).stop_reason == "cancelled", "session/cancel stops the prompts that wait, too"
        assert (await session.prompt("go")).text == "two words, True"
