"""MCP servers that a proxy lends, and the bridge to agents that take no servers over ACP."""

import asyncio
import sys
from typing import Annotated

import pytest
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from pydantic import BaseModel

import accord
from accord import updates, v1
from tests.proxy.conftest import CONDUCT

CALLER = """
import accord
from accord import v1


def without_acp(declared):
    return v1.AgentCapabilities(load_session=declared.load_session)


agent = accord.Agent("caller", capabilities=without_acp)


@agent.on_prompt
async def call(turn):
    name, _, arguments = turn.text.partition(" ")
    mcp = turn.session.mcp
    if name == "list":
        return await turn.say(" ".join(sorted(tool.qualified_name for tool in await mcp.tools())))
    try:
        result = await mcp.call(turn, name, dict(word.split("=") for word in arguments.split()))
    except accord.McpServerError as error:
        await turn.say(f"error: {error.problem}")
    else:
        await turn.say(result.text)
"""
"""An agent that calls the tool that the prompt names."""

SUMS = """
import accord

proxy = accord.Proxy("sums")


@proxy.tools
def add(left: int, right: int) -> int:
    "The sum."
    return left + right


proxy.run()
"""


class Colour(BaseModel):
    colour: str


def add(left: int, right: int) -> int:
    """The sum."""
    return left + right


def lending(*functions, name="sums"):
    proxy = accord.Proxy(name)
    for function in functions:
        assert proxy.tools(function) is function
    return proxy


def native():
    """The caller, in this program, which takes servers over ACP."""
    space: dict[str, object] = {}
    exec(CALLER.replace(", capabilities=without_acp", ""), space)
    return space["agent"]


@pytest.fixture
def plain(tmp_path):
    """The command of the caller, which takes no servers over ACP."""
    (tmp_path / "caller.py").write_text(CALLER + "\n\nagent.run()\n")
    return [sys.executable, str(tmp_path / "caller.py")]


@pytest.fixture(params=["over ACP", "over a bridge"])
def caller(request, plain):
    return native() if request.param == "over ACP" else plain


@pytest.mark.parametrize("version", [1, 2])
async def test_functions_of_a_proxy_are_tools_of_the_agent(version):
    async with accord.connect(accord.chain(lending(add), native()), versions=(version,)) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("list")).text == "sums/add"
        assert (await session.prompt("add left=2 right=3")).text == "5"


async def test_each_component_lends_servers_of_its_own(caller):
    server = MCPServer("garden")

    @server.tool()
    def water(plant: str) -> str:
        return f"{plant} is wet"

    def multiply(left: int, right: int) -> int:
        return left * right

    second = lending(multiply, name="products")
    second.add_server(server)
    async with accord.connect(accord.chain(lending(add), second, caller)) as remote:

        def shout(text: str) -> str:
            return text.upper()

        session = await remote.new_session("/", mcp_servers=[accord.tools(shout, name="client")])
        names = (await session.prompt("list")).text
        assert names == "client/shout garden/water products/multiply sums/add"
        assert (await session.prompt("sums/add left=2 right=3")).text == "5"
        assert (await session.prompt("products/multiply left=2 right=3")).text == "6"
        assert (await session.prompt("garden/water plant=rose")).text == "rose is wet"
        assert (await session.prompt("client/shout text=hey")).text == "HEY"


async def test_programs_under_accord_conduct_lend_tools_to_an_agent_without_acp(plain, tmp_path):
    (tmp_path / "sums.py").write_text(SUMS)
    command = [*CONDUCT, f"{sys.executable} {tmp_path / 'sums.py'}", " ".join(plain)]
    async with accord.connect(command) as remote:
        session = await remote.new_session(tmp_path)
        assert (await session.prompt("add left=2 right=3")).text == "5"


async def test_a_proxy_bridges_its_servers_itself_where_the_chain_does_not(plain):
    async with accord.connect(accord.chain(lending(add), plain, bridge=False)) as remote:
        assert not remote.capabilities.has("mcp_capabilities.acp")
        session = await remote.new_session("/")
        assert (await session.prompt("add left=2 right=3")).text == "5"


async def test_cancelling_the_turn_cancels_the_tool_of_a_proxy(caller):
    running, cancelled = asyncio.Event(), asyncio.Event()

    async def sleep() -> str:
        running.set()
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()

    async with accord.connect(accord.chain(lending(sleep), caller)) as remote:
        session = await remote.new_session("/")
        reply = session.prompt("sleep")
        async with asyncio.timeout(60):
            await running.wait()
            await reply.cancel()
            assert (await reply).stop_reason == "cancelled"
            await cancelled.wait()


async def test_progress_of_a_proxy_s_tool_reaches_the_client(caller):
    go_on = asyncio.Event()

    async def paint(context: Context) -> str:
        await context.report_progress(1, 2)
        await go_on.wait()
        return "painted"

    async with accord.connect(accord.chain(lending(paint), caller)) as remote:
        session = await remote.new_session("/")
        reply = session.prompt("paint")
        async for update in reply:
            if isinstance(update, updates.ToolCallUpdate) and update.title == "paint: 50%":
                go_on.set()
        assert (await reply).text == "painted"


async def test_a_tool_of_a_proxy_may_ask_the_user(caller):
    def wanted() -> Elicit[Colour]:
        return Elicit("Which colour?", Colour)

    async def ask(answer: Annotated[ElicitationResult[Colour], Resolve(wanted)]) -> str:
        return answer.data.colour if answer.action == "accept" else answer.action

    client = accord.Client(elicitation=lambda _: {"colour": "red"})
    async with accord.connect(accord.chain(lending(ask), caller), client) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("ask")).text == "red"


async def test_a_change_of_a_proxy_s_tools_is_noticed(caller):
    server = MCPServer("growing")

    @server.tool()
    async def grow(context: Context) -> str:
        server.add_tool(add)
        await context.notify_tools_changed()
        return "grown"

    proxy = accord.Proxy("gardener")
    proxy.add_server(server)
    async with accord.connect(accord.chain(proxy, caller)) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("list")).text == "growing/grow"
        await session.prompt("grow")
        async with asyncio.timeout(60):
            while (text := (await session.prompt("list")).text) == "growing/grow":
                pass  # a notification may arrive after the answer
        assert text == "growing/add growing/grow"


async def test_a_name_that_the_client_uses_already_is_refused():
    async with accord.connect(accord.chain(lending(add), native())) as remote:
        with pytest.raises(accord.PeerError, match="lends an MCP server 'sums' already") as caught:
            await remote.new_session("/", mcp_servers=[accord.tools(add, name="sums")])
        assert caught.value.code == -32602
        await remote.new_session("/", mcp_servers=[accord.tools(add, name="others")])


async def test_two_servers_of_one_name_and_what_is_no_server_are_refused():
    proxy = accord.Proxy("one")
    proxy.add_server(accord.tools(add, name="sums"))
    with pytest.raises(ValueError, match="lends an MCP server 'sums' already"):
        proxy.add_server(accord.tools(add, name="sums"))
    with pytest.raises(TypeError, match=r"proxy\.add_server\(\) takes an MCP server"):
        proxy.add_server("command")
    with pytest.raises(TypeError, match=r"@proxy\.tools"):
        proxy.tools("add")


def test_a_function_that_cannot_be_a_tool_fails_where_it_is_written():
    class Own: ...

    def take(value: Own) -> str: ...

    with pytest.raises(Exception, match="Own"):
        accord.Proxy("one").tools(take)


async def test_handlers_of_the_proxy_see_the_request_with_its_servers():
    proxy = lending(add)
    seen = []

    @proxy.from_client(v1.NewSessionRequest)
    def look(request):
        seen.extend(server.name for server in request.mcp_servers)
        return request

    async with accord.connect(accord.chain(proxy, native())) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("add left=1 right=1")).text == "2"
    assert seen == ["sums"]


# Servers of one session


def lending_by_folder():
    """A proxy whose tool knows the folder of its session."""
    proxy = accord.Proxy("folders")

    @proxy.from_client(v1.NewSessionRequest)
    def lend(request, hop):
        def where() -> str:
            "The session's folder."
            return request.cwd

        return hop.with_server(request, accord.tools(where, name="folder"))

    return proxy


async def test_a_server_of_one_session_is_not_that_of_another(caller):
    async with accord.connect(accord.chain(lending_by_folder(), caller)) as remote:
        first, second = await remote.new_session("/"), await remote.new_session("/tmp")
        assert (await first.prompt("list")).text == "folder/where"
        assert (await second.prompt("folder/where")).text == "/tmp"
        assert (await first.prompt("folder/where")).text == "/"


async def test_a_server_of_one_session_stands_beside_those_of_all(caller):
    proxy = lending_by_folder()
    proxy.tools(add)
    async with accord.connect(accord.chain(proxy, caller)) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("list")).text == "folder/where folders/add"
        assert (await session.prompt("folders/add left=1 right=2")).text == "3"


async def test_a_server_of_one_session_may_not_have_a_name_that_the_client_uses():
    async with accord.connect(accord.chain(lending_by_folder(), native())) as remote:
        with pytest.raises(accord.PeerError, match="lends an MCP server 'folder' already"):
            await remote.new_session("/", mcp_servers=[accord.tools(add, name="folder")])


async def test_only_a_request_that_opens_a_session_takes_a_server(caplog):
    proxy = accord.Proxy("wrong")

    @proxy.from_client(v1.PromptRequest)
    def lend(request, hop):
        return hop.with_server(request, accord.tools(add))

    async with accord.connect(accord.chain(proxy, native())) as remote:
        session = await remote.new_session("/")
        with pytest.raises(accord.PeerError):
            await session.prompt("list")
    assert "hop.with_server() takes a request that opens a session" in caplog.text


@pytest.mark.parametrize("way", ["memory"])  # the proxy is one of this program
async def test_what_the_client_sent_stays_beside_a_server_of_one_session(line):
    await line.open(lending_by_folder(), line.component())
    asked = line.client.call("initialize", {"protocolVersion": 1})
    agent = await line.agent.there()
    agent.answer(await agent.expect("initialize"), opened(acp=True))
    await line.client.expect_result(asked)
    theirs = {"type": "new", "name": "odd", "more": [1]}
    line.client.call("session/new", {"cwd": "/", "mcpServers": [theirs], "own": True})
    params = (await agent.expect("session/new"))["params"]
    assert params["own"] is True
    assert params["mcpServers"][0] == theirs
    assert [it["name"] for it in params["mcpServers"]] == ["odd", "folder"]
    assert params["mcpServers"][1]["type"] == "acp"


# With scripts: what is on the wire


def opened(version=1, **offers):
    mcp = {"mcpCapabilities": offers} if version == 1 else {"session": {"mcp": offers}}
    name = "agentCapabilities" if version == 1 else "capabilities"
    return {"protocolVersion": version, name: {**mcp, "more": 1}}


async def initialized(line, version=1, **offers):
    asked = line.client.call("initialize", {"protocolVersion": version})
    agent = await line.agent.there()
    agent.answer(await agent.expect("initialize"), opened(version, **offers))
    return await line.client.expect_result(asked)


ACP = {"type": "acp", "name": "notes", "serverId": "sv-1", "_meta": {"kept": 1}}


@pytest.mark.parametrize("way", ["memory"])
@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
async def test_every_request_that_opens_a_session_gets_the_servers(line, method):
    await line.open(lending(add), line.component())
    await initialized(line, acp=True)
    line.client.call(method, {"cwd": "/", "mcpServers": [ACP], "more": 1})
    params = (await line.agent.expect(method))["params"]
    assert params["mcpServers"][0] == ACP
    assert (params["mcpServers"][1]["type"], params["mcpServers"][1]["name"]) == ("acp", "sums")
    assert params["more"] == 1


CALL = {"name": "add", "arguments": {"left": 2, "right": 3}}


@pytest.mark.parametrize("way", ["memory"])
async def test_a_message_goes_to_the_component_that_owns_its_server(line):
    await line.open(lending(add), line.component())
    await initialized(line, acp=True)
    line.client.call("session/new", {"cwd": "/", "mcpServers": [ACP]})
    ours = (await line.agent.expect("session/new"))["params"]["mcpServers"][1]["serverId"]
    message = {"requestId": "r", "method": "tools/call", "params": CALL}
    answer = await line.agent.expect_result(line.agent.call("mcp/message", {**message, "serverId": ours}))
    assert answer["result"]["structuredContent"] == {"result": 5}
    theirs = line.agent.call("mcp/message", {**message, "serverId": "sv-1"})
    request = await line.client.expect("mcp/message")
    assert request["params"] == {**message, "serverId": "sv-1"}
    line.client.answer(request, {"result": {"content": []}})
    assert await line.agent.expect_result(theirs) == {"result": {"content": []}}


INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


@pytest.mark.parametrize("way", ["memory"])
@pytest.mark.parametrize("key", ["acpId", "serverId"])
async def test_an_agent_may_connect_with_a_proxy_s_server_first(line, key):
    await line.open(lending(add), line.component())
    await initialized(line, acp=True)
    line.client.call("session/new", {"cwd": "/", "mcpServers": []})
    [ours] = (await line.agent.expect("session/new"))["params"]["mcpServers"]
    agent = line.agent
    connection = await agent.expect_result(agent.call("mcp/connect", {key: ours["serverId"]}))

    def said(method, params):
        return {**connection, "method": method, "params": params}

    answer = await agent.expect_result(agent.call("mcp/message", said("initialize", INITIALIZE)))
    assert answer["protocolVersion"] == "2025-06-18"
    agent.tell("mcp/message", said("notifications/initialized", {}))
    called = await agent.expect_result(agent.call("mcp/message", said("tools/call", CALL)))
    assert called["structuredContent"] == {"result": 5}
    await agent.expect_result(agent.call("mcp/disconnect", connection))


@pytest.mark.parametrize("version", [1, 2])
async def test_the_chain_offers_acp_and_describes_the_servers_as_processes(line, version):
    await line.open(line.component(), bridge=True)
    answer = await initialized(line, version, **({} if version == 1 else {"stdio": {}, "http": {}}))
    offers = (
        answer["agentCapabilities"]["mcpCapabilities"] if version == 1 else answer["capabilities"]["session"]["mcp"]
    )
    assert offers["acp"] == (True if version == 1 else {})
    other = {"name": "other", "command": "x", "args": [], "env": []}
    line.client.call("session/new", {"cwd": "/", "mcpServers": [other, ACP], "more": 1})
    params = (await line.agent.expect("session/new"))["params"]
    assert params["mcpServers"][0] == other
    described = params["mcpServers"][1]
    assert described["name"] == "notes"
    assert described["_meta"] == {"kept": 1}
    assert described["command"] == sys.executable
    assert described.get("type") == (None if version == 1 else "stdio")
    assert params["more"] == 1


async def test_an_agent_that_starts_no_processes_gets_a_url(line):
    await line.open(line.component(), bridge=True)
    await initialized(line, 2, http={})
    line.client.call("session/new", {"cwd": "/", "mcpServers": [ACP]})
    [described] = (await line.agent.expect("session/new"))["params"]["mcpServers"]
    assert described["type"] == "http"
    assert described["url"].startswith("http://127.0.0.1:")


async def test_an_agent_that_takes_acp_servers_is_left_alone(line):
    await line.open(line.component(), bridge=True)
    assert await initialized(line, acp=True) == opened(acp=True)
    line.client.call("session/new", {"cwd": "/", "mcpServers": [ACP]})
    assert (await line.agent.expect("session/new"))["params"]["mcpServers"] == [ACP]


async def test_a_server_that_the_agent_cannot_reach_is_refused(line):
    await line.open(line.component(), bridge=True)
    assert await initialized(line, 2) == opened(2)
    asked = line.client.call("session/new", {"cwd": "/", "mcpServers": [ACP]})
    error = await line.client.expect_error(asked)
    assert error["code"] == -32602
    assert "takes no servers over ACP" in error["message"]
