"""Sessions of the coding agent: kept, loaded, continued after a crash, and given to another client."""

import asyncio
import sys

import pytest

import accord
from tests.coder.conftest import call, text_of


async def test_a_session_is_continued_by_another_agent(opened, script, model):
    script.say("I remember.")
    async with opened() as session:
        await session.prompt("Remember 7")
        name = session.id
    script.say("It was 7.")
    async with opened(load=name) as session:
        assert [it.text for it in session.state.messages] == ["Remember 7", "I remember."]
        assert (await session.prompt("What was it?")).text == "It was 7."
    assert "Remember 7" in text_of(model.bodies[-1])


async def test_a_session_whose_agent_was_killed_in_a_tool_goes_on(script, model, project, tmp_path, api):
    url = model.url + ("" if api == "anthropic" else "/v1")
    command = [sys.executable, "-m", "accord", "agent", "--api", api, "--base-url", url, "--model", "fake"]
    command += ["--mode", "auto", "--store", str(tmp_path / "sessions.sqlite3")]
    script.say(call("run_command", command="kill -9 $PPID"))  # the shell's parent is the agent
    async with accord.connect(command) as remote:
        session = await remote.new_session(project)
        with pytest.raises(accord.ConnectionClosed, match="killed by signal 9"):
            await session.prompt("End yourself")
    script.say("I was away.")
    async with accord.connect(command) as remote:
        again = await remote.load(session.id, project)
        assert (await again.prompt("Are you there?")).text == "I was away."
    assert "it may have been done or not" in text_of(model.bodies[-1])


async def test_two_clients_work_on_two_sessions_at_once(opened, script):
    script.entries += [lambda asked: f"You said {asked.text}."] * 2
    async with opened() as one, opened() as two:
        replies = await asyncio.gather(one.prompt("one"), two.prompt("two"))
    assert [it.text for it in replies] == ["You said one.", "You said two."]
