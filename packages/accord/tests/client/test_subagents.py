"""Subagents of a session, as the client reads them: over the wire of both versions, in memory and over stdio."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

import accord
from accord import CapabilityMissing, Client, updates, v1
from accord.client.remote_subagent import MOST_TRANSCRIPTS
from tests.client.conftest import staged
from tests.client.delegating_agent import agent as delegating
from tests.client.v2.conftest import staged_v2
from tests.waiting import eventually

PROGRAM = Path(__file__).with_name("delegating_agent.py")


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def stage(request):
    """A client of ours, and an agent of either version that the test plays."""
    return staged if request.param == 1 else staged_v2


@pytest.fixture(params=[(1,), (2, 1)], ids=["v1", "v2"])
def versions(request):
    """The versions that the client offers; the delegating agent speaks both."""
    return request.param


@pytest.fixture(params=["memory", "stdio"])
def target(request):
    """The delegating agent, in this process or in one of its own."""
    return delegating if request.param == "memory" else [sys.executable, str(PROGRAM)]


def announce(agent, subagent, *, parent="s", **fields):
    agent.update({"sessionUpdate": "subagent_update", "sessionId": subagent, **fields}, parent)


def say(agent, text, session_id):
    agent.say(text, session_id, messageId="m")


async def everything_read(stage):
    """All that the agent has sent so far has been handled."""
    call = stage.agent.call("_nothing")
    await stage.agent.expect_error(call)


async def test_a_subagent_is_read_like_a_session(stage):
    async with stage() as on:
        session = await on.session()
        announce(on, "c1", title="Look", description="for callers", state={"state": "running"}, cwd="/other")
        say(on, "Two ", "c1")
        say(on, "places", "c1")
        await everything_read(on)
        (subagent,) = session.subagents.values()
        assert (subagent.id, subagent.parent_id) == ("c1", "s")
        assert (subagent.title, subagent.description, subagent.reported_cwd) == ("Look", "for callers", "/other")
        assert (subagent.status, subagent.stop_reason) == ("running", None)
        assert subagent.text == "Two places"
        assert session.state.messages == []
        announce(
            on, "c1", title=None, state={"state": "idle", "stopReason": "error", "error": {"code": 1, "message": "no"}}
        )
        await everything_read(on)
        assert (subagent.title, subagent.status, subagent.stop_reason) == (None, "idle", "error")
        assert subagent.error.message == "no"
        assert session.subagents["c1"] is subagent


async def test_what_a_subagent_says_before_it_is_announced_is_kept(stage):
    async with stage() as on:
        session = await on.session()
        say(on, "early", "c1")
        await everything_read(on)
        assert session.subagents == {}
        announce(on, "c1", title="Late", state={"state": "running"})
        await everything_read(on)
        assert session.subagents["c1"].text == "early"


async def test_subagents_have_subagents(stage):
    async with stage() as on:
        session = await on.session()
        announce(on, "c1", title="Outer")
        announce(on, "c2", parent="c1", title="Inner")
        say(on, "deep", "c2")
        await everything_read(on)
        assert list(session.subagents) == ["c1"]
        inner = session.subagents["c1"].subagents["c2"]
        assert (inner.title, inner.text, inner.parent_id) == ("Inner", "deep", "c1")


async def test_the_updates_of_a_subagent_can_be_followed_live(stage):
    async with stage() as on:
        session = await on.session()
        announce(on, "c1", title="Look")
        await everything_read(on)
        subagent = session.subagents["c1"]
        changes = []
        subagent.on_change(changes.append)
        following = asyncio.create_task(anext(subagent.updates()))
        await asyncio.sleep(0)
        say(on, "news", "c1")
        assert (await following).content.text == "news"
        assert len(changes) == 1


async def test_following_a_subagent_ends_with_its_session():
    async with staged(capabilities={"sessionCapabilities": {"close": {}}}) as on:
        session = await on.session()
        announce(on, "c1", title="Look")
        await everything_read(on)
        subagent = session.subagents["c1"]
        following = asyncio.create_task(collected(subagent.updates()))
        await asyncio.sleep(0)
        closing = asyncio.create_task(session.close())
        on.agent.answer(await on.agent.expect("session/close"))
        await closing
        assert await following == []


async def collected(updates):
    return [update async for update in updates]


async def test_a_subagent_is_cancelled_only_where_its_agent_allows_it_now(stage):
    async with stage() as on:
        session = await on.session()
        announce(on, "c1", title="Look", capabilities={})
        await everything_read(on)
        subagent = session.subagents["c1"]
        assert not subagent.can_cancel
        with pytest.raises(CapabilityMissing, match="cancelling it alone"):
            await subagent.cancel()
        announce(on, "c1", capabilities={"cancel": {}})
        await everything_read(on)
        assert subagent.can_cancel
        await subagent.cancel()
        cancel = await on.agent.receive()
        assert (cancel["method"], cancel["params"]) == ("session/cancel", {"sessionId": "c1"})


async def test_a_subagent_works_in_the_folders_that_the_user_gave(tmp_path):
    """An agent that says that a subagent works in `/` must not read there."""
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "project").mkdir()
    async with staged(Client(files=True)) as on:
        await on.session(cwd=str(tmp_path / "project"))
        announce(on, "c1", title="Look", cwd=str(tmp_path), additionalDirectories=[str(tmp_path)])
        asked = on.agent.call("fs/read_text_file", {"sessionId": "c1", "path": str(tmp_path / "mine.txt")})
        await on.agent.expect_error(asked)


async def test_a_subagent_cannot_be_prompted_or_closed():
    assert not {"prompt", "close", "fork", "set_mode", "set_config"} & set(dir(accord.RemoteSubagent))


async def test_a_session_keeps_what_its_latest_subagents_said():
    async with staged() as on:
        session = await on.session()
        for number in range(MOST_TRANSCRIPTS + 5):
            announce(on, f"c{number}", title=str(number))
            say(on, "hello", f"c{number}")
            if number == 0:
                await everything_read(on)
                following = asyncio.create_task(collected(session.subagents["c0"].updates()))
        await everything_read(on)
        await following  # it ends with what is kept
        kept = session.subagents
        assert list(kept) == [f"c{number}" for number in range(5, MOST_TRANSCRIPTS + 5)]
        assert {it.text for it in kept.values()} == {"hello"}


async def test_a_question_of_a_subagent_reaches_the_function_that_answers(target, versions):
    questions = []

    async def allow(question):
        questions.append(question)
        return True

    async with accord.connect(target, Client(permissions=allow), unstable=True, versions=versions) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("ask")).text == "done"
        (subagent,) = session.subagents.values()
        assert subagent.text == "Two places: True"
        (question,) = questions
        assert question.session is subagent
        assert question.session.cwd == Path("/")
        assert [call.status for call in subagent.state.tool_calls.values()] == ["completed"]


async def test_a_subagent_is_cancelled_and_its_turn_goes_on(target, versions):
    async with accord.connect(target, unstable=True, versions=versions) as remote:
        session = await remote.new_session("/")
        reply = session.prompt("wait")
        await eventually(lambda: any(it.text for it in session.subagents.values()))
        (subagent,) = session.subagents.values()
        await subagent.cancel()
        assert (await reply).text == "cancelled"
        assert (subagent.status, subagent.stop_reason) == ("idle", "cancelled")


async def test_a_loaded_session_has_its_subagents_again(target, versions):
    async with accord.connect(target, unstable=True, versions=versions) as remote:
        session = await remote.new_session("/")
        await session.prompt("go")
        await session.close()
        loaded = await remote.load(session.id, "/")
        (subagent,) = loaded.subagents.values()
        assert (subagent.title, subagent.text, subagent.stop_reason) == ("Look for callers", "Two places", "end_turn")
        assert [it.text for it in loaded.state.messages if it.speaker == "agent"] == ["done"]


async def test_a_client_that_does_not_ask_for_subagents_gets_a_tool_call(target):
    def without_subagents(declared):
        return msgspec.structs.replace(declared, subagents=None)

    async with accord.connect(target, client=Client("editor", capabilities=without_subagents)) as remote:
        session = await remote.new_session("/")
        outcome = await session.prompt("go")
        assert session.subagents == {}
        assert [(it.title, it.text) for it in outcome.tool_calls] == [("Look for callers", "Two places")]


async def test_a_reply_can_be_read_with_its_subagents(target, versions):
    async with accord.connect(target, versions=versions) as remote:
        session = await remote.new_session("/")
        reply = session.prompt("go", subagents=True)
        told = [(subagent and subagent.title, update) async for subagent, update in reply.with_subagents()]
    kinds = (updates.SubagentUpdate, updates.SessionMessage, updates.AgentMessageChunk)
    read = [(who, kind) for who, update in told for kind in kinds if isinstance(update, kind)]
    assert read == [
        (None, updates.SubagentUpdate),
        (None, updates.SessionMessage),
        ("Look for callers", updates.SessionMessage),
        ("Look for callers", updates.AgentMessageChunk),
        (None, updates.SubagentUpdate),
        (None, updates.AgentMessageChunk),
    ]


async def test_iterating_such_a_reply_skips_the_subagents():
    async with accord.connect(delegating) as remote:
        session = await remote.new_session("/")
        read = [type(update) async for update in session.prompt("go", subagents=True)]
        assert read == [v1.SubagentUpdate, v1.SessionMessage, v1.SubagentUpdate, v1.AgentMessageChunk]
        with pytest.raises(ValueError, match="subagents=True"):
            await anext(session.prompt("go").with_subagents())


async def test_cancelling_a_turn_answers_the_open_questions_of_its_subagents():
    asked = asyncio.Event()

    async def never(_):
        asked.set()
        await asyncio.Event().wait()

    async with accord.connect(delegating, Client(permissions=never), unstable=True) as remote:
        session = await remote.new_session("/")
        reply = session.prompt("ask")
        await asked.wait()
        assert (await reply.cancel()).stop_reason == "cancelled"
        (subagent,) = session.subagents.values()
        assert subagent.stop_reason == "cancelled"
