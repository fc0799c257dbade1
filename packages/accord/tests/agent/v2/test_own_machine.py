"""Commands and files of the agent's own machine: run and read there, and shown to the client in its version."""

from __future__ import annotations

import asyncio
import base64
import sys

import pytest

import accord
from accord import Agent, PeerError, v1

PRINT_IN_PIECES = """
import sys
for piece in (b"one ", "\\U0001f600".encode()[:2], "\\U0001f600".encode()[2:], b" two\\n"):
    sys.stdout.buffer.write(piece)
    sys.stdout.flush()
sys.exit(3)
"""

WAIT = "import sys, threading; print('begun', flush=True); threading.Event().wait()"


def runner(source, results=None, timeout=None):
    """An agent that runs this Python program in a tool call."""
    agent = Agent("runner")

    @agent.on_prompt
    async def run(turn):
        async with (
            turn.tool("Run it", kind="execute") as tool,
            tool.command([sys.executable, "-c", source], env={"ACCORD_TEST": "1"}) as command,
        ):
            result = await command.wait(timeout)
            if results is not None:
                results.append(result)

    return agent


def output_of(updates):
    return b"".join(base64.b64decode(it["data"]) for it in updates if it["sessionUpdate"] == "terminal_output_chunk")


async def test_a_command_is_shown_as_a_terminal_with_all_of_its_bytes(speak, tmp_path):
    results = []
    async with speak(runner(PRINT_IN_PIECES, results)) as client:
        await client.inserted(client.prompt(await client.new(cwd=str(tmp_path))))
        seen = await client.until("state_update", state="idle")
        terminals = [it for it in seen if it["sessionUpdate"] == "terminal_update"]
        first, last = terminals
        assert first["cwd"] == str(tmp_path)
        assert first["command"].startswith(sys.executable)
        assert first["capabilities"] == {"cancel": {}}
        assert (last["exitStatus"], last["capabilities"]) == ({"exitCode": 3}, None)
        assert output_of(seen).decode() == "one \U0001f600 two\n"
        [shown] = [item for it in seen if isinstance(it.get("content"), list) for item in it["content"]]
        assert shown == {"type": "terminal", "terminalId": first["terminalId"]}
        statuses = [it["status"] for it in seen if "status" in it]
        assert statuses[-1] == "completed"
        assert seen.index(last) < max(seen.index(it) for it in seen if it.get("status") == "completed")
    assert [(it.output, it.exit_code, it.timed_out) for it in results] == [("one \U0001f600 two\n", 3, False)]


async def test_a_terminal_can_be_cancelled_by_the_client(speak, tmp_path):
    results = []
    async with speak(runner(WAIT, results)) as client:
        session_id = await client.new(cwd=str(tmp_path))
        await client.inserted(client.prompt(session_id))
        chunk = (await client.until("terminal_output_chunk"))[-1]
        params = {"sessionId": session_id, "terminalId": chunk["terminalId"]}
        assert await client.request("terminal/cancel", params) == {}
        ended = (await client.until("terminal_update"))[-1]
        assert ended["exitStatus"]["signal"] == "SIGTERM"
        await client.until("state_update", state="idle", stopReason="end_turn")
        await client.expect_error(client.call("terminal/cancel", params), -32602)
    assert [it.signal for it in results] == ["SIGTERM"]


async def test_a_cancelled_turn_ends_its_command(speak, tmp_path):
    async with speak(runner(WAIT)) as client:
        session_id = await client.new(cwd=str(tmp_path))
        await client.inserted(client.prompt(session_id))
        await client.until("terminal_output_chunk")
        client.cancel(session_id)
        seen = await client.until("state_update", state="idle", stopReason="cancelled")
        assert [it["exitStatus"]["signal"] for it in seen if "exitStatus" in it] == ["SIGTERM"]


async def test_a_command_is_killed_after_its_time(speak, tmp_path):
    results = []
    async with speak(runner(WAIT, results, timeout=0.05)) as client:
        await client.inserted(client.prompt(await client.new(cwd=str(tmp_path))))
        await client.until("state_update", state="idle", stopReason="end_turn")
    assert [(it.timed_out, it.signal) for it in results] == [(True, "SIGTERM")]


@pytest.mark.parametrize("lends", [False, True])
async def test_in_version_1_it_is_the_client_s_terminal_or_text(tmp_path, lends):
    results = []
    client = accord.Client(terminals=True) if lends else accord.Client()
    source = "import os; print('hello', os.environ['ACCORD_TEST'])"
    async with accord.connect(runner(source, results), client, versions=(1,)) as remote:
        session = await remote.new_session(tmp_path)
        outcome = await session.prompt("go")
        [call] = outcome.tool_calls
        [content] = call.content
        assert isinstance(content, v1.Terminal if lends else v1.Content)
        assert lends or content.content.text == "```\nhello 1\n```"
        assert call.status == "completed"
    assert [(it.output, it.exit_code) for it in results] == [("hello 1\n", 0)]


async def test_a_command_that_does_not_exist_fails_its_tool_call(speak, tmp_path, caplog):
    agent = Agent("wrong")

    @agent.on_prompt
    async def run(turn):
        async with turn.tool("Run it") as tool, tool.command(["accord-has-no-such-program"]):
            pass

    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new(cwd=str(tmp_path))))
        seen = await client.until("state_update", state="idle", stopReason="error")
        assert [it["status"] for it in seen if "status" in it][-1] == "failed"
    assert "accord-has-no-such-program" in caplog.text


@pytest.mark.parametrize("command", ["make test", []])
async def test_what_is_no_command_is_refused(speak, command):
    refused = []
    agent = Agent("wrong")

    @agent.on_prompt
    async def run(turn):
        async with turn.tool("Run it") as tool:
            with pytest.raises((TypeError, ValueError), match="a program and its arguments") as raised:
                tool.command(command)
            refused.append(raised.type)

    async with speak(agent) as client:
        await client.inserted(client.prompt(await client.new()))
        await client.until("state_update", state="idle", stopReason="end_turn")
    assert len(refused) == 1


# Files


def editor_of_files(outcome):
    agent = Agent("editor")

    @agent.on_prompt
    async def edit(turn):
        text = await turn.files.read("a.txt", line=2, limit=1)
        await turn.files.write("b.txt", text.upper())
        for work in turn.files.read("/etc/hostname"), turn.files.write("../c.txt", "c"), turn.files.read("none.txt"):
            with pytest.raises(PeerError) as raised:
                await work
            outcome.append((raised.value.method, raised.value.code))

    return agent


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("lends", [False, True])
async def test_files_are_the_client_s_or_those_inside_the_session_s_folders(tmp_path, version, lends):
    outcome = []
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    files = accord.Files()
    client = accord.Client(files=files) if lends else accord.Client()
    async with accord.connect(editor_of_files(outcome), client, versions=(version,)) as remote:
        session = await remote.new_session(folder)
        await session.prompt("go")
    assert (folder / "b.txt").read_text() == "TWO\n"
    assert not (tmp_path / "c.txt").exists()
    assert [code for _, code in outcome] == [-32602, -32602, -32002]
    assert [method for method, _ in outcome] == ["fs/read_text_file", "fs/write_text_file", "fs/read_text_file"]
    assert len(list(files.changes)) == (1 if lends and version == 1 else 0)


async def test_a_command_in_the_background_is_listed_as_long_as_it_runs(speak, tmp_path):
    done = asyncio.Event()
    agent = Agent("server")

    async def serve(turn):
        async with (
            turn.tool("Serve", background=True) as tool,
            tool.command([sys.executable, "-c", WAIT]) as command,
        ):
            await command.wait()
        done.set()

    @agent.on_prompt
    async def begin(turn):
        turn.session.start(serve(turn))

    async with speak(agent) as client:
        session_id = await client.new(cwd=str(tmp_path))
        await client.inserted(client.prompt(session_id))
        chunk = (await client.until("terminal_output_chunk"))[-1]
        request = client.call("terminal/cancel", {"sessionId": session_id, "terminalId": chunk["terminalId"]})
        seen = []
        while (message := await client.receive()).get("id") != request:
            seen.append(message["params"]["update"])  # a line may come in two parts
        seen += await client.until("state_update", background=[])
        assert [it["status"] for it in seen if "status" in it] == ["completed"]
        await asyncio.wait_for(done.wait(), 30)


@pytest.mark.parametrize("version", [1, 2])
async def test_local_services_that_are_listed_limit_what_is_done_on_this_machine(tmp_path, version):
    (tmp_path / "a.txt").write_text("one")
    missing = []
    agent = Agent("reader", local=[accord.Files(write=False)])

    @agent.on_prompt
    async def work(turn):
        await turn.say(await turn.files.read("a.txt"))
        with pytest.raises(accord.CapabilityMissing) as writing:
            await turn.files.write("a.txt", "two")
        with pytest.raises(accord.CapabilityMissing) as running:
            async with turn.tool("Run it") as tool, tool.command(["touch", "b.txt"]):
                pass
        missing.extend((writing.value.capability, running.value.capability))

    async with accord.connect(agent, versions=(version,)) as remote:
        session = await remote.new_session(tmp_path)
        assert (await session.prompt("go")).text == "one"
    assert missing == ["fs.write_text_file", "terminal"]
    assert [it.name for it in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "one"
