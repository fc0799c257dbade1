"""Version 2 over every link: a turn, and what the agent does by itself afterwards."""

from __future__ import annotations

import sys

import pytest

import accord
from accord.http import serving
from tests.waiting import eventually

STDIO = """
from tests.agent.v2.test_links import reporter
reporter().run()
"""


def reporter():
    agent = accord.Agent("reporter")

    async def later(session):
        async with session.work() as turn:
            await turn.say("by myself")

    @agent.on_prompt
    async def work(turn):
        await turn.say("at once, ")
        turn.session.start(later(turn.session))
        await turn.say("as asked")

    return agent


@pytest.fixture(params=["memory", "stdio", "http", "websocket"])
async def target(request):
    if request.param == "memory":
        yield reporter()
    elif request.param == "stdio":
        yield [sys.executable, "-c", STDIO]
    else:
        async with serving(reporter()) as server:
            yield server.url if request.param == "http" else server.url.replace("http", "ws", 1)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_turn_and_work_of_the_agent_s_own(target, version):
    async with accord.connect(target, versions=(version,)) as remote:
        session = await remote.new_session("/")
        outcome = await session.prompt("go")
        assert (outcome.text, outcome.stop_reason) == ("at once, as asked", "end_turn")
        await eventually(lambda: session.state.messages[-1].text == "by myself")
        assert remote.version == version
