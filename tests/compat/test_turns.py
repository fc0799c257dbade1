"""Turns between the official SDK and ours: each client with each agent, in two processes."""

import asyncio
import importlib
import sys
from pathlib import Path

import acp
import pytest

import accord
from accord.compat import acp as ours

AGENT = str(Path(__file__).with_name("sdk_agent.py"))


class Client:
    """A client of either SDK."""

    def __init__(self, sdk):
        self.sdk = sdk
        self.updates = []
        self.files = {"/a": "text"}
        self.asked = []
        self.thinks = asyncio.Event()

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)
        if update.session_update == "agent_thought_chunk":
            self.thinks.set()

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append((tool_call, options))
        schema = importlib.import_module(f"{self.sdk.__name__}.schema")
        outcome = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return self.sdk.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, session_id, path, line=None, limit=None, **kwargs):
        assert (line, limit) == (None, 3)
        return self.sdk.ReadTextFileResponse(content=self.files[path])

    async def write_text_file(self, session_id, path, content, **kwargs):
        self.files[path] = content


@pytest.fixture(params=[(ours, "ours"), (ours, "theirs"), (acp, "ours")], ids=["both", "client", "agent"])
async def session(request):
    sdk, agent = request.param
    client = Client(sdk)
    async with sdk.spawn_agent_process(client, sys.executable, AGENT, agent) as (connection, _):
        await connection.initialize(protocol_version=1)
        opened = await connection.new_session(cwd="/work", mcp_servers=[], color="red")
        assert opened.session_id == "in /work, {'color': 'red'}"

        def prompt(text):
            return connection.prompt(session_id=opened.session_id, prompt=[sdk.text_block(text)])

        yield client, connection, prompt, opened.session_id


async def test_a_stream_arrives_whole_and_in_order(session):
    client, _, prompt, _ = session
    assert (await prompt("stream")).stop_reason == "end_turn"
    assert "".join(update.content.text for update in client.updates) == "".join(f"{it} " for it in range(200))


async def test_a_tool_call_asks_reads_and_writes_through_the_client(session):
    client, _, prompt, _ = session
    await prompt("ask")
    [(tool_call, options)] = client.asked
    assert (tool_call.title, options[0].kind) == ("Write", "allow_once")
    assert not hasattr(tool_call, "session_update")
    start, done = client.updates
    assert (start.content[0].old_text, start.content[0].new_text) == ("old", "new")
    assert (done.status, done.raw_output) == ("completed", {"option": "yes"})
    assert client.files["/b"] == "text"


async def test_a_cancelled_turn_ends(session):
    client, connection, prompt, session_id = session
    turn = asyncio.create_task(prompt("wait"))
    await client.thinks.wait()
    await connection.cancel(session_id=session_id)
    assert (await turn).stop_reason == "cancelled"


async def test_an_error_has_its_code_and_its_data(session):
    client, _, prompt, _ = session
    with pytest.raises(client.sdk.RequestError) as failed:
        await prompt("fail")
    assert failed.value.to_error_obj() == {
        "code": -32603,
        "message": "Internal error",
        "data": {"details": "the model is gone"},
    }
    with pytest.raises(client.sdk.RequestError, match="Authentication required") as refused:
        await prompt("refuse")
    assert (refused.value.code, refused.value.data) == (-32000, {"method": "key"})


async def test_an_extension_is_answered(session):
    _, connection, _, _ = session
    assert await connection.ext_method("example.com/ask", {"a": 1}) == {"method": "example.com/ask", "params": {"a": 1}}


async def test_our_own_client_takes_such_an_agent_through_a_turn(tmp_path):
    async with accord.connect([sys.executable, AGENT, "ours"], accord.Client("test")) as agent:
        session = await agent.new_session(tmp_path)
        outcome = await session.prompt("stream")
        assert outcome.text.split() == [str(number) for number in range(200)]


async def test_requests_fail_when_the_agent_ends():
    client = Client(ours)
    async with ours.spawn_agent_process(client, sys.executable, AGENT, "ours") as (connection, process):
        await connection.initialize(protocol_version=1)
        opened = await connection.new_session(cwd="/", mcp_servers=[])
        turn = asyncio.create_task(connection.prompt(session_id=opened.session_id, prompt=[ours.text_block("wait")]))
        await client.thinks.wait()
        process.kill()
        with pytest.raises(ConnectionError, match="Connection closed"):
            await turn
        with pytest.raises(ConnectionError, match="Connection closed"):
            await connection.new_session(cwd="/")


async def test_an_observer_sees_both_directions():
    seen = []
    options = {"observers": [seen.append]}
    async with ours.spawn_agent_process(Client(ours), sys.executable, AGENT, "ours", **options) as (connection, _):
        await connection.initialize(protocol_version=1)
    assert [(event.direction.value, sorted(event.message)) for event in seen] == [
        ("outgoing", ["id", "jsonrpc", "method", "params"]),
        ("incoming", ["id", "jsonrpc", "result"]),
    ]
