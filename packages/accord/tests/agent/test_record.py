"""A session's record: which updates it keeps, in which version, and what it tells each client again."""

import json
import sqlite3
from pathlib import Path

import pytest

from accord import Agent, Handlers, MemoryStore, Peer, SqliteStore, StoreError, connect, memory_pair, v1
from accord.agent.record import Record
from accord.schema import codec, v2
from accord.session import SessionState
from accord.store import StoredSession
from accord.testing import ScriptedPeer

CWD = "/project"
OLD = Path(__file__).with_name("store_of_version_1.sql")
"""The store of a session that Accord wrote before it knew version 2, as SQL."""
OF_BOTH = Path(__file__).with_name("store_of_both_versions.sql")
"""The store of the same conversation in version 1 and 2, from before both had one vocabulary, as SQL."""


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path):
    async with MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "sessions.sqlite3") as store:
        yield store


@pytest.fixture
def old_store(tmp_path):
    return restored(OLD, tmp_path)


def restored(dump, folder):
    path = folder / "old.sqlite3"
    connection = sqlite3.connect(path)
    connection.executescript(dump.read_text())
    connection.close()
    return SqliteStore(path)


async def opened(store, version, session_id="s"):
    """The record of this session, which begins now or is continued by a client that speaks this version."""
    if await store.find(session_id) is None:
        await store.create(StoredSession(id=session_id, cwd=CWD))
    return Record(store, await store.take(session_id), version)


async def kept(store, session_id="s"):
    return [json.loads(entry) async for page in store.updates(session_id) for entry in page]


async def replayed(record, version):
    """What a client is told when it loads the session."""
    here, there = memory_pair()
    frames = []
    async with ScriptedPeer(there) as client, Peer(here, Handlers(), role="agent") as peer:
        await record.replay(peer)
        peer.connection.tell(b'{"jsonrpc":"2.0","method":"_end"}')
        while (message := await client.receive())["method"] != "_end":
            frames.append(message["params"]["update"])
    update = v1.SessionUpdate if version == 1 else v2.SessionUpdate
    return [codec.convert(frame, update) for frame in frames]


def folded(updates):
    state = SessionState()
    state.add_all(updates)
    return state


def said(state):
    return [(message.speaker, message.text) for message in state.messages]


async def converse(record, *updates):
    for update in updates:
        assert record.keep_now(update) or await record.keep(update)


# What is kept


async def test_an_update_of_version_2_is_kept_with_its_version_and_sent_without(store):
    record = await opened(store, 2)
    chunk = v2.AgentMessageChunk.of("Hi", v2.MessageId("m"))
    frame = record.keep_now(chunk) or await record.keep(chunk)
    update = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "Hi"},
        "messageId": "m",
    }
    assert json.loads(frame) == {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "s", "update": update},
    }
    assert await kept(store) == [[2, update]]


async def test_an_update_of_version_1_is_kept_as_it_is(store):
    record = await opened(store, 1)
    await converse(record, v1.Plan.of("x"))
    [update] = await kept(store)
    assert update["sessionUpdate"] == "plan"


async def test_states_notices_and_commands_are_not_kept_but_why_work_has_ended_is(store):
    record = await opened(store, 2)
    for update in (
        v2.SessionStateUpdate("running"),
        v2.Notice("info", "now"),
        v2.AvailableCommandsUpdate([]),
        v2.SessionStateUpdate("idle"),
    ):
        assert record.keep_now(update) is None
        assert json.loads(await record.keep(update))["params"]["update"]["sessionUpdate"]
    assert await kept(store) == []
    end = v2.SessionStateUpdate("idle", "end_turn", v1.Usage(8, 3, 5))
    await record.keep(end)
    assert (await record.history()).last_end == end
    assert await replayed(record, 2) == [v2.ReplayComplete()]


async def test_a_prompt_of_version_2_is_one_message_and_a_title_of_version_2_is_the_session_s(store):
    record = await opened(store, 2)
    [_, title] = await record.keep_prompt([v1.TextContent("Look"), v2.TextContent("here")], "Look")
    assert json.loads(title) == {"sessionUpdate": "session_info_update", "title": "Look"}
    [echo] = record.prompt_updates([v1.TextContent("Look"), v2.TextContent("here")])
    assert echo == v2.UserMessage.of(v2.MessageId(record.id_for("user")), "Look", "here")
    assert [version for version, _ in await kept(store)] == [2, 2]
    await record.keep(v2.SessionInfoUpdate("Other"))
    assert (record.title, (await store.find("s")).title) == ("Other", "Other")


async def test_a_refused_prompt_of_version_2_is_forgotten_with_what_followed_it(store):
    record = await opened(store, 2)
    await record.keep_prompt([v1.TextContent("good")])
    await converse(record, v2.AgentMessage.of(v2.MessageId("a"), "fine"))
    await record.keep_prompt([v1.TextContent("bad")])
    await converse(record, v2.AgentMessage.of(v2.MessageId("b"), "no"))
    await record.forget_prompt()
    assert said(await record.history()) == [("user", "good"), ("agent", "fine")]


async def test_the_usage_is_told_again_with_the_cost_that_an_earlier_update_gave(store):
    record = await opened(store, 2)
    assert await record.usage() is None
    await converse(record, v2.UsageUpdate(1, 10, v1.Cost(1.5, "EUR")), v2.UsageUpdate(5, 10))
    assert json.loads(await record.usage())["params"]["update"] == {
        "sessionUpdate": "usage_update",
        "used": 5,
        "size": 10,
        "cost": {"amount": 1.5, "currency": "EUR"},
    }


# Both versions in one record


async def test_a_session_is_continued_and_replayed_in_the_other_version(store):
    first = await opened(store, 1)
    await first.keep_prompt([v1.TextContent("one")])
    await converse(
        first,
        v1.AgentMessageChunk.of("fi", v1.MessageId("a1")),
        v1.AgentMessageChunk.of("ne", v1.MessageId("a1")),
        v1.ToolCall(v1.ToolCallId("t1"), "Look", "read", "completed"),
    )
    second = await opened(store, 2)
    await second.keep_prompt([v1.TextContent("two")])
    await converse(
        second,
        v2.AgentMessageChunk.of("wrong", v2.MessageId("a2")),
        v2.AgentMessage.of(v2.MessageId("a2"), "right"),
        v2.ToolCallProgress(v2.ToolCallId("t2"), "Edit", status="cancelled"),
    )
    for version in (1, 2):
        state = folded(await replayed(await opened(store, version), version))
        assert said(state) == [("user", "one"), ("agent", "fine"), ("user", "two"), ("agent", "right")]
        assert [message.id for message in state.messages][1::2] == ["a1", "a2"]
        assert [call.status for call in state.tool_calls.values()] == [
            "completed",
            "cancelled" if version == 2 else "failed",
        ]


async def test_a_client_of_version_1_loads_a_session_that_was_written_in_version_2(store, serve):
    record = await opened(store, 2)
    await record.keep_prompt([v1.TextContent("Hi")], "Hi")
    await converse(record, v2.AgentMessage.of(v2.MessageId("a"), "Hello"))
    agent = Agent("continues", store=store)
    seen = []

    @agent.on_prompt
    async def work(turn):
        seen.extend(said(await turn.session.history()))

    async with serve(agent) as editor:
        await editor.request(v1.LoadSessionRequest("s", CWD, []))
        state = folded(editor.updates)
        await editor.prompt("s", "more")
    assert (said(state), state.title) == ([("user", "Hi"), ("agent", "Hello")], "Hi")
    assert seen == [("user", "Hi"), ("agent", "Hello"), ("user", "more")]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_store_from_before_version_2_is_read_and_continued(old_store, version):
    async with old_store:
        record = await opened(old_store, version, "old-session")
        state = folded(await replayed(record, version))
        assert said(state) == [("user", "Look around, please"), ("thought", "Hm, yes"), ("agent", "I found nothing.")]
        [call] = state.tool_calls.values()
        assert (call.title, call.kind, call.status, call.text) == (
            "Look around",
            "search",
            "completed",
            "nothing there",
        )
        assert [step.content for step in state.plan] == ["Look", "Tell"]
        assert (state.title, state.usage) == ("Look around, please", v1.UsageUpdate(8, 100))
        await record.keep_prompt([v1.TextContent("more")])
        assert said(await record.history())[-1] == ("user", "more")


async def test_what_a_crash_left_open_in_version_2_is_closed_once(store):
    record = await opened(store, 2)
    await converse(
        record,
        v2.ToolCallProgress(v2.ToolCallId("t"), "Run", status="in_progress"),
        v2.TerminalUpdate(v2.TerminalId("x"), "make"),
    )
    state = folded(await replayed(record, 2))
    assert {call.id: call.status for call in state.tool_calls.values()} == {"t": "failed"}
    assert state.terminals[v2.TerminalId("x")].exit_status == v2.TerminalExitStatus()
    count = len(await kept(store))
    await replayed(record, 2)
    assert len(await kept(store)) == count


# Records that cannot be read


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (b'[3,{"sessionUpdate":"plan"}]', "newer_format"),
        (b'[2,{"sessionUpdate":"agent_message"}]', "damaged"),
        (b"[]", "damaged"),
        (b"[x,{}]", "damaged"),
        (b'[2,{"sessionUpdate":"agent_message"}', "damaged"),
        (b"2", "damaged"),
    ],
)
async def test_an_entry_that_cannot_be_read_is_an_error_of_the_store(store, entry, reason):
    record = await opened(store, 2)
    await store.write(await store.take("s"), [entry])
    with pytest.raises(StoreError) as caught:
        await record.history()
    assert caught.value.reason == reason


async def test_an_update_that_nobody_knows_comes_back_as_it_was(store):
    record = await opened(store, 2)
    raw = {"sessionUpdate": "weather_update", "n": [1, None], "text": "\ud83d"}
    await converse(record, codec.convert(raw, v2.SessionUpdate))
    [update, complete] = await replayed(record, 2)
    assert (update.raw, complete) == (raw, v2.ReplayComplete())


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("session_id", ["1fb6e6e3044c40eca04db1900b1049a2", "902234d0f8024991905e54b49857c181"])
async def test_a_session_stored_in_either_version_loads_in_both(tmp_path, session_id, version):
    store = restored(OF_BOTH, tmp_path)
    agent = Agent("historian", store=store)
    agent.on_prompt(lambda turn: turn.say("no"))
    async with store, connect(agent, versions=(version,)) as remote:
        session = await remote.load(session_id, "/project")
        state = session.state
        assert [(it.speaker, it.text) for it in state.messages] == [
            ("user", "Look around, please"),
            ("thought", "Hm"),
            ("agent", "Done. Bye."),
        ]
        calls = list(state.tool_calls.values())
        assert [(it.title, it.kind, it.status) for it in calls] == [
            ("Read it", "read", "completed"),
            ("Edit it", "edit", "completed"),
        ]
        assert calls[0].text == "one two"
        assert calls[0].raw_input == {"path": "a.py"}
        assert [it.path for it in calls[0].locations] == ["/project/a.py"]
        assert [(it.content, it.status) for it in state.plan] == [("Look", "completed"), ("Change", "pending")]
        assert [it.title for it in state.subagents.values()] == ["Look for callers"]
        assert [block.text for it in state.compactions.values() for block in it.summary] == ["So far: nothing"]
        assert (state.usage.used, state.usage.size, state.usage.cost.amount) == (10, 100, 0.5)
        assert (state.title, state.meta) == ("Look around, please", {"color": "red"})
