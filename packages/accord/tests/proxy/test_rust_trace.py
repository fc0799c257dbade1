"""`accord conduct --trace FILE.jsons`: the trace of a chain as the Rust SDK's conductor writes it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

from accord.proxy.rust_trace import JsonsFile
from accord.trace import TraceEvent
from accord.trace.foreign_traces import import_trace
from tests.proxy.test_conduct import ECHO, SHOUT, accord, asked

SUMS = """
import accord

proxy = accord.Proxy("sums")


@proxy.tools
def add(left: int, right: int) -> int:
    "The sum."
    return left + right
"""

CALLER = """
import accord

agent = accord.Agent("caller")


@agent.on_prompt
async def call(turn):
    result = await turn.session.mcp.call(turn, "sums/add", {"left": 2, "right": 3})
    await turn.say(result.text)
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in {"shout": SHOUT, "echo": ECHO, "sums": SUMS, "caller": CALLER}.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def recorded(folder, *components, said):
    assert asked(components, folder, "--trace", "chain.jsons") == said
    return [json.loads(line) for line in (folder / "chain.jsons").read_text().splitlines()]


def shown(lines, method):
    """The way of a request or notification through the chain."""
    return [(it["from"], it["to"]) for it in lines if it.get("method") == method]


def test_each_message_names_the_neighbours_that_it_passed_between(folder):
    lines = recorded(folder, "shout.py", "shout.py", "echo.py", said="HELLO")
    there = [("Client", "Proxy(0)"), ("Proxy(0)", "Proxy(1)"), ("Proxy(1)", "Agent")]
    assert shown(lines, "initialize") == shown(lines, "session/prompt") == there
    said = [it for it in lines if "agent_message_chunk" in str(it.get("params"))]
    assert shown(said, "session/update") == [(to, sender) for sender, to in reversed(there)]
    assert {it["protocol"] for it in lines if it["type"] != "response"} == {"acp"}
    assert lines[0]["params"]["protocolVersion"] == 1
    times = [it["ts"] for it in lines]
    assert times == sorted(times)
    assert 0 <= times[0] < times[-1] < 100


def test_each_request_has_its_answer_under_the_same_id_the_other_way_round(folder):
    lines = recorded(folder, "shout.py", "echo.py", said="HELLO")
    requests = {it["id"]: (it["from"], it["to"]) for it in lines if it["type"] == "request"}
    answers = {it["id"]: (it["to"], it["from"]) for it in lines if it["type"] == "response"}
    assert requests == answers
    assert {it["is_error"] for it in lines if it["type"] == "response"} == {False}
    session = next(it["session"] for it in lines if it.get("method") == "session/prompt")
    assert all(it["session"] == session for it in lines if it.get("method") == "session/update")


def test_messages_to_an_mcp_server_are_shown_as_what_is_in_them(folder):
    lines = recorded(folder, "sums.py", "caller.py", said="5")
    calls = [it for it in lines if it.get("method") == "tools/call"]
    assert [(it["protocol"], it["from"], it["to"]) for it in calls] == [("mcp", "Agent", "Proxy(0)")]
    assert calls[0]["params"]["arguments"] == {"left": 2, "right": 3}
    [answer] = [it for it in lines if it["type"] == "response" and it["id"] == calls[0]["id"]]
    assert answer["payload"]["structuredContent"] == {"result": 5}
    assert "mcp/message" not in {it.get("method") for it in lines}


def test_an_id_of_an_mcp_request_can_be_used_again_for_another(tmp_path):
    hop = ("proxy 1 (sums)", "agent")
    mcp = {"method": "mcp/message", "params": {"connectionId": "c", "method": "tools/list"}}
    file = JsonsFile(tmp_path / "chain.jsons")
    for request in (mcp, {"method": "_example.com/ask"}):
        for message in (request, {"result": {"result": 5}}):
            direction = "out" if message is request else "in"
            file(TraceEvent(0.0, direction, json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode(), hop=hop))
    file.close()
    lines = [json.loads(line) for line in (tmp_path / "chain.jsons").read_text().splitlines()]
    assert [line["payload"] for line in lines if line["type"] == "response"] == [5, {"result": 5}]


def test_secrets_are_masked(folder):
    chain = shlex.join([sys.executable, "-m", "accord", "conduct", "--trace", "chain.jsons", "echo.py"])
    message = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": 1, "_meta": {"apiKey": "sk-very-secret"}},
    }  # fmt: skip
    subprocess.run(shlex.split(chain), input=json.dumps(message) + "\n", text=True, check=True, cwd=folder, timeout=100)
    text = (folder / "chain.jsons").read_text()
    assert "apiKey" in text
    assert "sk-very-secret" not in text


def test_our_importer_reads_what_was_written(folder):
    lines = recorded(folder, "shout.py", "echo.py", said="HELLO")
    found = import_trace(folder / "chain.jsons")
    assert (found.format, len(found.events)) == ("conductor", len(lines))
    assert [it.hop for it in found.events] == [(it["from"], it["to"]) for it in lines]
    for line, event in zip(lines, found.events, strict=True):
        expected = "out" if (line["from"], line["to"]) in [("Client", "Proxy(0)"), ("Proxy(0)", "Agent")] else "in"
        assert event.direction == expected
    shown = accord("trace", "import", "chain.jsons", "-o", "chain.jsonl", cwd=folder)
    assert shown.returncode == 0, shown.stderr


def test_a_file_that_cannot_be_written_is_wrong_usage(folder):
    done = accord("conduct", "--trace", "absent/chain.jsons", "echo.py", cwd=folder)
    assert done.returncode == 2
    assert "--trace: " in done.stderr
