"""Requests that are made while a link opens: they wait for it, over every real transport."""

import asyncio
import sys

import pytest

import accord
from accord import Peer, v1
from accord.http import connect_transport, serving
from accord.transports.process_transport import ProcessTransport
from tests.waiting import DEADLINE

PROGRAM = """
import asyncio, accord
agent = accord.Agent("late")
@agent.on_prompt
async def answer(turn): ...
agent.run()
"""


@pytest.mark.parametrize("way", ["process", "http", "ws"])
async def test_a_request_that_is_made_while_a_real_link_opens_is_answered(way):
    agent = accord.Agent("late")

    @agent.on_prompt
    async def answer(turn): ...

    async with serving(agent) as server, asyncio.timeout(DEADLINE):
        if way == "process":
            transport = ProcessTransport([sys.executable, "-c", PROGRAM])
        else:
            transport = connect_transport(server.url.replace("http", way, 1))
        peer = Peer(transport, role="client")
        opening = asyncio.create_task(peer.connection.open())
        response = await peer.initialize(v1.InitializeRequest(1))
        await opening
        await peer.close()
    assert response.agent_info.name == "late"
