"""What the tests of lent services share: a session, a service behind a real connection, and no leaks."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import accord
from accord import v1
from accord.project.confined import Roots
from accord.session import ToolCallState
from tests.waiting import DEADLINE

"""Seconds until a wait for something that should happen is a failure."""


class Asking:
    """A session as services see it."""

    def __init__(self, cwd, *more, session_id="s1", agent="tester", program="/usr/bin/tester"):
        self.id = v1.SessionId(session_id)
        self.agent = agent
        self.program = program
        self.cwd = Path(cwd)
        self.roots = Roots([cwd, *more])
        self.tool_calls = {}

    def tool_call(self, tool_call_id):
        return self.tool_calls.get(tool_call_id)

    def fold(self, said):
        before = self.tool_calls.get(said.tool_call_id) or ToolCallState(said.tool_call_id)
        self.tool_calls[said.tool_call_id] = before.updated(said.as_update())
        return self.tool_calls[said.tool_call_id]


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def session(project):
    return Asking(project)


@pytest.fixture
def asking():
    return Asking


@asynccontextmanager
async def lending(*services, sessions, limits=None):
    """An agent's view of a client that lends these: the agent's peer, after the handshake."""
    known = {session.id: session for session in sessions}

    def session_of(session_id):
        if session_id not in known:
            raise accord.RequestError.not_found("no such session")
        return known[session_id]

    handlers, agent, capabilities = accord.Handlers(), accord.Handlers(), v1.ClientCapabilities()
    for service in services:
        service.register(handlers, session_of)
        capabilities = service.declare(capabilities)

    @agent.on(v1.InitializeRequest)
    def initialize(request):
        return v1.InitializeResponse(protocol_version=1)

    here, there = accord.memory_pair()
    async with (
        accord.Peer(there, agent, role="agent") as agents_peer,
        accord.Peer(here, handlers, role="client", limits=limits) as client,
    ):
        await client.initialize(v1.InitializeRequest(1, client_capabilities=capabilities))
        agents_peer.other = client
        try:
            yield agents_peer
        finally:
            for service in services:
                for session in sessions:
                    await service.release(session)


@pytest.fixture
def lend():
    return lending


@pytest.fixture
def within():
    """Fails when something that should happen does not."""

    async def within(awaitable):
        async with asyncio.timeout(DEADLINE):
            return await awaitable

    return within
