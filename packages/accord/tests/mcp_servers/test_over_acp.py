"""MCP servers of a client's program, used by an agent of ours over the connection between them."""

import asyncio
import logging
import sys
from typing import Annotated

import pytest
from mcp.server import Server
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

import accord
from accord import updates


def add(left: int, right: int) -> int:
    """The sum."""
    return left + right


class Colour(BaseModel):
    colour: str


@pytest.fixture
def caller():
    """An agent that calls the tool that the prompt names, with the JSON object behind the name."""
    agent = accord.Agent("caller")

    @agent.on_prompt
    async def call(turn):
        name, _, arguments = turn.text.partition(" ")
        mcp = turn.session.mcp
        if name == "list":
            return await turn.say(" ".join(tool.qualified_name for tool in await mcp.tools()))
        try:
            result = await mcp.call(turn, name, dict(word.split("=") for word in arguments.split()))
        except accord.McpServerError as error:
            await turn.say(f"error: {error.problem}")
        else:
            await turn.say(("failed: " if result.failed else "") + result.text)

    return agent


@pytest.mark.parametrize("version", [1, 2])
async def test_functions_of_the_client_are_tools_of_the_agent(caller, version):
    async with accord.connect(caller, versions=(version,)) as remote:
        assert remote.version == version
        session = await remote.new_session("/", mcp_servers=[accord.tools(add, name="sums")])
        assert (await session.prompt("list")).text == "sums/add"
        outcome = await session.prompt("add left=2 right=3")
        assert outcome.text == "5"
        [call] = outcome.tool_calls
        assert (call.name, call.status) == ("sums/add", "completed")


async def test_the_tools_are_reached_through_proxies(caller):
    chain = accord.chain(accord.Proxy("first"), accord.Proxy("second"), caller)
    async with accord.connect(chain) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(add, name="sums")])
        assert (await session.prompt("add left=2 right=3")).text == "5"


async def test_a_server_that_the_user_made_is_lent_as_it_is(caller):
    server = MCPServer("garden")

    @server.tool()
    def water(plant: str) -> str:
        return f"{plant} is wet"

    async with accord.connect(caller) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(server)])
        assert (await session.prompt("garden/water plant=rose")).text == "rose is wet"


async def test_a_tool_that_fails_says_why(caller):
    def fail() -> str:
        raise ToolError("out of paint")

    async with accord.connect(caller) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(fail)])
        assert "out of paint" in (await session.prompt("fail")).text


async def test_progress_of_a_tool_reaches_the_title_of_its_call(caller):
    told, go_on = asyncio.Event(), asyncio.Event()

    async def paint(context: Context) -> str:
        await context.report_progress(1, 2)
        await go_on.wait()
        return "painted"

    async with accord.connect(caller) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(paint)])
        reply = session.prompt("paint")
        async for update in reply:
            if isinstance(update, updates.ToolCallUpdate) and update.title == "paint: 50%":
                told.set()
                go_on.set()
        assert (await reply).text == "painted"
        assert told.is_set()


async def test_cancelling_the_turn_cancels_the_tool(caller):
    running, cancelled = asyncio.Event(), asyncio.Event()

    async def sleep() -> str:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with accord.connect(caller) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(sleep)])
        reply = session.prompt("sleep")
        async with asyncio.timeout(30):
            await running.wait()
            await reply.cancel()
            assert (await reply).stop_reason == "cancelled"
            await cancelled.wait()


async def test_a_tool_may_ask_the_user(caller):
    def wanted() -> Elicit[Colour]:
        return Elicit("Which colour?", Colour)

    async def ask(answer: Annotated[ElicitationResult[Colour], Resolve(wanted)]) -> str:
        return answer.data.colour if answer.action == "accept" else answer.action

    client = accord.Client(elicitation=lambda _: {"colour": "red"})
    async with accord.connect(caller, client) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(ask)])
        assert (await session.prompt("ask")).text == "red"


async def test_two_sessions_use_one_server_at_the_same_time(caller):
    both = asyncio.Barrier(2)

    async def meet(name: str) -> str:
        await both.wait()
        return name

    async with accord.connect(caller) as remote:
        server = accord.tools(meet, name="meeting")
        first, second = [await remote.new_session("/", mcp_servers=[server]) for _ in range(2)]
        async with asyncio.timeout(30):
            answers = await asyncio.gather(first.prompt("meet name=anna"), second.prompt("meet name=bert"))
        assert [answer.text for answer in answers] == ["anna", "bert"]


async def test_a_change_of_the_tools_is_noticed(caller):
    server = MCPServer("growing")

    @server.tool()
    async def grow(context: Context) -> str:
        server.add_tool(add)
        await context.notify_tools_changed()
        return "grown"

    async with accord.connect(caller) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(server)])
        assert (await session.prompt("list")).text == "growing/grow"
        await session.prompt("grow")
        assert (await session.prompt("list")).text == "growing/grow growing/add"


AGENT = """
import os
import accord

agent = accord.Agent("mortal", store="sessions.sqlite3")


@agent.on_prompt
async def reply(turn):
    if turn.text == "die":
        os._exit(1)
    await turn.say((await turn.session.mcp.call(turn, "add", {"left": 2, "right": 3})).text)


agent.run()
"""


async def test_after_a_restart_the_agent_reaches_the_server_again(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    async with accord.connect([sys.executable, "agent.py"], cwd=tmp_path, restart=True) as remote:
        session = await remote.new_session(tmp_path, mcp_servers=[accord.tools(add)])
        assert (await session.prompt("add")).text == "5"
        with pytest.raises(accord.ConnectionClosed):
            await session.prompt("die")
        assert (await session.prompt("add")).text == "5"


@pytest.mark.parametrize("wrong", [add, "command", {"name": "x"}])
async def test_what_is_no_server_is_refused_with_what_is_allowed(caller, wrong):
    async with accord.connect(caller) as remote:
        with pytest.raises(TypeError, match=r"accord\.tools\(\.\.\.\)"):
            await remote.new_session("/", mcp_servers=[wrong])


def test_tools_of_nothing_and_of_no_function_are_refused():
    with pytest.raises(TypeError, match="at least one function"):
        accord.tools()
    with pytest.raises(TypeError, match="functions, or one MCP server"):
        accord.tools("add")
    with pytest.raises(TypeError, match="functions, or one MCP server"):
        accord.tools(add, Server("one"))


def test_offering_tools_leaves_the_programs_root_logger_alone():
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()
    try:
        accord.tools(add, name="sums")
        assert (root.handlers, root.level) == ([], level)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
