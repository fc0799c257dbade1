"""`/tools` and `/call`: the MCP servers of a session with the built-in agent."""

import sys

import pytest

from accord import v1
from accord_tools.demo.demo_work import arguments_of
from tests import ROOT

SERVERS = ROOT / "packages" / "accord" / "tests" / "mcp_servers"


@pytest.fixture
def offering():
    return v1.McpServerStdio("offering", sys.executable, [str(SERVERS / "offering_server.py")], [])


async def test_tools_lists_what_the_servers_offer_and_what_is_missing(visit, offering):
    missing = v1.McpServerStdio("missing", "/no/such/program", [], [])
    async with visit(servers=[offering, missing]) as session:
        answer = (await session.say("/tools")).text
        assert "- `offering/add` (left, right) The sum." in answer
        assert "- `note://today` of offering" in answer
        assert "- `offering/greet`" in answer
        assert "- missing: " in answer


async def test_call_asks_and_shows_what_the_tool_gave(visit, offering):
    async with visit(servers=[offering]) as session:
        answer = await session.say('/call offering/add {"left": 2, "right": 3}')
        assert answer.text == "It gave: 5"
        assert [asked.tool_call.title for asked in session.client.asked] == ["Add two numbers"]
        assert (await session.say("/call add left=4 right=5")).text == "It gave: 9"
        assert "there is no tool" in (await session.say("/call offering/none")).text


async def test_a_session_without_servers_says_so(visit):
    async with visit() as session:
        assert (await session.say("/tools")).text == "Your client gave this session no MCP servers."


def test_arguments_are_json_or_pairs():
    assert arguments_of('{"a": [1]}') == {"a": [1]}
    assert arguments_of("a=1 b=two c=true") == {"a": 1, "b": "two", "c": True}
    assert arguments_of("") == {}
    assert arguments_of("{broken") is None
    assert arguments_of("just words") is None
