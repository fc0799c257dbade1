"""Real agents call tools of our client and of a proxy, which they reach over the bridge, with a model made of rules."""

import json
import sys

import pytest
from benchmarks.build import Unavailable
from interop.conversation import Conversation
from interop.model.replies import CALLED
from interop.model.server import ModelServer
from interop.real_agents import CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, command, environment, installed, repository

import accord

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

AGENTS = [GEMINI, CODEX, QWEN, CLAUDE, OPENCODE]

VARIABLES = {
    GEMINI.name: {"GEMINI_CLI_TRUST_WORKSPACE": "true"},  # in other folders it uses no MCP servers
    CLAUDE.name: {"ENABLE_TOOL_SEARCH": "false"},  # else the model has to search for a tool first
}
FILES = {QWEN.name: {".qwen/settings.json": {"tools": {"toolSearch": {"enabled": False}}}}}
"""What agents need so that the model is shown the tools of MCP servers with the first request."""

SUMS = """
import pathlib, sys
import accord

proxy = accord.Proxy("sums")


@proxy.tools
def sum_of_two(left: int, right: int) -> int:
    "The sum of two numbers."
    pathlib.Path(sys.argv[1]).write_text(f"{left} {right}")
    return left + right


proxy.run()
"""


@pytest.fixture(params=AGENTS, ids=lambda it: it.name)
def talk(request, tmp_path):
    agent = request.param
    try:
        installed(agent)
    except Unavailable as missing:
        pytest.skip(str(missing))
    home, work = tmp_path / "home", repository(tmp_path / "work")
    home.mkdir()
    for name, content in FILES.get(agent.name, {}).items():
        (home / name).parent.mkdir()
        (home / name).write_text(json.dumps(content))
    with ModelServer() as model:
        variables = environment(agent, model.url, home) | VARIABLES.get(agent.name, {})
        yield Conversation(command(agent, home), agent, work, variables, 1), model


async def ask_for(tool, talk, model, servers=()):
    """Have the model call this tool, and wait for the end of the turn."""
    async with talk.connect() as remote:
        session = await remote.new_session(talk.work, mcp_servers=servers)
        if talk.agent.mode:
            await session.set_mode(talk.agent.mode)
        outcome = await session.prompt(f"TOOL {tool}", timeout=90)
    assert CALLED in outcome.text, (outcome.text, *model.notes)


async def test_a_real_agent_calls_a_tool_of_the_client(talk):
    conversation, model = talk
    called = []

    def product_of_two(left: int, right: int) -> int:
        """The product of two numbers."""
        called.append((left, right))
        return left * right

    await ask_for("product_of_two", conversation, model, [accord.tools(product_of_two, name="products")])
    assert called == [(2, 3)]


async def test_a_real_agent_calls_a_tool_of_a_proxy(talk, tmp_path):
    conversation, model = talk
    (tmp_path / "sums.py").write_text(SUMS)
    seen = tmp_path / "seen"
    proxy = f"{sys.executable} {tmp_path / 'sums.py'} {seen}"
    conversation.command = [sys.executable, "-m", "accord", "conduct", proxy, " ".join(conversation.command)]
    await ask_for("sum_of_two", conversation, model)
    assert seen.read_text() == "2 3"
