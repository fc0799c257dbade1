"""MCP servers of a client's program, for agents that can only start an MCP server as a process."""

import asyncio
import os
import sys
from pathlib import Path

import msgspec
import pytest

import accord
from accord import v1

AGENT = """
import accord
from accord import v1

def without_acp(declared):
    return v1.AgentCapabilities(load_session=declared.load_session)

agent = accord.Agent("plain", capabilities=without_acp)


@agent.on_prompt
async def reply(turn):
    try:
        result = await turn.session.mcp.call(turn, turn.text, {"left": 2, "right": 3})
    except accord.McpServerError as error:
        await turn.say("error: " + error.problem)
    else:
        await turn.say(result.text)


agent.run()
"""


def add(left: int, right: int) -> int:
    """The sum."""
    return left + right


@pytest.fixture
def plain(tmp_path):
    """The command of an agent that takes no servers over ACP."""
    (tmp_path / "agent.py").write_text(AGENT)
    return [sys.executable, str(tmp_path / "agent.py")]


def idle_agent():
    """An agent of this process that takes no servers over ACP."""
    agent = accord.Agent("plain", capabilities=lambda _: v1.AgentCapabilities())

    @agent.on_prompt
    async def reply(turn): ...

    return agent


async def lent(server):
    """The connection to an agent of this process without ACP servers, and the description that it got."""
    got = []
    agent = idle_agent()

    @agent.on_session
    def keep(session):
        got.extend(session.mcp_servers)

    block = accord.connect(agent)
    remote = await block.__aenter__()
    await remote.new_session("/", mcp_servers=[server])
    return block, got[0]


async def start(server, **environment):
    """The process that this description describes."""
    variables = {variable.name: variable.value for variable in server.env} | environment
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        server.command, *server.args, stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ | variables
    )


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


async def ask(process, message):
    process.stdin.write(msgspec.json.encode(message) + b"\n")
    return msgspec.json.decode(await process.stdout.readline())


async def test_an_agent_without_acp_reaches_the_tools(plain):
    async with accord.connect(plain) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(add)])
        assert (await session.prompt("add")).text == "5"


async def test_a_tool_of_an_agent_that_is_killed_ends_and_nothing_is_left(plain):
    running, ended = asyncio.Event(), asyncio.Event()

    async def wait(left: int, right: int) -> int:
        running.set()
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    async with accord.connect(plain) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(wait)])
        reply = session.prompt("wait")
        async with asyncio.timeout(30):
            await running.wait()
            remote.kill()
            with pytest.raises(accord.ConnectionClosed):
                await reply
            await ended.wait()


async def test_the_older_handshake_is_served(tmp_path):
    block, server = await lent(accord.tools(add))
    process = await start(server)
    assert (await ask(process, INITIALIZE))["result"]["protocolVersion"] == "2025-06-18"
    process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    call = {"name": "add", "arguments": {"left": 2, "right": 3}}
    answer = await ask(process, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
    assert answer["result"]["structuredContent"] == {"result": 5}
    process.stdin.close()
    assert await process.wait() == 0
    await block.__aexit__(None, None, None)


async def test_a_wrong_token_is_shown_nothing():
    block, server = await lent(accord.tools(add))
    process = await start(server, ACCORD_SOCKET_TOKEN="wrong")
    process.stdin.write(msgspec.json.encode(INITIALIZE) + b"\n")
    assert await process.stdout.read() == b""
    assert await process.wait() == 0
    await block.__aexit__(None, None, None)


async def test_the_token_is_not_among_the_arguments_and_the_folder_is_private():
    block, server = await lent(accord.tools(add))
    [token] = [variable.value for variable in server.env]
    assert token not in " ".join(server.args)
    folder = Path(server.args[-1]).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    await block.__aexit__(None, None, None)
    assert not folder.exists()


async def test_the_shim_ends_when_the_client_is_gone():
    block, server = await lent(accord.tools(add))
    process = await start(server)
    await ask(process, INITIALIZE)
    await block.__aexit__(None, None, None)
    assert await process.wait() == 0
    late = await start(server)
    assert await late.wait() == 1
    assert b"cannot be reached" in await late.stderr.read()


async def test_junk_is_answered_and_a_line_that_is_too_long_ends_the_connection(monkeypatch):
    monkeypatch.setattr("accord.mcp.bridges.LINE", 1000)
    block, server = await lent(accord.tools(add))
    process = await start(server)
    await ask(process, INITIALIZE)
    process.stdin.write(b"x" * 5000 + b"\n")
    assert b"x" not in await process.stdout.read()
    assert await process.wait() == 0
    await block.__aexit__(None, None, None)


async def test_a_server_may_be_kept_from_the_bridge():
    agent = idle_agent()
    async with accord.connect(agent) as remote:
        with pytest.raises(accord.CapabilityMissing, match="mcp"):
            await remote.new_session("/", mcp_servers=[accord.tools(add, bridge=False)])


async def test_the_shim_imports_nothing_but_pythons_own():
    """It is started for each session of each agent, so its start has to cost as little as Python's."""
    block, server = await lent(accord.tools(add))
    assert server.args[:2] == ["-I", "-S"]
    sources = [await asyncio.to_thread(Path(name).read_text) for name in server.args[2:4]]
    lines = [line for source in sources for line in source.splitlines()]
    imports = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
    assert imports == {"os", "socket", "sys", "threading"}
    await block.__aexit__(None, None, None)
