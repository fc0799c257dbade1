"""Sessions of the coding agent: kept, loaded, continued after a crash, and given to another client."""

import asyncio
import sys

import pytest

import accord
from accord_tools.coder.coding_agent import coding_agent
from tests.coder.conftest import call, text_of
from tests.waiting import eventually


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


async def test_the_model_of_a_rewound_session_knows_only_what_was_said_before(opened, script, model):
    script.say("I remember 7.", "I remember 8.", "It was 7.")
    async with opened() as session:
        await session.prompt("Remember 7")
        await session.prompt("Remember 8")
        first = next(it for it in session.state.messages if it.speaker == "agent")
        fork = await session.fork(at=first.id)
        assert (await fork.prompt("What was it?")).text == "It was 7."
    asked = text_of(model.bodies[-1])
    assert "Remember 7" in asked
    assert "I remember 7." in asked
    assert "Remember 8" not in asked


async def test_two_clients_work_on_two_sessions_at_once(opened, script):
    script.entries += [lambda asked: f"You said {asked.text}."] * 2
    async with opened() as one, opened() as two:
        replies = await asyncio.gather(one.prompt("one"), two.prompt("two"))
    assert [it.text for it in replies] == ["You said one.", "You said two."]


ONE_API = pytest.mark.parametrize("api", ["openai"])
"""For what does not depend on the API."""


@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_loads_the_session_of_another_process(script, model, project, tmp_path, version):
    command = [sys.executable, "-m", "accord", "agent", "--api", "openai", "--base-url", f"{model.url}/v1"]
    command += ["--model", "fake", "--store", str(tmp_path / "sessions.sqlite3")]
    script.say("I know of 7.", "It was 7.")
    async with accord.connect(command, versions=(version,)) as one:
        session = await one.new_session(project)
        await session.prompt("Remember 7")
        async with accord.connect(command, versions=(version,)) as other:
            assert [it.session_id async for it in other.sessions()] == [session.id]
            loaded = await other.load(session.id, project)
            assert [it.text for it in loaded.state.messages] == ["Remember 7", "I know of 7."]
            assert (await loaded.prompt("What was it?")).text == "It was 7."
        with pytest.raises(accord.PeerError) as taken:  # a session is open in one place
            await session.prompt("Are you mine?")
        assert taken.value.data == {"sessionId": session.id, "reason": "taken"}
        assert not session.is_open
    assert "Remember 7" in text_of(model.bodies[-1])


@ONE_API
async def test_a_session_is_listed_forked_resumed_closed_and_deleted(settings, script, project, tmp_path):
    script.say("I know of 7.", "It was 7.", "Still 7.")
    agent = coding_agent(settings, version="0", store=tmp_path / "sessions.sqlite3", unstable=True)
    async with accord.connect(agent, unstable=True) as remote:
        session = await remote.new_session(project)
        await session.prompt("Remember 7")
        copy = await session.fork()
        assert (await copy.prompt("What was it?")).text == "It was 7."
        await session.close()
        again = await remote.resume(session.id, project)
        assert (await again.prompt("And now?")).text == "Still 7."
        listed = {it.session_id: it.title async for it in remote.sessions()}
        assert listed[session.id] == "Remember 7"
        assert set(listed) == {session.id, copy.id}
        await remote.delete(copy.id)
        assert [it.session_id async for it in remote.sessions()] == [session.id]


@ONE_API
async def test_a_cleared_conversation_is_forgotten(opened, script, model):
    script.say("I know of 7.", "Of nothing.")
    async with opened() as session:
        await session.prompt("Remember 7")
        await session.prompt("/clear")
        await session.prompt("What do you know of?")
    assert "Remember 7" not in text_of(model.bodies[-1])


@ONE_API
async def test_a_session_offers_models_efforts_modes_and_commands(opened):
    async with opened() as session:
        state = session.state
        assert [it.id for it in state.modes] == ["ask", "edit", "auto", "plan"]
        categories = {it.config_id: it.category for it in state.config}
        assert categories["effort"] == "thought_level"
        assert "model" in categories.values()
        assert "fake" in {it.model_id for it in state.models}
        await eventually(lambda: {it.name for it in state.commands} == {"compact", "clear", "status", "init"})
