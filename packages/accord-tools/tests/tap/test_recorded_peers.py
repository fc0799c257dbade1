"""Recorded conversations played again: the agent's side to a client, and the client's side to an agent."""

import asyncio
import subprocess
import sys

import pytest

import accord as package
from accord import AccordError, trace
from accord.testing import RecordedAgent, RecordedClient, ScriptedPeer, recorded_agent_command
from tests.tap.traces import CONVERSATION, chunk, events, frame, request, update, write

ACCORD = [sys.executable, "-m", "accord"]


def working_agent():
    """An agent that reads a file, asks for permission, and answers with what it found."""
    agent = package.Agent("worker")

    @agent.on_prompt
    async def work(turn):
        text = await turn.files.read(turn.session.cwd / "main.txt")
        async with turn.tool("Edit", kind="edit") as tool:
            allowed = await tool.ask()
            await tool.text(f"allowed: {bool(allowed)}")
        await turn.say(f"{turn.text}: {text.strip()}")

    return agent


def client(*, allow=True):
    return package.Client(files=True, permissions=lambda _: allow)


@pytest.fixture
async def recording(tmp_path):
    """A trace of two sessions in a folder, with one prompt in the first and two in the second."""
    then = tmp_path / "then"
    then.mkdir()
    (then / "main.txt").write_text("the file\n")
    path = tmp_path / "wire.jsonl"
    async with package.connect(working_agent(), client(), trace=path) as remote:
        first = await remote.new_session(then)
        await first.prompt("one")
        second = await remote.new_session(then)
        await second.prompt("two")
        await second.prompt("three")
    return path


async def test_a_recorded_agent_answers_as_it_did_then_in_any_order_and_folder(recording, tmp_path):
    now = tmp_path / "now"
    now.mkdir()
    (now / "main.txt").write_text("another file\n")
    async with package.connect(recorded_agent_command(recording), client()) as remote:
        assert remote.info.name == "worker"
        sessions = [await remote.new_session(now) for _ in range(3)]
        assert len({session.id for session in sessions}) == 3
        for session, words in ((sessions[0], "one"), (sessions[1], "three two"), (sessions[2], "two")):
            for word in words.split():
                reply = await session.prompt(word)
                assert reply.text == f"{word}: the file"
                assert reply.stop_reason == "end_turn"


async def scripted(agent, deadline=10.0):
    """A script in place of the client, connected with a recorded agent."""
    here, there = package.memory_pair()
    return ScriptedPeer(here, deadline=deadline), asyncio.ensure_future(agent.serve(there))


def made(*messages):
    """Events of a conversation, in order: (direction, frame)."""
    return [trace.TraceEvent(float(place), way, content) for place, (way, content) in enumerate(messages)]


async def test_a_recorded_agent_asks_its_client_again_and_names_terminals_as_they_are_now():
    told = made(
        ("out", request(1, "session/new", cwd="/then")),
        ("in", frame(id=1, result={"sessionId": "s"})),
        ("out", request(2, "session/prompt", sessionId="s", prompt=[])),
        ("in", request(1, "terminal/create", sessionId="s", command="ls", cwd="/then/sub")),
        ("out", frame(id=1, result={"terminalId": "t-then"})),
        ("in", request(2, "terminal/output", sessionId="s", terminalId="t-then")),
        ("out", frame(id=2, result={"output": "", "truncated": False})),
        ("in", frame(id=2, result={"stopReason": "end_turn"})),
        ("in", update("s", "session_info_update", title="afterwards")),
    )
    peer, serving = await scripted(RecordedAgent(told))
    async with peer:
        session = (await peer.expect_result(peer.call("session/new", {"cwd": "/now"})))["sessionId"]
        number = peer.call("session/prompt", {"sessionId": session, "prompt": []})
        create = await peer.expect("terminal/create")
        assert create["params"] == {"sessionId": session, "command": "ls", "cwd": "/now/sub"}
        peer.answer(create, {"terminalId": "t-now"})
        output = await peer.expect("terminal/output")
        assert output["params"]["terminalId"] == "t-now"
        peer.answer(output, {"output": "", "truncated": False})
        assert await peer.expect_result(number) == {"stopReason": "end_turn"}
        assert (await peer.expect("session/update"))["params"]["update"]["title"] == "afterwards"
    await serving


async def test_a_recorded_agent_may_ask_its_client_after_its_answer():
    told = made(
        ("out", request(1, "initialize", protocolVersion=1)),
        ("in", frame(id=1, result={"protocolVersion": 1})),
        ("in", request(1, "_example.com/ask")),
        ("out", frame(id=1, result={})),
        ("in", frame(method="_example.com/thanks", params={})),
    )
    peer, serving = await scripted(RecordedAgent(told))
    async with peer:
        await peer.expect_result(peer.call("initialize", {"protocolVersion": 1}))
        peer.answer(await peer.expect("_example.com/ask"))
        await peer.expect("_example.com/thanks")
    await serving


@pytest.mark.parametrize("waits", [True, False])
async def test_a_cancelled_prompt_ends_as_cancelled(waits):
    told = made(
        ("out", request(1, "session/prompt", sessionId="s", prompt=[])),
        ("in", request(1, "session/request_permission", sessionId="s")),
        ("out", frame(id=1, result={"outcome": {"outcome": "cancelled"}})),
        ("in", frame(id=1, result={"stopReason": "end_turn"})),
    )
    peer, serving = await scripted(RecordedAgent(told))
    async with peer:
        number = 7
        peer.send_raw(request(number, "session/prompt", sessionId="s", prompt=[]))
        if waits:
            await peer.expect("session/request_permission")
        peer.tell("session/cancel", {"sessionId": "s"})
        while "result" not in (answer := await peer.receive()):
            pass
        assert (answer["id"], answer["result"]) == (number, {"stopReason": "cancelled"})
    await serving


async def test_what_the_trace_does_not_have_is_answered_with_an_error():
    peer, serving = await scripted(RecordedAgent(events()))
    async with peer:
        unknown = await peer.expect_error(peer.call("session/list", {}), -32601)
        assert unknown["message"] == "the trace has no session/list"
        await peer.expect_error(peer.call("session/load", {"sessionId": "s9"}), -32002)
    await serving


async def test_a_recorded_agent_of_a_trace_that_ends_in_a_turn_says_so():
    told = made(("out", request(1, "session/prompt", sessionId="s", prompt=[])), ("in", chunk("half", "s")))
    peer, serving = await scripted(RecordedAgent(told))
    async with peer:
        number = peer.call("session/prompt", {"sessionId": "s", "prompt": []})
        await peer.expect("session/update")
        await peer.expect_error(number, -32603)
    await serving


async def test_a_recorded_client_drives_an_agent_and_finds_no_difference(recording, tmp_path):
    here, there = package.memory_pair()
    serving = asyncio.ensure_future(working_agent().serve(there))
    assert await RecordedClient(recording).play(here) == []
    await serving


async def test_a_recorded_client_reports_other_outcomes(recording):
    agent = package.Agent("other")

    @agent.on_prompt
    async def refuse(turn):
        return "refusal"

    here, there = package.memory_pair()
    serving = asyncio.ensure_future(agent.serve(there))
    differences = await RecordedClient(recording).play(here)
    assert len(differences) == 3
    assert all(it.endswith("recorded end_turn, got refusal") for it in differences)
    await serving


async def test_a_recorded_client_waits_with_a_cancellation_as_it_did_then():
    told = made(
        ("out", request(1, "initialize", protocolVersion=1)),
        ("in", frame(id=1, result={"protocolVersion": 1})),
        ("out", request(2, "session/new", cwd="/", mcpServers=[])),
        ("in", frame(id=2, result={"sessionId": "s"})),
        ("out", request(3, "session/prompt", sessionId="s", prompt=[{"type": "text", "text": "go"}])),
        ("in", chunk("working", "s")),
        ("out", frame(method="session/cancel", params={"sessionId": "s"})),
        ("in", frame(id=3, result={"stopReason": "cancelled"})),
    )
    agent = package.Agent("slow")

    @agent.on_prompt
    async def work(turn):
        await turn.say("working")
        await asyncio.Event().wait()

    here, there = package.memory_pair()
    serving = asyncio.ensure_future(agent.serve(there))
    assert await RecordedClient(told).play(here) == []
    await serving


async def test_a_recorded_client_says_that_its_agent_asked_for_more_or_ended(recording):
    here, there = package.memory_pair()
    async with ScriptedPeer(there) as agent:
        playing = asyncio.ensure_future(RecordedClient(recording).play(here))
        agent.call("_example.com/more", {})
        await agent.expect("initialize")
        assert (await agent.receive())["error"]["code"] == -32601
        await agent.transport.close()
        asked, ended = await playing
    assert asked == "the agent asked _example.com/more, which the trace does not have"
    assert ended.startswith("the agent ended: ")


def test_a_trace_without_a_client_cannot_be_played():
    with pytest.raises(AccordError, match="has no request of a client"):
        RecordedAgent([trace.TraceEvent(0, "in", chunk("hi"))])
    with pytest.raises(ValueError, match="speed must be positive, got -1"):
        RecordedAgent(events(), speed=-1)


def test_of_several_links_and_of_a_chain_one_conversation_is_played():
    linked = [trace.TraceEvent(0, "out", request(1, f"_m{link}"), link=link) for link in (1, 2)]
    assert [part.request.method for part in RecordedAgent(linked).parts] == ["_m1"]
    hops = [
        trace.TraceEvent(0, "out", request(1, "_a"), hop=("client", "proxy")),
        trace.TraceEvent(0, "out", request(1, "_b"), hop=("proxy", "agent")),
    ]
    assert [part.request.method for part in RecordedAgent(hops).parts] == ["_a"]


def run(*words, folder):
    words = [*ACCORD, "replay", *words]
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=60, cwd=folder)


async def test_the_command_drives_an_agent_and_its_status_says_whether_outcomes_differ(recording, tmp_path):
    (tmp_path / "other.py").write_text("import accord\nagent = accord.Agent('o')\nagent.run()\n")
    agent = recorded_agent_command(recording)
    done = await asyncio.to_thread(run, str(recording), "--as", "client", "--", *agent, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "3 turns played, 0 differences\n"), done.stderr
    other = [*ACCORD, "conduct", f"{sys.executable} -c pass"]
    done = await asyncio.to_thread(run, str(recording), "--as", "client", "--", *other, folder=tmp_path)
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--as", "client"], "name the agent to drive"),
        (["--as", "agent", "--", "true"], "--as agent plays the agent itself"),
        (["--as", "agent", "--speed", "0"], "--speed must be positive, got 0"),
    ],
)
def test_wrong_usage_of_the_command_is_explained(tmp_path, words, says):
    write(tmp_path / "wire.jsonl", CONVERSATION)
    done = run("wire.jsonl", *words, folder=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
