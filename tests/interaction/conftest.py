"""One `connect` for every test: in memory, and over the standard streams of a real process.

| | the other side | memory | stdio |
|---|---|---|---|
| `connect(agent, client)` | our agent, our client | one loop | the agent in a process of its own |
| `connect.as_client(agent)` | a script is the client | one loop | the agent in a process of its own |
| `connect.as_agent(client)` | a script is the agent | one loop | one loop, through pipes |

A test is written once and runs both ways, unless `@pytest.mark.over("memory")` or `("stdio")` says which. Those marked
`uvloop` run on uvloop as well.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import tempfile
from collections import defaultdict
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import staging
from staging import Stage, options_of, staged

from accord.dispatch import Peer
from accord.http import HttpTransport, serving
from accord.http.hosting import Host
from accord.schema import codec, v1
from accord.testing import ScriptedPeer
from accord.transports.memory import pair
from accord.transports.process import ProcessTransport
from accord.transports.stdio import StdioTransport
from accord.transports.websocket import WebSocketTransport

DEADLINE = float(os.environ.get("ACCORD_TEST_DEADLINE", "30"))
"""Seconds until a wait for something that should happen is a failure; generous, as machines are shared."""

WAYS = ("memory", "stdio")
REMOTE_WAYS = ("websocket", "http1", "http2")
"""Through a server on the loopback: only with `-m remote`, as it is the same suite three times over."""
REMOTE_MODULES = {"test_order", "test_answers", "test_cancellation"}
"""What does not depend on the transport. How a link begins and ends over HTTP is shown in tests/http."""

MISHAPS = ("Task was destroyed", "was never retrieved", "was never awaited", "ResourceWarning")
"""What Python says on stderr when something was forgotten."""


def pytest_configure(config):
    config.addinivalue_line("markers", "over(*ways): the transports that a test runs over; without it, all")
    config.addinivalue_line("markers", "uvloop: a test that runs on uvloop as well")


def pytest_collection_finish():
    gc.freeze()  # what is loaded by now stays: collecting before each test has only that test's own to look at


def pytest_generate_tests(metafunc):
    if "connect" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("over")
        remote = metafunc.module.__name__.rpartition(".")[2] in REMOTE_MODULES and not mark
        ways = [*(mark.args if mark else WAYS)]
        if remote:
            ways += [pytest.param(way, marks=pytest.mark.remote) for way in REMOTE_WAYS]
        metafunc.parametrize("connect", ways, indirect=True)


def pytest_asyncio_loop_factories(config, item):
    factories = {"asyncio": ClockedLoop}
    if item.get_closest_marker("uvloop"):
        try:
            import uvloop
        except ImportError:
            return factories
        factories["uvloop"] = uvloop.new_event_loop
    return factories


class ClockedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward, so that no test has to wait for a deadline."""

    ahead = 0.0

    def time(self):
        return super().time() + self.ahead


class Clock:
    def __init__(self, loop):
        self._loop = loop

    async def advance(self, seconds):
        """Put the clock forward, and let happen what is due."""
        self._loop.ahead += seconds
        due = self._loop.create_future()
        self._loop.call_later(0, due.set_result, None)
        await due


@pytest.fixture
async def clock():
    return Clock(asyncio.get_running_loop())


class Backstage:
    """What the agent of a test has told, and its cues."""

    def __init__(self):
        self.story = []
        """Every word that was told, in order."""
        self.cue = None
        """Gives a cue to the agent."""
        self._told = defaultdict(asyncio.Queue)

    def hear(self, word, facts):
        self.story.append(word)
        self._told[word].put_nowait(facts)

    async def told(self, word):
        """Wait until the agent has told this, and give the facts that it told with it."""
        try:
            async with asyncio.timeout(DEADLINE):
                return await self._told[word].get()
        except TimeoutError:
            raise AssertionError(f"the agent did not tell {word!r}, but {self.story}") from None


class Link:
    """A client of ours and an agent of ours, connected."""

    def __init__(self, client, backstage):
        self.client = client
        self.told = backstage.told
        self.cue = backstage.cue
        self.story = backstage.story

    @property
    def connection(self):
        return self.client.connection

    @property
    def statistics(self):
        return self.client.connection.statistics()


class ScriptedClient(ScriptedPeer):
    """A script that plays the client of an agent of ours."""

    def __init__(self, transport, backstage):
        super().__init__(transport, deadline=DEADLINE)
        self.told = backstage.told
        self.cue = backstage.cue
        self.story = backstage.story

    async def initialize(self):
        return await self.request("initialize", {"protocolVersion": 1})

    async def curtain(self):
        """All that the agent has told until now."""
        await self.request("_stage/curtain")
        await self.told("curtain")
        return [word for word in self.story if word != "curtain"]


class Connect:
    """See the top of this file."""

    def __init__(self, over):
        self.over = over

    @asynccontextmanager
    async def __call__(
        self, agent, client=None, *, initialize=True, declare=None, agent_options=None, transport=None, **options
    ):
        async with (
            self._agent(agent, agent_options, transport or {}) as (way, backstage),
            Peer(way, client, role="client", **options) as peer,
        ):
            if initialize:
                request = v1.InitializeRequest(1, declare or v1.ClientCapabilities())
                await peer.initialize(request, timeout=DEADLINE)
            yield Link(peer, backstage)

    @asynccontextmanager
    async def as_client(self, agent, *, initialize=True, transport=None, **agent_options):
        async with (
            self._agent(agent, agent_options, transport or {}) as (way, backstage),
            ScriptedClient(way, backstage) as script,
        ):
            if initialize:
                await script.initialize()
            yield script

    @asynccontextmanager
    async def as_agent(self, client=None, *, transport=None, capabilities=None, **options):
        if self.over in REMOTE_WAYS:
            pytest.skip("a script has no server")
        here, there = pair(**transport or {}) if self.over == "memory" else pipes(**transport or {})
        async with (
            ScriptedPeer(there, deadline=DEADLINE) as script,
            Peer(here, client, role="client", **options) as peer,
        ):
            if capabilities is not None:
                opening = asyncio.create_task(peer.initialize(v1.InitializeRequest(1)))
                declared = codec.plain(capabilities)
                call = await script.expect("initialize")
                script.answer(call, {"protocolVersion": 1, "agentCapabilities": declared})
                await opening
            yield script, peer

    @asynccontextmanager
    async def _agent(self, agent, options, transport):
        """A transport that leads to this agent, and what it tells."""
        play = {"memory": self._in_memory, "stdio": self._in_a_process}.get(self.over, self._behind_a_url)
        async with play(agent, options or {}, transport) as played:
            yield played

    @asynccontextmanager
    async def _in_memory(self, agent, options, transport):
        backstage = Backstage()
        stage = Stage(backstage.hear)
        backstage.cue = stage.cued
        here, there = pair(**{name: value for name, value in transport.items() if name == "high_water"})
        async with Peer(there, staged(agent, stage), **options_of("agent", **options)):
            yield here, backstage

    @asynccontextmanager
    async def _behind_a_url(self, agent, options, transport):
        backstage = Backstage()
        stage = Stage(backstage.hear)
        backstage.cue = stage.cued

        class Play(Host):
            name = agent.__name__

            async def serve(self, transport, owner):  # noqa: ARG002
                async with Peer(transport, staged(agent, stage), **options_of("agent", **options)) as peer:
                    await peer.connection.closed()

        async with serving(Play()) as server:
            if self.over == "websocket":
                yield WebSocketTransport(server.url.replace("http", "ws", 1), **transport), backstage
            else:
                yield HttpTransport(server.url, http2=self.over == "http2", **transport), backstage

    @asynccontextmanager
    async def _in_a_process(self, agent, options, transport):
        async with self.command(agent, options, transport) as (command, backstage):
            stderr = []
            yield ProcessTransport(command, on_stderr=stderr.append), backstage
            assert not [line for line in stderr if any(mishap in line for mishap in MISHAPS)], stderr

    @asynccontextmanager
    async def command(self, agent, options=None, transport=None):
        """The command that plays this agent over its standard streams, and what it tells."""
        backstage = Backstage()
        async with AsyncExitStack() as stack:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="accord-"))) / "stage"
            backstage.cue = await stack.enter_async_context(backstage_door(path, backstage))
            given = {
                "module": agent.__globals__["__file__"],
                "agent": agent.__name__,
                "stage": str(path),
                "uvloop": type(asyncio.get_running_loop()).__module__.startswith("uvloop"),
                "transport": transport or {},
                "options": options or {},
            }
            yield [sys.executable, staging.__file__, json.dumps(given)], backstage


@asynccontextmanager
async def backstage_door(path, backstage):
    """Where an agent in a process of its own comes to tell and to get its cues; gives the way to cue it."""
    arrived = asyncio.get_running_loop().create_future()
    early = []

    async def serve(reader, writer):
        arrived.set_result(writer)
        for cue in early:
            writer.write(json.dumps(cue).encode() + b"\n")
        async for line in reader:
            backstage.hear(*json.loads(line))
        writer.close()

    def cue(word):
        if arrived.done():
            arrived.result().write(json.dumps(word).encode() + b"\n")
        else:
            early.append(word)

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield cue
    finally:
        server.close()
        if arrived.done():
            arrived.result().close()
            await arrived.result().wait_closed()


def pipes(**options):
    """Both ends of a link through two pipes of this process."""
    (one_reads, other_writes), (other_reads, one_writes) = os.pipe(), os.pipe()
    return StdioTransport(one_reads, one_writes, **options), StdioTransport(other_reads, other_writes, **options)


@pytest.fixture
def connect(request):
    return Connect(request.param)


@pytest.fixture(autouse=True)
async def nothing_is_left(caplog):
    """No task outlives the test that it belongs to, and nothing is forgotten."""
    gc.collect()  # what an earlier test left for the collector would speak up in this one
    caplog.set_level(logging.INFO, "accord")
    tasks = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()} - tasks
    if left:
        await asyncio.wait(left, timeout=0)  # what ends by itself is not left
    assert {task for task in left if not task.done()} == set()
    assert [record for record in caplog.get_records("call") if record.name == "asyncio"] == []
