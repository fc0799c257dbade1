"""Our HTTP bridge with an agent that takes MCP servers over HTTP only: the TypeScript SDKs of ACP and of MCP."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from benchmarks.build import Unavailable
from interop.peers import built
from interop.real_agents import CLAUDE, installed
from mcp.server.mcpserver import Context, MCPServer

import accord
from interop import agents

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

AGENT = Path(agents.__file__).parent / "typescript_http_agent.mjs"

SUMS = """
import accord

proxy = accord.Proxy("sums")


@proxy.tools
def add(left: int, right: int) -> int:
    "The sum."
    return left + right


proxy.run()
"""


@pytest.fixture
def variables():
    """The variables with which the agent finds the SDKs; that of MCP is the one that claude-agent-acp brings."""
    try:
        acp, modules = built("typescript").folder, installed(CLAUDE).parent
    except Unavailable as missing:
        pytest.skip(str(missing))
    mcp = modules / "@modelcontextprotocol/sdk/dist/esm"
    return {"ACP_SDK": str(acp / "node_modules/@agentclientprotocol/sdk/dist"), "MCP_SDK": str(mcp)}


def add(left: int, right: int) -> int:
    """The sum."""
    return left + right


def server():
    """A server with a tool that adds, one that reports its progress, and one that fails."""
    made = MCPServer("tools")
    made.tool()(add)

    @made.tool()
    async def slow(context: Context) -> str:
        "Reports progress."
        for step in (1, 2):
            await context.report_progress(step)
        return "done"

    @made.tool()
    def broken() -> str:
        "Fails."
        raise ValueError("it is broken")

    return made


async def said(session, text):
    return (await session.prompt(text, timeout=60)).text


async def test_an_agent_that_takes_http_only_uses_tools_of_our_client(variables):
    command = ["node", str(AGENT)]
    async with accord.connect(command, env=variables, versions=(2,)) as remote:
        session = await remote.new_session("/", mcp_servers=[accord.tools(server())])
        assert await said(session, "list") == "tools/add tools/broken tools/slow"
        assert await said(session, f"tools/add {json.dumps({'left': 2, 'right': 3})}") == "5"
        assert await said(session, "tools/slow {}") == "done after 1,2"
        assert (await said(session, "tools/broken {}")).startswith("error: ")


async def test_an_agent_that_takes_http_only_uses_tools_of_a_proxy(variables, tmp_path):
    (tmp_path / "sums.py").write_text(SUMS)
    proxy = shlex.join([sys.executable, str(tmp_path / "sums.py")])
    command = [sys.executable, "-m", "accord", "conduct", proxy, shlex.join(["node", str(AGENT)])]
    async with accord.connect(command, env=variables, versions=(2,)) as remote:
        session = await remote.new_session("/")
        assert await said(session, "list") == "sums/add"
        assert await said(session, f"sums/add {json.dumps({'left': 4, 'right': 5})}") == "9"
