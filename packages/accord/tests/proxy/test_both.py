"""One program that is an agent and a proxy: the first message says which."""

from __future__ import annotations

import subprocess
import sys

import pytest

import accord
from accord.testing import ScriptedPeer
from accord.transports.process_transport import ProcessTransport
from tests.proxy.conftest import CONDUCT
from tests.waiting import DEADLINE

BOTH = """
import accord

agent = accord.Agent("both")
proxy = accord.Proxy("both")


@agent.on_prompt
async def answer(turn):
    await turn.say("agent: " + turn.text)


@proxy.prompts
def mark(prompt, hop):
    return [hop.text("proxy: " + prompt[0].text)]


proxy.run(agent=agent)
"""


@pytest.fixture
def both(tmp_path):
    (tmp_path / "both.py").write_text(BOTH)
    return [sys.executable, str(tmp_path / "both.py")]


async def said(command, version):
    async with accord.connect(command, versions=(version,)) as remote:
        session = await remote.new_session("/")
        return (await session.prompt("hello")).text


@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_gets_the_agent_and_a_conductor_the_proxy(both, version):
    assert await said(both, version) == "agent: hello"
    component = " ".join(both)
    assert await said([*CONDUCT, component, component], version) == "agent: proxy: hello"


async def test_a_conductor_of_an_older_sdk_gets_the_proxy(both):
    async with ScriptedPeer(ProcessTransport(both), deadline=DEADLINE) as conductor:
        conductor.call("_proxy/initialize", {"protocolVersion": 1})
        assert (await conductor.expect("_proxy/successor"))["params"]["method"] == "initialize"


def test_all_messages_of_the_first_write_are_answered(both):
    lines = [
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}',
        '{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}',
        '{"jsonrpc":"2.0","id":3,"method":"_x/unknown","params":{}}',
    ]
    process = subprocess.run(
        both, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True, timeout=DEADLINE
    )
    answers = [line for line in process.stdout.splitlines() if '"id":' in line]
    assert sorted(line.split('"id":')[1][0] for line in answers) == ["1", "2", "3"]


@pytest.mark.parametrize(("given", "answered"), [("", ""), ("nonsense\n", "-32700"), ("[1]\n", "-32600")])
def test_input_that_is_no_first_message_is_the_agent_s(both, given, answered):
    process = subprocess.run(both, input=given, capture_output=True, text=True, check=True, timeout=DEADLINE)
    assert answered in process.stdout
    assert bool(process.stdout) == bool(answered)
