"""MCP over ACP with the TypeScript SDK: its caller, its bridge and its provider, with ours, also through a chain."""

import asyncio
import json
import sys

import pytest
from benchmarks.build import Unavailable
from interop.peers import HERE, built
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context
from mcp.shared._httpx_utils import create_mcp_http_client

import accord

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

CALLER = """
import accord
from accord import v1

agent = accord.Agent("caller", {capabilities})


@agent.on_prompt
async def call(turn):
    name, _, arguments = turn.text.partition(" ")
    mcp = turn.session.mcp
    if name == "list":
        return await turn.say(" ".join(tool.qualified_name for tool in await mcp.tools()))
    try:
        result = await mcp.call(turn, name, dict(word.split("=") for word in arguments.split()))
    except accord.McpServerError as error:
        await turn.say(f"error: {{error.problem}}")
    else:
        await turn.say(result.text)


agent.run()
"""


@pytest.fixture
def sdk():
    """The variables with which programs find the SDK."""
    try:
        folder = built("typescript").folder
    except Unavailable as missing:
        pytest.skip(str(missing))
    return {"ACP_SDK": str(folder / "node_modules/@agentclientprotocol/sdk/dist")}


def add(left: int, right: int) -> int:
    """The sum."""
    return left + right


def slow_add(go_on):
    """A tool that reports progress, and answers when that has been seen: their caller drops what comes too late."""

    async def slow_add(left: int, right: int, context: Context) -> int:
        await context.report_progress(1, 2)
        await go_on.wait()
        return left + right

    return slow_add


async def said(reply, go_on):
    """What the agent says in this turn; lets the tool go on when its progress has been told."""
    async with asyncio.timeout(60):
        async for text in reply.iter_text():
            if "progress 1;" in text:
                go_on.set()
        return (await reply).text


@pytest.fixture
def agent():
    return ["node", str(HERE / "agents" / "typescript_mcp_agent.mjs")]


async def test_their_caller_uses_tools_of_our_client(sdk, agent):
    go_on = asyncio.Event()
    async with accord.connect(agent, env=sdk) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(slow_add(go_on))])
        assert (await session.prompt("list")).text == "slow_add"
        text = await said(session.prompt('slow_add {"left": 2, "right": 3}'), go_on)
        assert text == 'progress 1;{"result":{"result":5},"failed":false}'
        wrong = json.loads((await session.prompt("nothing {}")).text)
        assert wrong["failed"] or wrong["error"]


async def test_their_caller_uses_tools_of_our_proxy(sdk, agent):
    go_on, proxy = asyncio.Event(), accord.Proxy("sums")
    proxy.tools(slow_add(go_on))
    chain = accord.chain(proxy, accord.Proxy("pass"), typescript(agent, sdk))
    async with accord.connect(chain) as remote:
        session = await remote.new_session("/")
        text = await said(session.prompt('slow_add {"left": 2, "right": 3}'), go_on)
        assert text == 'progress 1;{"result":{"result":5},"failed":false}'


async def test_their_bridge_leads_to_tools_of_our_client(sdk, agent):
    async with accord.connect(agent, env=sdk) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(add)])
        [described] = json.loads((await session.prompt("bridge")).text)
        headers = {header["name"]: header["value"] for header in described["headers"]}
        async with (
            create_mcp_http_client(headers=headers) as http_client,
            Client(streamable_http_client(described["url"], http_client=http_client)) as client,
        ):
            result = await client.call_tool("add", {"left": 2, "right": 3})
    assert result.structured_content == {"result": 5}


def typescript(agent, sdk):
    """Their agent as a component, with its variables."""
    return ["env", *(f"{name}={value}" for name, value in sdk.items()), *agent]


@pytest.mark.parametrize("takes_acp", [True, False])
@pytest.mark.parametrize("proxies", [0, 1])
async def test_tools_of_their_client_reach_our_agent_and_over_our_bridge_any_agent(sdk, tmp_path, takes_acp, proxies):
    capabilities = "" if takes_acp else "capabilities=lambda _: v1.AgentCapabilities()"
    (tmp_path / "caller.py").write_text(CALLER.format(capabilities=capabilities))
    (tmp_path / "pass.py").write_text('import accord\naccord.Proxy("pass").run()\n')
    passing = [f"{sys.executable} {tmp_path / 'pass.py'}"] * proxies
    chain = [sys.executable, "-m", "accord", "conduct", *passing, f"{sys.executable} {tmp_path / 'caller.py'}"]
    client = ["node", str(HERE / "clients" / "typescript_mcp_client.mjs"), "list", "add left=2 right=3", "none x=1"]
    process = await asyncio.create_subprocess_exec(
        *typescript(client, sdk), "--", *chain, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    listed, added, missing = [json.loads(line) for line in out.splitlines()]
    assert (listed, added) == ("sums/add", "5")
    assert "there is no tool none" in missing
