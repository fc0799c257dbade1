"""A slow side slows the other one, through all proxies: memory stays bounded by the marks of the links."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from pathlib import Path

import pytest

from accord.proxy.link import MOST_AHEAD
from accord.proxy.switchboard import PassedRequest

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


async def agent_of(line):
    """The agent of an open line, once client and agent have agreed."""
    asked = line.client.call("initialize", {"protocolVersion": 1})
    agent = await line.agent.there()
    agent.answer(await agent.expect("initialize"), {"protocolVersion": 1})
    await line.client.expect_result(asked)
    return agent


@pytest.mark.parametrize("direction", ["to the client", "to the agent"])
async def test_a_slow_side_stops_the_other_one_through_two_proxies(line, direction):
    await line.open(line.nested(), line.nested(), line.component())
    agent = await agent_of(line)
    sender, reader = (agent, line.client) if direction == "to the client" else (line.client, agent)
    await taken_slowly(Flood(sender, FRAMES, update), reader, MOST)


async def test_a_component_that_reads_no_refusals_is_not_read_either(chain):
    line = await chain(0)

    def refused(number):
        return {"jsonrpc": "2.0", "id": number, "method": "proxy/initialize", "params": {}, "padding": "x" * 1000}

    await taken_slowly(Flood(line.agent, 40_000, refused), line.agent, 20_000)


@pytest.mark.parametrize("way", ["memory"])
async def test_a_client_that_reads_no_answers_is_read_up_to_a_bound_and_again_once_it_does(line):
    await line.open(line.component())
    agent = await agent_of(line)
    agent.transport.pause_reading()
    line.client.transport.pause_reading()
    answers, requests = Flood(agent, 20, update), Flood(line.client, FRAMES, update)
    flooding = [asyncio.create_task(it.run()) for it in (answers, requests)]
    before = -1
    while before != requests.sent:  # in memory, what does not move in a thousand turns of the loop has stopped
        before = requests.sent
        for _ in range(1_000):
            await asyncio.sleep(0)
    assert (MOST_AHEAD // SIZE) / 2 < requests.sent < 2 * MOST_AHEAD // SIZE < FRAMES
    for reader, count in ((line.client, 20), (agent, FRAMES)):
        reader.transport.resume_reading()
        assert [number_of(await reader.receive()) for _ in range(count)] == list(range(1, count + 1))
    await asyncio.gather(*flooding)


@pytest.mark.parametrize("way", ["memory"])
async def test_a_long_name_of_a_method_is_not_kept_until_the_answer(line):
    await line.open(line.component())
    agent = await agent_of(line)
    for _ in range(20):
        line.client.call("x" * MIB)
        await agent.receive()
    kept = [len(it.method) for it in gc.get_objects() if isinstance(it, PassedRequest)]
    assert len(kept) >= 20
    assert max(kept) < 1_000


MIB = 1024 * 1024
IN_ALL = 128
"""Messages of one MiB."""
MOST_RESIDENT = 120 * MIB
"""Bytes of memory that a process may ever have had: Python, Accord, and a few messages."""

HANDLING = """
import accord

proxy = accord.Proxy("handling")


@proxy.updates
async def look(update):
    return update


proxy.run()
"""


def peaks(root):
    """The most memory that a process and its descendants ever had resident, by their command lines."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
                parents[int(folder.name)] = int(fields["PPid"]), int(fields.get("VmHWM", "0").split()[0]) * 1024
    found, waiting = {}, [root]
    while waiting:
        pid = waiting.pop()
        found[Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")] = parents[pid][1]
        waiting += [child for child, (parent, _) in parents.items() if parent == pid]
    return found


@pytest.mark.usefixtures("fresh_programs")
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("way", ["stdio"])
async def test_128_mib_pass_two_proxies_to_a_slow_client_in_bounded_memory(line, tmp_path):
    (tmp_path / "handling.py").write_text(HANDLING)
    await line.open(line.nested(), f"{sys.executable} {tmp_path / 'handling.py'}", line.component())
    agent = await agent_of(line)

    def mebibyte(number):
        content = {"type": "text", "text": "x" * MIB}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        params = {"sessionId": "s", "number": number, "update": update}
        return {"jsonrpc": "2.0", "method": "session/update", "params": params}

    await taken_slowly(Flood(agent, IN_ALL, mebibyte), line.client, 48)
    found = await asyncio.to_thread(peaks, line.client.transport.pid)
    assert len(found) >= 4  # the conductor, two proxies and the agent; a process that guards them may be there too
    assert not {command: peak for command, peak in found.items() if peak > MOST_RESIDENT}
