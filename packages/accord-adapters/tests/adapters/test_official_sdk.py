"""Programs of the official Python SDK on our engine: its own package, with our engine in its connections."""

import asyncio
import importlib
import inspect
import json
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import accord
from tests.waiting import eventually

acp = pytest.importorskip("acp")
official_sdk = importlib.import_module("accord_adapters.official_sdk")
Agent = importlib.import_module("tests.adapters.sdk_agent").Agent
AgentSideConnection = acp.agent.connection.AgentSideConnection  # without a warning
Connection = acp.connection.Connection
AllowedOutcome, TextContentBlock = acp.schema.AllowedOutcome, acp.schema.TextContentBlock

PROGRAM = str(Path(__file__).with_name("sdk_agent.py"))
ON_OURS = [sys.executable, "-m", "accord_adapters.official_sdk", PROGRAM]


@pytest.fixture(autouse=True)
def on_our_engine():
    """The SDK of this process runs on our engine during a test."""
    theirs = {name: value for name, value in vars(Connection).items() if inspect.isfunction(value)}
    streams = acp.stdio.stdio_streams
    official_sdk.install()
    yield
    for name in [name for name, value in vars(Connection).items() if inspect.isfunction(value)]:
        delattr(Connection, name)
    for name, value in theirs.items():
        setattr(Connection, name, value)
    acp.stdio.stdio_streams = streams


class Client:
    """A client that lends files, and notes what it is sent."""

    def __init__(self):
        self.updates = []
        self.files = {"/a": "text"}
        self.asked = []
        self.thinks = asyncio.Event()

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)
        if update.session_update == "agent_thought_chunk":
            self.thinks.set()

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append(tool_call.title)
        return acp.RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    async def read_text_file(self, session_id, path, line=None, limit=None, **kwargs):
        assert (line, limit) == (None, 3)
        return acp.ReadTextFileResponse(content=self.files[path])

    async def write_text_file(self, session_id, path, content, **kwargs):
        self.files[path] = content


@asynccontextmanager
async def streams():
    """Two ends of a socket, each as a writer and a reader of asyncio."""
    ends = [await asyncio.open_connection(sock=end) for end in socket.socketpair()]
    yield [(writer, reader) for reader, writer in ends]
    for _, writer in ends:
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def agent_alone(agent):
    """An agent's connection, and the raw end of its client."""
    async with streams() as (near, far), AgentSideConnection(agent, *near) as connection:
        yield connection, *far


@pytest.fixture
async def session():
    """A client's and an agent's connection, over a socket, with a session."""
    client, agent = Client(), Agent()
    async with (
        streams() as (near, far),
        AgentSideConnection(agent, *far),
        acp.connect_to_agent(client, *near) as connection,
    ):
        await connection.initialize(protocol_version=1)
        opened = await connection.new_session(cwd="/work", mcp_servers=[], color="red")
        assert opened.session_id == "in /work, {'color': 'red'}"
        yield client, agent, connection, opened.session_id


def prompt(connection, session_id, text):
    return connection.prompt(session_id=session_id, prompt=[TextContentBlock(type="text", text=text)])


def line(**message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


async def read(reader):
    return json.loads(await reader.readline())


async def test_a_stream_arrives_whole_and_in_order_before_its_answer(session):
    client, _, connection, session_id = session
    assert (await prompt(connection, session_id, "stream")).stop_reason == "end_turn"
    assert "".join(update.content.text for update in client.updates) == "".join(f"{it} " for it in range(200))


async def test_a_tool_call_asks_reads_and_writes_through_the_client(session):
    client, _, connection, session_id = session
    await prompt(connection, session_id, "ask")
    assert client.asked == ["Write"]
    assert [update.status for update in client.updates] == [None, "completed"]
    assert client.files["/b"] == "text"


async def test_a_cancelled_turn_ends(session):
    client, _, connection, session_id = session
    turn = asyncio.create_task(prompt(connection, session_id, "wait"))
    await client.thinks.wait()
    await connection.cancel(session_id=session_id)
    assert (await turn).stop_reason == "cancelled"


async def test_cancelling_the_caller_of_a_request_stops_its_handler(session):
    client, agent, connection, session_id = session
    turn = asyncio.create_task(prompt(connection, session_id, "wait"))
    await client.thinks.wait()
    turn.cancel()
    await agent.stopped.wait()
    assert not agent.cancelled.is_set()
    assert (await prompt(connection, session_id, "stream")).stop_reason == "end_turn"


async def test_an_error_has_its_code_and_its_data(session):
    _, _, connection, session_id = session
    with pytest.raises(acp.RequestError) as failed:
        await prompt(connection, session_id, "fail")
    assert failed.value.to_error_obj() == {
        "code": -32603,
        "message": "Internal error",
        "data": {"details": "the model is gone"},
    }
    with pytest.raises(acp.RequestError, match="Authentication required") as refused:
        await prompt(connection, session_id, "refuse")
    assert (refused.value.code, refused.value.data) == (-32000, {"method": "key"})


@pytest.mark.parametrize("text", ["plain", "\ud83d", "\x00"], ids=["text", "half an emoji", "a zero byte"])
async def test_an_extension_carries_any_value_of_json(session, text):
    _, _, connection, _ = session
    params = {"text": text, "large": 2**70, "nothing": None}
    assert await connection.ext_method("example.com/ask", params) == {"method": "example.com/ask", "params": params}


async def test_an_observer_sees_both_directions():
    seen = []
    async with (
        streams() as (near, far),
        AgentSideConnection(Agent(), *far),
        acp.connect_to_agent(Client(), *near, observers=[seen.append]) as connection,
    ):
        await connection.initialize(protocol_version=1)
    assert [(event.direction.value, sorted(event.message)) for event in seen] == [
        ("outgoing", ["id", "jsonrpc", "method", "params"]),
        ("incoming", ["id", "jsonrpc", "result"]),
    ]


async def test_bad_input_does_not_end_the_connection():
    async with agent_alone(Agent()) as (_, writer, reader):
        writer.write(b'not json\n[]\n{"jsonrpc":"2.0"}\n' + line(id=1, method="initialize", params={}))
        writer.write(line(id=2, method="no/such", params={}) + line(id=2, method="no/such"))
        writer.write(line(id=3, method="initialize", params={"protocolVersion": 1}))
        answers = {}
        while 3 not in answers:
            message = await read(reader)
            answers.setdefault(message["id"], []).append(message)
    assert [answer["error"]["code"] for answer in answers[1]] == [-32602]
    assert answers[1][0]["error"]["data"]["errors"][0]["loc"] == ["protocolVersion"]
    assert answers[2][0]["error"]["code"] == -32601
    assert answers[3][0]["result"]["protocolVersion"] == 1


async def test_a_request_that_is_still_open_at_the_end_is_answered_once():
    agent = Agent()
    async with agent_alone(agent) as (connection, writer, reader):
        params = {"sessionId": "s", "prompt": [{"type": "text", "text": "wait"}]}
        writer.write(line(id=1, method="session/prompt", params=params))
        assert (await read(reader))["method"] == "session/update"
        await connection.close()
        assert agent.stopped.is_set()
        answer = await read(reader)
        assert (answer["id"], answer["error"]["code"]) == (1, -32800)


async def test_an_agent_waits_while_its_client_does_not_read():
    async with agent_alone(agent := Agent()) as (_, _, reader):
        sent = []

        async def talk():
            for number in range(1000):
                await agent.say("s", "x" * 10_000)
                sent.append(number)

        talking = asyncio.create_task(talk())  # the reader takes as much as its limit, then the kernel does
        await eventually(lambda: agent.client._conn._transport.unsent > 64 * 1024)
        held = len(sent)
        for _ in range(100):
            await asyncio.sleep(0)
        assert held <= len(sent) < 1000
        for _ in range(1000):
            await reader.readline()
        await talking
        assert len(sent) == 1000


async def test_silence_for_longer_than_the_receive_timeout_ends_the_connection():
    async with streams() as (near, _):
        connection = Connection(lambda *_: None, *near, listening=False, receive_timeout=0.01)
        request = asyncio.create_task(connection.send_request("x"))
        with pytest.raises(acp.RequestError) as ended:
            await connection.main_loop()
        assert ended.value.data == {"details": "Agent timeout"}
        with pytest.raises(ConnectionError, match="no message arrived"):
            await request
        await connection.close()


class Messages:
    """Moves messages as the SDK's own transports do, and refuses those with the method `bad`."""

    def __init__(self):
        self.sent = []
        self.arriving = asyncio.Queue()
        self.is_closed = False

    async def send(self, message):
        if message["method"] == "bad":
            raise OSError("the server said no")
        self.sent.append(message)
        if "id" in message:
            self.arriving.put_nowait({"jsonrpc": "2.0", "id": message["id"], "result": {"ok": True}})

    async def receive(self):
        return await self.arriving.get()

    async def close(self):
        self.is_closed = True


@pytest.mark.skipif("Transport" not in inspect.getsource(acp.core), reason="this release knows streams only")
async def test_messages_go_over_an_object_of_the_program():
    messages = Messages()
    async with Connection(lambda *_: None, messages) as connection:
        with pytest.raises(OSError, match="the server said no"):
            await connection.send_request("bad")
        await connection.send_notification("bad")
        assert await connection.send_request("good", {"a": 1}) == {"ok": True}
        messages.arriving.put_nowait(None)
        with pytest.raises(ConnectionError, match="Connection closed"):
            await connection.send_request("late")
    assert [message["method"] for message in messages.sent] == ["good", "late"]
    assert messages.is_closed


async def test_parts_of_the_sdk_s_own_engine_are_refused_by_name():
    with pytest.raises(TypeError, match="has no use for queue: leave it out"):
        Connection(lambda *_: None, Messages(), queue=object())


async def test_our_own_client_takes_such_an_agent_through_a_turn_past_a_stray_print(tmp_path):
    async with accord.connect(ON_OURS, accord.Client("test")) as agent:
        session = await agent.new_session(tmp_path)
        outcome = await session.prompt("stream")
        assert outcome.text.split() == [str(number) for number in range(200)]
        assert "a stray line" in agent.stderr_tail()


async def test_requests_fail_when_the_agent_s_process_ends():
    client = Client()
    async with acp.spawn_agent_process(client, sys.executable, PROGRAM) as (connection, process):
        await connection.initialize(protocol_version=1)
        opened = await connection.new_session(cwd="/", mcp_servers=[])
        turn = asyncio.create_task(prompt(connection, opened.session_id, "wait"))
        await client.thinks.wait()
        process.kill()
        with pytest.raises(ConnectionError, match="Connection closed"):
            await turn
        with pytest.raises(ConnectionError, match="Connection closed"):
            await connection.new_session(cwd="/")


PRINTS = """\
import sys
from acp.connection import Connection
from accord_adapters import official_sdk
official_sdk.install()
print(Connection.send_request.__module__, sys.argv[1:])
"""


@pytest.mark.parametrize("named", [["program.py"], ["-m", "program"]], ids=["file", "module"])
def test_a_program_runs_unchanged_with_its_arguments(named, tmp_path):
    (tmp_path / "program.py").write_text(PRINTS)
    command = [sys.executable, "-m", "accord_adapters.official_sdk", *named, "-x", "y"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.stdout, done.stderr) == ("accord_adapters.official_sdk ['-x', 'y']\n", "")


@pytest.mark.parametrize(
    ("arguments", "says"), [([], "usage: python -m"), (["gone.py"], "gone.py is not a file; usage: python -m")]
)
def test_a_program_that_is_not_there_is_named(arguments, says):
    with pytest.raises(SystemExit, match=says):
        official_sdk.main(arguments)
