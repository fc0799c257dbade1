"""One `connect` for every test, over every link (memory, stdio, WebSocket, HTTP/1.1, HTTP/2, hosts), in both versions.

| | the other side | memory | stdio | WebSocket, HTTP |
|---|---|---|---|---|
| `connect(agent, client)` | our agent, our client | one loop | the agent in a process | one loop, our server |
| `connect.as_client(agent)` | a script is the client | one loop | the agent in a process | one loop, our server |
| `connect.as_agent(client)` | a script is the agent | one loop | one loop, through pipes | one loop, our server |

A test is written once and runs over all of them. What it needs of a link that not every link has, it declares:
`@pytest.mark.needs("a process")`; `NEEDS` has the words, and `SPEAKS` those for what not every version has. An ordinary
run tries version 2 over memory only, and over memory only those marked `cases`, which are many cases of one thing;
`-m links` runs everything over everything. Those marked `uvloop` run on uvloop as well.

Where HTTP differs by its nature, it does so here and not in the tests: a link begins with `initialize`, so every link
does unless a test says `initialize=False`; and what is posted for several sessions may come in any order, so a script
that plays the agent takes what it expects from any session (`PostedTo`).
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
from zlib import crc32

import pytest

from accord.client.handshake import Offer, negotiate
from accord.engine.handlers import Handlers
from accord.engine.incoming_requests import session_of
from accord.engine.peer import Peer
from accord.hosts.hosts import Hosts
from accord.http import HttpTransport, serving
from accord.http.server.agent_host import Host
from accord.jsonrpc.wire_messages import RequestFrame, ResponseFrame, parse
from accord.schema import codec, v1
from accord.testing import ScriptedPeer
from accord.transports.memory_transport import pair
from accord.transports.process_transport import ProcessTransport
from accord.transports.stdio_transport import StdioTransport
from accord.transports.websocket_client import WebSocketTransport
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401 - fixtures
from tests.interaction import staging
from tests.interaction.staging import Stage, options_of, staged
from tests.interaction.versions import spoken

HERE = Path(__file__).parent

DEADLINE = float(os.environ.get("ACCORD_TEST_DEADLINE", "30"))
"""Seconds until a wait for something that should happen is a failure; generous, as machines are shared."""

WAYS = ("memory", "stdio", "websocket", "http1", "http2", "hosts")
REMOTE = frozenset({"websocket", "http1", "http2", "hosts"})
"""Through a server of ours on the loopback; `hosts` are two, of which one forwards every request to the other."""

WITHOUT_A_HOP = frozenset(WAYS) - {"hosts"}

NEEDS = {
    "a process": {"stdio"},
    # How a program starts, which exit code it has, what lands on its stdout and how it dies by a signal.
    "the agent in this program": {"memory", *REMOTE},
    # The test reads what the agent has logged.
    "nothing in between": {"memory"},
    # What the other side does not read is not sent: no pipe, no socket and no server takes it in the meantime.
    "frames that can be skipped": {"stdio"},
    # Memory has no limit, WebSocket ends the link (RFC 6455, code 1009), HTTP refuses with 413: tests/http shows these.
    "an end of one half": {"stdio"},
    # A side whose input has ended may still speak; all others end both ways at once.
    "bad text that reaches the agent": {"memory", "stdio", "websocket"},
    # Over HTTP the server answers it itself, with 400, and the agent does not hear of it.
    "a link before initialize": {"memory", "stdio", "websocket"},
    # Over HTTP, `initialize` is what makes a link: before it there is nobody who could say something, or go away.
    "delivery outside of tasks": {"memory", "stdio"},
    # A link over a server is read by tasks, so there is one in which a handler is called.
    "a clock that can jump": WITHOUT_A_HOP,
    # A hop has deadlines of its own. A jump passes them while a request is under way, which is then repeated a second
    # later.
    "one way for all requests": WITHOUT_A_HOP,
    # POSTs of different sessions have no order (docs/design/decisions.md), and come in another one through a hop.
    "output that is taken at once": WITHOUT_A_HOP,
    # Through a hop, a POST is answered later than the message that it carries.
}
"""What a test may need of its link, and which links have it."""

SPEAKS = {
    "capabilities of version 1": {1},
    # Version 2 has other ones, which our client and our agent read in the words of version 1: tests/client/v2 and
    # tests/agent/v2 show both, and that what needs a capability is refused without it.
    "a handshake that comes once": {1},
    # In version 2 `initialize` may be repeated: tests/agent/v2/test_negotiation.py.
    "updates of version 1": {1},
    # `current_mode_update` and its older form; in version 2 a mode is a config option.
    "closed sets of words": {1},
    # In version 2 every set of words is open.
    "Peer.initialize": {1},
    # It asks for version 1. How a client asks for version 2 is in tests/client/v2/test_negotiation.py.
}
"""What a test may need of the protocol's version, and which versions have it."""

MISHAPS = ("Task was destroyed", "was never retrieved", "was never awaited", "ResourceWarning")
"""What Python says on stderr when something was forgotten."""


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(*what): what a test needs of its link; see NEEDS in tests/interaction")
    config.addinivalue_line("markers", "cases: many cases of one thing; over memory, and with -m links over another")
    config.addinivalue_line("markers", "uvloop: a test that runs on uvloop as well")


def pytest_collection_finish():
    gc.freeze()  # what is loaded by now stays: collecting before each test has only that test's own to look at


def pytest_generate_tests(metafunc):
    if "connect" in metafunc.fixturenames:
        ordinary = {("memory", 1), ("memory", 2)}
        if not metafunc.definition.get_closest_marker("cases"):
            ordinary.add(("stdio", 1))
        every = [(way, version) for way in WAYS for version in (1, 2)]
        if "links" not in metafunc.config.option.markexpr:
            every = [it for it in every if it in ordinary]
        beyond = (pytest.mark.links, pytest.mark.all_links)
        ways = [pytest.param(it, marks=() if it in ordinary else beyond, id=named(*it)) for it in every]
        metafunc.parametrize("connect", ways, indirect=True)


def named(way, version):
    return way if version == 1 else f"{way}-v{version}"


def pytest_collection_modifyitems(config, items):
    here = f"{HERE}{os.sep}"
    items[:] = [item for item in items if not (str(item.path).startswith(here) and lacks(item))]
    if "all_links" in config.option.markexpr:
        return
    alike = defaultdict(list)
    for item in items:
        if str(item.path).startswith(here) and item.get_closest_marker("links"):
            way, version = item.callspec.params["connect"]
            if version == 2 or item.get_closest_marker("cases"):
                alike[item.path, item.name.replace(named(way, version), "", 1)].append(item)
    chosen = {id(links[crc32(name.encode()) % len(links)]) for (_, name), links in alike.items()}
    unchosen = {id(item) for links in alike.values() for item in links} - chosen
    items[:] = [item for item in items if id(item) not in unchosen]


def lacks(item):
    """Whether this test needs what its link or its version does not have."""
    needs = [what for mark in item.iter_markers("needs") for what in mark.args]
    if not needs:
        return False
    way, version = item.callspec.params["connect"]
    return any((version not in SPEAKS[what]) if what in SPEAKS else (way not in NEEDS[what]) for what in needs)


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
        due = asyncio.Event()
        self._loop.call_later(0, due.set)
        await due.wait()


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


class Script(ScriptedPeer):
    """One side of a link, played by a script, and what is known of the other side."""

    def __init__(self, transport, everything_sent):
        super().__init__(transport, deadline=DEADLINE)
        self._everything_sent = everything_sent

    async def enter(self, arrived):
        """Be there once there is a link."""
        self.transport = await arrived
        await self.open()

    async def leave(self, entering):
        entering.cancel()
        if self.transport is not None:
            await self.close()

    async def expect_silence(self):
        await self._everything_sent()
        await super().expect_silence()


class ScriptedClient(Script):
    """A script that plays the client of an agent of ours."""

    def __init__(self, transport, backstage):
        super().__init__(transport, transport.flush)
        self.told = backstage.told
        self.cue = backstage.cue
        self.story = backstage.story

    async def initialize(self):
        return await self.request("initialize", spoken.hello)

    async def curtain(self):
        """All that the agent has told until now."""
        await self.transport.flush()
        await self.request("_stage/curtain")
        await self.told("curtain")
        return [word for word in self.story if word != "curtain"]


class PostedTo(Script):
    """A script that plays an agent behind HTTP, where only the messages of one session come in order.

    What it expects may have been overtaken by what belongs to another session.
    """

    def __init__(self, transport, everything_sent):
        super().__init__(transport, everything_sent)
        self._sessions = {}
        """The session of each request that was sent, as the answer to it belongs there."""

    def send_raw(self, *frames):
        for frame in frames:
            message = parse(frame)
            if isinstance(message, RequestFrame):
                self._sessions[message.id] = session_of(message.params)
        super().send_raw(*frames)

    async def expect(self, method):
        await self._bring_forward(lambda message: getattr(message, "method", None) == method)
        return await super().expect(method)

    async def expect_answer(self, id):  # noqa: A002
        await self._bring_forward(lambda message: isinstance(message, ResponseFrame) and message.id == id)
        return await super().expect_answer(id)

    async def expect_error(self, id, code=None):  # noqa: A002
        await self._bring_forward(lambda message: isinstance(message, ResponseFrame) and message.id == id)
        return await super().expect_error(id, code)

    async def expect_silence(self):
        asked = f"silence-{len(self.conversation)}"
        self.call("_accord/silence", id=asked)
        await self._bring_forward(lambda message: isinstance(message, ResponseFrame) and message.id == asked)
        await super().expect_answer(asked)
        await self._everything_sent()
        if self._unread:
            raise self._failed("expected silence")

    async def _bring_forward(self, fits):
        """Wait for a message of which this is true, and let it be the next, if it is the first of its session."""
        while True:
            sessions = set()
            for frame in self._unread:
                message = parse(frame)
                session = self._session_of(message)
                if session not in sessions and fits(message):
                    self._unread.remove(frame)
                    self._unread.appendleft(frame)
                    return
                sessions.add(session)
            if self.end is not None:
                return
            await self._news("what another session has overtaken" if self._unread else "a message")

    def _session_of(self, message):
        return self._sessions.get(message.id) if isinstance(message, ResponseFrame) else session_of(message.params)


class Connect:
    """See the top of this file."""

    def __init__(self, over, version):
        self.over = over
        spoken.version = version

    @property
    def a_lot(self):
        """Text of which a hundred do not fit into what a link takes when nobody reads: sockets have large buffers."""
        if self.over == "hosts":
            return "x" * 400_000  # two hops have two sockets, which grow to 20 MB on a busy machine
        return "x" * (100_000 if self.over in REMOTE else 5_000)

    def has(self, what):
        """Whether this link has one of NEEDS, for the part of a test that needs it."""
        return self.over in NEEDS[what]

    @asynccontextmanager
    async def __call__(
        self, agent, client=None, *, initialize=True, declare=None, agent_options=None, transport=None, **options
    ):
        async with (
            self._agent(agent, agent_options, transport or {}) as (way, backstage),
            Peer(way, client, role="client", **options) as peer,
        ):
            if initialize:
                await self._agree(peer, client, declare or v1.ClientCapabilities())
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
    async def as_agent(self, client=None, *, initialize=True, transport=None, capabilities=None, **options):
        """A script, and our client that talks to it; what `initialize` says is not part of the conversation."""
        async with self._stage_door(transport or {}) as (here, arrived), AsyncExitStack() as leaving:
            script = (PostedTo if self.over in ("http1", "http2") else Script)(None, here.flush)
            entering = asyncio.create_task(script.enter(arrived))
            leaving.push_async_callback(script.leave, entering)
            peer = await leaving.enter_async_context(Peer(here, client, role="client", **options))
            if self.has("a link before initialize"):
                await entering
            if initialize:
                opening = asyncio.create_task(self._agree(peer, client, v1.ClientCapabilities()))
                call = await script.expect("initialize")
                script.answer(call, spoken.welcome(codec.plain(capabilities or {})))
                await opening
                script.conversation.clear()
            yield script, peer

    async def _agree(self, peer, client, declared):
        """Open the connection as our clients do in this version."""
        if spoken.version == 1:
            await peer.initialize(v1.InitializeRequest(1, declared), timeout=DEADLINE)
        else:
            offer = Offer((2,), v1.Implementation("test", "1"), declared)
            await negotiate(peer, offer, lambda _: client or Handlers(), DEADLINE)

    @asynccontextmanager
    async def _stage_door(self, options):
        """A transport for our client, and, once it is there, the one on which a script is its agent."""
        arrived = asyncio.get_running_loop().create_future()
        if self.over in REMOTE:
            gone = asyncio.Event()

            class Door(Host):
                name = "script"

                async def serve(self, transport, owner):  # noqa: ARG002
                    arrived.set_result(transport)
                    await gone.wait()

            async with self._served(Door()) as server:
                try:
                    yield self._way_to(server, options), arrived
                finally:
                    gone.set()
        else:
            here, there = pair(**options) if self.over == "memory" else pipes(**options)
            arrived.set_result(there)
            yield here, arrived

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
        handlers = staged(agent, stage)

        class Play(Host):
            name = agent.__name__

            async def serve(self, transport, owner):  # noqa: ARG002
                async with Peer(transport, handlers, **options_of("agent", **options)) as peer:
                    await peer.connection.closed()

        async with self._served(Play()) as server:
            yield self._way_to(server, transport), backstage

    @asynccontextmanager
    async def _served(self, host):
        """A server of this host, or one that forwards everything to it."""
        async with AsyncExitStack() as stack:
            if self.over != "hosts":
                yield await stack.enter_async_context(serving(host))
                return
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="accord-"))
            # A lease so long that no clock of a test reaches its end.
            for weight in (1, 0):
                hosts = Hosts(Path(folder) / "hosts.sqlite3", weight=weight, lease=1_000_000)
                server = await stack.enter_async_context(serving(host, hosts=hosts))
            yield server

    def _way_to(self, server, options):
        if self.over == "websocket":
            return WebSocketTransport(server.url.replace("http", "ws", 1), **options)
        return HttpTransport(server.url, http2=self.over == "http2", **options)

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
                "version": spoken.version,
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
    yield Connect(*request.param)
    spoken.version = 1


@pytest.fixture(autouse=True)
async def nothing_is_left(caplog):
    """No task outlives the test that it belongs to, and nothing is forgotten."""
    gc.collect()  # what an earlier test left for the collector would speak up in this one
    gc.freeze()  # what is alive now need not be looked at again by each later test
    caplog.set_level(logging.INFO, "accord")
    tasks = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()} - tasks
    if left:
        await asyncio.wait(left, timeout=0)  # what ends by itself is not left
    assert {task for task in left if not task.done()} == set()
    assert [record for record in caplog.get_records("call") if record.name == "asyncio"] == []
