"""`serve(agent)`: an agent and a client of ours in one loop. The client is a `Peer` that keeps what it hears."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from contextlib import asynccontextmanager

import pytest

import accord
from accord import Handlers, Peer, StdioTransport, memory_pair, v1
from accord.testing import ScriptedPeer
from tests.agent import feature_agents
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401 - fixtures
from tests.waiting import DEADLINE

"""Seconds until a wait for something that should happen is a failure; generous, as machines are shared."""


class Editor(Peer):
    """A client, and what it has heard."""

    def __init__(self, transport, handlers, **options):
        handlers.on(v1.SessionNotification)(self.hear)
        super().__init__(transport, handlers, role="client", **options)
        self.updates = []
        self._heard = asyncio.Event()

    def hear(self, notification):
        self.updates.append(notification.update)
        self._heard.set()

    async def heard(self, wanted):
        """Wait until an update is there that is of this class, or of which this is true; give it."""
        fits = wanted if not isinstance(wanted, type) else lambda update: isinstance(update, wanted)
        async with asyncio.timeout(DEADLINE):
            while not (found := [update for update in self.updates if fits(update)]):
                self._heard.clear()
                await self._heard.wait()
        return found[0]

    def of(self, cls):
        """The updates of this class."""
        return [update for update in self.updates if isinstance(update, cls)]

    @property
    def text(self):
        """What the agent said."""
        return "".join(update.content.text for update in self.of(v1.AgentMessageChunk))

    async def open(self, cwd="/project", **fields):
        """A new session's id."""
        return (await self.request(v1.NewSessionRequest(cwd, [], **fields), timeout=DEADLINE)).session_id

    async def prompt(self, session_id, *content):
        return await self.request(v1.PromptRequest.of(session_id, *content), timeout=DEADLINE)

    async def cancel(self, session_id):
        await self.notify(v1.CancelNotification(session_id))


@pytest.fixture
def serve():
    @asynccontextmanager
    async def serve(agent, handlers=None, *, declare=None, initialize=True, **options):
        here, there = memory_pair()
        serving = asyncio.create_task(agent.serve(there))
        handlers = handlers or Handlers()
        editor = Editor(here, handlers, **options)
        try:
            async with editor:
                if initialize:
                    request = v1.InitializeRequest(
                        1, declare or v1.ClientCapabilities(), v1.Implementation("editor", "1.0")
                    )
                    editor.agent = await editor.initialize(request, timeout=DEADLINE)
                yield editor
        finally:
            await asyncio.wait_for(serving, DEADLINE)

    return serve


@pytest.fixture
def scripted():
    """`scripted(agent)`: an agent, and a script that is its client."""

    @asynccontextmanager
    async def scripted(agent, capabilities=None, *, initialize=True):
        here, there = memory_pair()
        serving = asyncio.create_task(agent.serve(there))
        try:
            async with ScriptedPeer(here, deadline=DEADLINE) as client:
                if initialize:
                    await client.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities or {}})
                yield client
        finally:
            await asyncio.wait_for(serving, DEADLINE)

    return scripted


@pytest.fixture(params=["memory", "stdio", "memory, version 2", "stdio, version 2"])
def reach(request):
    """`reach(name, ...)`: a client of ours connected to an agent of `feature_agents`, in memory and in a process."""

    def reach(name, *given, **options):
        if "version 2" in request.param:
            options["versions"] = (2,)
        if "memory" in request.param:
            return accord.connect(feature_agents.AGENTS[name](), *given, **options)
        return accord.connect([sys.executable, feature_agents.__file__, name], *given, **options)

    return reach


@pytest.fixture(params=["memory", "stdio"])
def wire(request):
    """`wire(agent, capabilities)`: an agent and a script that is its client, in memory and over two pipes."""

    @asynccontextmanager
    async def wire(agent, capabilities=None):
        here, there = memory_pair() if request.param == "memory" else pipes()
        serving = asyncio.create_task(agent.serve(there))
        try:
            async with ScriptedPeer(here, deadline=DEADLINE) as client:
                await client.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities or {}})
                opened = client.call("session/new", {"cwd": "/project", "mcpServers": []})
                client.session = (await client.expect_result(opened))["sessionId"]
                yield client
        finally:
            await asyncio.wait_for(serving, DEADLINE)

    return wire


def pipes():
    """Both ends of a link through two pipes of this process."""
    (one_reads, other_writes), (other_reads, one_writes) = os.pipe(), os.pipe()
    return StdioTransport(one_reads, one_writes), StdioTransport(other_reads, other_writes)


@pytest.fixture(autouse=True)
async def nothing_is_left(caplog):
    """No task outlives the test that it belongs to, and nothing is forgotten."""
    gc.collect()
    gc.freeze()  # what is alive now need not be looked at again by each later test
    caplog.set_level(logging.INFO, "accord")
    tasks = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()} - tasks
    if left:
        await asyncio.wait(left, timeout=0)
    assert {task for task in left if not task.done()} == set()
    assert [record for record in caplog.get_records("call") if record.name == "asyncio"] == []
