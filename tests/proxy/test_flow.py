"""A slow side slows the other one, through all proxies: memory stays bounded by the marks of the links."""

from __future__ import annotations

import asyncio

import pytest

SIZE = 200_000
FRAMES = 200  # 40 MB
MOST = 100
"""Messages that the chain may hold, half of them: the marks of its links, the reads under way and the pipes."""


class Flood:
    """Sends messages as fast as the other side takes them."""

    def __init__(self, sender, count, message):
        self.sent = 0
        self._sender = sender
        self.count = count
        self._message = message

    async def run(self):
        for number in range(1, self.count + 1):
            self.sent = number
            self._sender.send(self._message(number))
            if self._sender.transport.unsent > 1_000_000:
                await self._sender.transport.flush()


async def taken_slowly(flood, reader, most):
    """Read everything, one message at a time; fails if ever more than `most` messages are under way."""
    reader.transport.pause_reading()
    flooding = asyncio.create_task(flood.run())
    for number in range(1, flood.count + 1):
        reader.transport.resume_reading()
        message = await reader.receive()
        reader.transport.pause_reading()
        assert number_of(message) == number
        assert flood.sent - number < most
        await asyncio.sleep(0)
    await flooding
    reader.transport.resume_reading()


def number_of(message):
    return message["params"]["number"] if "params" in message else message["id"]


def update(number):
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"number": number, "text": "x" * SIZE}}


@pytest.mark.parametrize("direction", ["to the client", "to the agent"])
async def test_a_slow_side_stops_the_other_one_through_two_proxies(line, direction):
    await line.open(line.nested(), line.nested(), line.component())
    asked = line.client.call("initialize", {"protocolVersion": 1})
    agent = await line.agent.there()
    agent.answer(await agent.expect("initialize"), {"protocolVersion": 1})
    await line.client.expect_result(asked)
    sender, reader = (agent, line.client) if direction == "to the client" else (line.client, agent)
    await taken_slowly(Flood(sender, FRAMES, update), reader, MOST)


async def test_a_component_that_reads_no_refusals_is_not_read_either(chain):
    line = await chain(0)

    def refused(number):
        return {"jsonrpc": "2.0", "id": number, "method": "proxy/initialize", "params": {}, "padding": "x" * 1000}

    await taken_slowly(Flood(line.agent, 40_000, refused), line.agent, 20_000)
