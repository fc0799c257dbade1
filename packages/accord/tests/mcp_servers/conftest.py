"""Real MCP servers, and a session in front of them."""

import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import accord
from accord import v1
from accord.mcp import McpServers, Surroundings
from accord.testing import connected
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401 - fixtures

HERE = Path(__file__).parent
ALL_ELICITATION = v1.ElicitationCapabilities(v1.ElicitationFormCapabilities(), v1.ElicitationUrlCapabilities())


@pytest.fixture
def as_process():
    """Describes a server that is started as a process."""

    def describe(name, script="offering_server.py", env=None):
        variables = [v1.EnvVariable(key, value) for key, value in (env or {}).items()]
        return v1.McpServerStdio(name, sys.executable, [str(HERE / script)], variables)

    return describe


@pytest.fixture
def over_http():
    """Starts the offering server over HTTP; its URL."""
    started = []

    def start(kind):
        process = subprocess.Popen(
            [sys.executable, HERE / "offering_server.py", kind], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()


class Session:
    """MCP servers, and the client they can ask."""

    def __init__(self, servers, questions, failures):
        self.servers = servers
        self.questions = questions
        self.failures = failures

    async def run(self, name, **arguments):
        return await self.servers.run(await self.servers.tool(name), arguments, tool_call_id=v1.ToolCallId("call-1"))


@pytest.fixture
def session_with(tmp_path):
    """`async with session_with(server, ...) as session`: connected, with a client that answers with `answer`."""

    @asynccontextmanager
    async def session_with(*servers, answer=None, elicitation=ALL_ELICITATION, deadline=120):
        questions, failures = [], []
        client = accord.Handlers()

        @client.on(v1.CreateElicitationRequest)
        def elicit(request):
            questions.append(request)
            return answer or v1.ElicitationDeclineAction()

        @client.on(v1.CompleteElicitationNotification)
        def complete(notification):
            questions.append(notification)

        async def failed(failure):
            failures.append(failure)

        declared = v1.ClientCapabilities(elicitation=elicitation)
        async with connected(client=client, client_capabilities=declared) as link:
            surroundings = Surroundings(link.agent, v1.SessionId("s"), [str(tmp_path)])
            connection = McpServers(servers, surroundings, deadline=deadline, on_failure=failed)
            connection.start()
            try:
                yield Session(connection, questions, failures)
            finally:
                await connection.close()

    return session_with
