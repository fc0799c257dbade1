"""The examples of proxies, as `accord conduct` runs them between a client and an agent that scripts play."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[4] / "examples" / "proxies"
KEY = "AKIAABCDEFGHIJKLMNOP"


def prompt(text):
    return {"sessionId": "s", "prompt": [{"type": "text", "text": text}]}


def chunk(text, version):
    content = {"type": "text", "text": text}
    ids = {"messageId": "m"} if version == 2 else {}
    return {"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": content, **ids}}


@pytest.fixture(params=["stdio"])
def way(request):
    return request.param


@pytest.fixture
def between(line):
    """`await between("recorder.py", ...)`: the client's and the agent's script, with this proxy between them."""

    async def build(example, *arguments, version=1, offers=None):
        proxy = shlex.join([sys.executable, "-W", "error", str(EXAMPLES / example), *arguments])
        await line.open(proxy, line.component())
        asked = line.client.call("initialize", {"protocolVersion": version})
        agent = await line.agent.there()
        capabilities = {} if offers is None else {"agentCapabilities": {"mcpCapabilities": offers}}
        agent.answer(await agent.expect("initialize"), {"protocolVersion": version, **capabilities})
        await line.client.expect_result(asked)
        return line.client, agent

    return build


async def test_the_house_rules_stand_before_the_first_prompt(between, tmp_path):
    (tmp_path / "rules.md").write_text("Be kind.")
    client, agent = await between("house_rules.py", str(tmp_path / "rules.md"))
    client.call("session/prompt", prompt("hello"))
    texts = [block["text"] for block in (await agent.expect("session/prompt"))["params"]["prompt"]]
    assert texts == ["<instructions>\nBe kind.\n</instructions>", "hello"]


OPTIONS = [
    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    {"optionId": "n", "name": "No", "kind": "reject_once"},
]


def question(title, kind, version):
    call = {"toolCallId": "t", "title": title, "kind": kind}
    if version == 1:
        return {"sessionId": "s", "toolCall": call, "options": OPTIONS}
    return {"sessionId": "s", "title": title, "options": OPTIONS, "subject": {"type": "tool_call", "toolCall": call}}


@pytest.mark.parametrize("version", [1, 2])
async def test_the_permission_policy_allows_refuses_and_asks(between, version):
    client, agent = await between("permission_policy.py", version=version)
    allowed = agent.call("session/request_permission", question("Read a.txt", "read", version))
    assert (await agent.expect_result(allowed))["outcome"]["optionId"] == "y"
    refused = agent.call("session/request_permission", question("rm -rf /", "execute", version))
    assert (await agent.expect_result(refused))["outcome"]["optionId"] == "n"
    told = await client.expect("session/update")
    assert "rm -rf /" in told["params"]["update"]["content"]["text"]
    agent.call("session/request_permission", question("make", "execute", version))
    await client.expect("session/request_permission")


@pytest.mark.parametrize("version", [1, 2])
async def test_the_redactor_keeps_a_key_from_the_agent_and_from_the_screen(between, version):
    client, agent = await between("redactor.py", version=version)
    client.call("session/prompt", prompt(f"use {KEY} please"))
    assert (await agent.expect("session/prompt"))["params"] == prompt("use [secret] please")
    agent.tell("session/update", chunk(f"I used {KEY}", version))
    assert (await client.expect("session/update"))["params"] == chunk("I used [secret]", version)
    unknown = {"sessionUpdate": "hologram", "deep": [{"text": KEY}]}
    agent.tell("session/update", {"sessionId": "s", "update": unknown})
    assert KEY not in str(await client.expect("session/update"))


async def test_the_redactor_keeps_a_key_in_a_file_from_the_agent(between):
    client, agent = await between("redactor.py")
    asked = agent.call("fs/read_text_file", {"sessionId": "s", "path": "/keys"})
    client.answer(await client.expect("fs/read_text_file"), {"content": f"key={KEY}\n", "more": 1})
    assert await agent.expect_result(asked) == {"content": "key=[secret]\n", "more": 1}


async def test_the_recorder_keeps_a_diary(between, tmp_path):
    client, agent = await between("recorder.py", str(tmp_path / "diary.md"))
    asked = client.call("session/prompt", prompt("hello"))
    at_agent = await agent.expect("session/prompt")
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Look"}
    agent.tell("session/update", {"sessionId": "s", "update": call})
    agent.tell("session/update", chunk("Good ", 1))
    agent.tell("session/update", chunk("day.", 1))
    agent.answer(at_agent, {"stopReason": "end_turn"})
    for _ in range(3):
        await client.expect("session/update")
    await client.expect_result(asked)
    assert (tmp_path / "diary.md").read_text() == "\n\n## s\n\n> hello\n\n\n\n- Look\n\nGood day."


async def test_the_agent_reads_the_to_do_list_and_ticks_items_off(between, tmp_path):
    (tmp_path / "todo.md").write_text("# To do\n- [ ] Write\n- [x] Read\n- [ ] Test\n")
    client, agent = await between("todo_tools.py", str(tmp_path / "todo.md"), offers={"acp": True})
    client.call("session/new", {"cwd": "/", "mcpServers": []})
    [server] = (await agent.expect("session/new"))["params"]["mcpServers"]

    async def tool(name, arguments):
        message = {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
        asked = {"serverId": server["serverId"], "requestId": name, **message}
        return (await agent.expect_result(agent.call("mcp/message", asked)))["result"]["structuredContent"]["result"]

    assert server["name"] == "todo"
    assert await tool("open_items", {}) == ["Write", "Test"]
    assert await tool("tick_off", {"item": "Write"}) == "done"
    assert (tmp_path / "todo.md").read_text() == "# To do\n- [x] Write\n- [x] Read\n- [ ] Test\n"
