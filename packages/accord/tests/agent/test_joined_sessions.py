"""A session that works and is opened from another connection: the work goes on, and the session comes over after it."""

import asyncio
import contextlib

import pytest

import accord
from accord import MemoryStore, PeerError
from accord.http import serving
from accord.testing import ScriptedPeer
from tests.waiting import DEADLINE, eventually

VERSIONS = [(1, 1), (2, 1), (1, 2), (2, 2)]
"""The versions of the client that works and of the one that joins."""


class SlowStore(MemoryStore):
    """Finds sessions, or reads their updates, only while `door` is open."""

    def __init__(self):
        super().__init__()
        self.door, self.asked = asyncio.Event(), asyncio.Event()
        self.door.set()
        self.slow = ""

    def shut(self, slow):
        self.slow = slow
        self.door.clear()
        self.asked.clear()

    async def passed(self, call):
        if call == self.slow:
            self.asked.set()
            await self.door.wait()

    async def find(self, *args, **options):
        await self.passed("find")
        return await super().find(*args, **options)

    async def updates(self, *args, **options):
        await self.passed("updates")
        async for page in super().updates(*args, **options):
            yield page


class Stage:
    """An agent whose turns say what the test allows, word by word, until they are told to end."""

    def __init__(self, store=None, **options):
        self.words = asyncio.Queue()
        self.ran = []
        self.seen = asyncio.Event()
        self.agent = agent = accord.Agent("stage", store=store or MemoryStore(), **options)
        agent.command("review", "Review")(lambda _: None)

        @agent.on_session
        async def opened(session):
            await session.modes.offer(["ask", "code"])

        @agent.on_prompt
        async def work(turn):
            self.ran.append(turn.text)
            match turn.text:
                case "watch":
                    begun = asyncio.Event()
                    turn.session.start(self.watch(turn, begun))
                    await begun.wait()
                case "short":
                    await turn.say("done")
                    return None
            while word := await self.words.get():
                if word == "refuse":
                    return "refusal"
                await turn.say(word)
            return None

    async def watch(self, turn, begun):
        async with turn.tool("Watch", background=True) as tool:
            begun.set()
            await self.seen.wait()
            await tool.text("seen")

    def says(self, *words):
        for word in words:
            self.words.put_nowait(word)


def texts(session):
    return [message.text for message in session.state.messages]


@contextlib.asynccontextmanager
async def working(stage, worker=2, joiner=2, text="go"):
    """A client whose session works and has said "a ", and another client of the same agent."""
    async with (
        accord.connect(stage.agent, versions=(worker,)) as one,
        accord.connect(stage.agent, versions=(joiner,)) as two,
    ):
        session = await one.new_session("/project")
        reply = session.prompt(text)
        stage.says("a ")
        await eventually(lambda: texts(session)[-1:] == ["a "])
        yield session, reply, two


@contextlib.asynccontextmanager
async def leaving(stage):
    """A client that leaves while its prompt works: its session and the prompt's key."""
    async with accord.connect(stage.agent, versions=(2,)) as one:
        session = await one.new_session("/project")
        key = session.prompt("go").idempotency_key
        stage.says("a ")
        await eventually(lambda: texts(session)[-1:] == ["a "])
        yield session, key


@pytest.mark.parametrize(("worker", "joiner"), VERSIONS)
async def test_the_work_goes_on_and_the_session_comes_over_after_it(worker, joiner):
    stage = Stage()
    async with working(stage, worker, joiner) as (session, reply, two):
        joined = await two.load(session.id, "/project")
        assert texts(joined) == ["go", "a "]
        stage.says("b ")
        await eventually(lambda: texts(joined)[-1] == "a b ")
        stage.says("c")
        await eventually(lambda: texts(joined)[-1] == "a b c")
        waiting = joined.prompt("short")
        stage.says("")
        assert (await reply).stop_reason == "end_turn"
        assert (await waiting).text == "done"
        assert texts(joined) == ["go", "a b c", "short", "done"]
        assert stage.ran == ["go", "short"]
        with pytest.raises(PeerError) as refused:
            await session.prompt("lost")
        assert refused.value.data["reason"] == "taken"
        await joined.close()
        again = await two.load(session.id, "/project")
        assert texts(again) == ["go", "a b c", "short", "done"]


@pytest.mark.parametrize(("open_as", "version"), [("load", 1), ("resume", 1), ("load", 2), ("resume", 2)])
async def test_the_past_comes_first_then_the_state_then_the_answer_then_what_happens(open_as, version):
    stage = Stage()
    async with working(stage, 2) as (session, reply, _):
        here, there = accord.memory_pair()
        serving_it = asyncio.create_task(stage.agent.serve(there))
        async with ScriptedPeer(here, deadline=DEADLINE) as client:
            await client.request("initialize", {"protocolVersion": version, "info": {"name": "e", "version": "1"}})
            params = {"sessionId": session.id, "cwd": "/project"}
            if version == 2:
                method = "session/resume"
                params |= {"replayFrom": {"type": "start"}} if open_as == "load" else {}
            else:
                method, params = f"session/{open_as}", params | {"mcpServers": []}
            opening = client.call(method, params)
            before = []
            while (message := await client.receive()).get("id") != opening:
                before.append(message["params"]["update"])
            before = [it for it in before if it["sessionUpdate"] != "session_info_update"]  # the title
            tags = [it["sessionUpdate"] for it in before]
            past = {1: ["user_message_chunk", "agent_message_chunk"], 2: ["user_message", "agent_message"]}[version]
            if open_as == "resume":
                assert tags == ([] if version == 1 else ["state_update"])
            else:
                assert tags[:2] == past
                assert tags[2:] == ([] if version == 1 else ["replay_complete", "state_update"])
            if version == 2:
                assert before[-1]["state"] == "running"
                assert message["result"]["availableCommands"][0]["name"] == "review"
            else:
                assert (await client.receive())["params"]["update"]["sessionUpdate"] == "available_commands_update"
            stage.says("b", "")
            assert (await reply).stop_reason == "end_turn"
            live = [(await client.receive())["params"]["update"] for _ in range(version)]
            assert live[0]["content"]["text"] == "b"
            if version == 2:
                assert (live[1]["state"], live[1]["stopReason"]) == ("idle", "end_turn")
        await serving_it


@pytest.mark.parametrize(("worker", "joiner"), VERSIONS)
async def test_a_cancel_of_who_joined_ends_the_work_and_its_own_waiting_prompts(worker, joiner):
    stage = Stage()
    async with working(stage, worker, joiner) as (session, reply, two):
        joined = await two.load(session.id, "/project")
        waiting = joined.prompt("short")
        outcome = await joined.cancel()
        assert outcome.stop_reason == "cancelled"
        assert (await reply).stop_reason == (await waiting).stop_reason == "cancelled"
        assert (await joined.prompt("short")).text == "done"
        assert stage.ran == ["go", "short"]


async def test_a_prompt_that_is_withdrawn_while_it_waits_is_cancelled_and_the_work_goes_on():
    stage = Stage()
    async with working(stage) as (session, reply, two):
        joined = await two.load(session.id, "/project")
        assert (await joined.prompt("short").cancel()).stop_reason == "cancelled"
        stage.says("b", "")
        assert (await reply).text == "a b"
        assert stage.ran == ["go"]


async def test_a_retry_from_another_connection_gets_the_message_of_the_running_prompt_at_once():
    stage = Stage()
    async with working(stage) as (session, reply, two):
        joined = await two.load(session.id, "/project")
        again = joined.prompt("go", idempotency_key=reply.idempotency_key)
        assert await again.inserted == await reply.inserted
        stage.says("b", "")
        assert (await reply).stop_reason == (await again).stop_reason == "end_turn"
        assert stage.ran == ["go"]


async def test_a_retry_whose_work_has_ended_with_its_connection_runs_again_once_the_session_has_come_over():
    store = SlowStore()
    stage = Stage(store)
    async with accord.connect(stage.agent, versions=(2,)) as two:
        async with leaving(stage) as (session, key):
            joined = await two.load(session.id, "/project")
            store.shut("find")
        await store.asked.wait()  # the session comes over
        again = joined.prompt("go", idempotency_key=key)
        assert [it.session_id async for it in two.sessions()] == [session.id]  # the prompt has arrived, too
        store.door.set()
        stage.says("b", "")
        assert (await again).stop_reason == "end_turn"
        assert stage.ran == ["go", "go"]


async def test_the_end_of_work_during_a_replay_is_not_the_end_of_the_retry_after_it():
    store = SlowStore()
    stage = Stage(store)
    async with accord.connect(stage.agent, versions=(2,)) as two:
        async with leaving(stage) as (session, key):
            store.shut("updates")
            joining = asyncio.create_task(two.load(session.id, "/project"))
            await store.asked.wait()
        store.door.set()
        again = (await joining).prompt("go", idempotency_key=key)
        stage.says("b", "")
        assert (await again).stop_reason == "end_turn"
        assert stage.ran == ["go", "go"]


async def test_work_that_ends_while_the_session_is_looked_up_ends_on_the_connection_that_opens_it():
    store = SlowStore()
    stage = Stage(store)
    async with working(stage) as (session, reply, two):
        store.shut("find")
        joining = asyncio.create_task(two.load(session.id, "/project"))
        await store.asked.wait()
        stage.says("b", "")
        assert (await reply).stop_reason == "end_turn"
        store.door.set()
        joined = await joining
        assert (await joined.prompt("short")).text == "done"
        assert texts(joined) == ["go", "a b", "short", "done"]


async def test_the_work_ends_with_its_own_connection_and_the_session_comes_over():
    stage = Stage()
    async with accord.connect(stage.agent, versions=(2,)) as two:
        async with accord.connect(stage.agent, versions=(2,)) as one:
            session = await one.new_session("/project")
            session.prompt("go")
            stage.says("a")
            await eventually(lambda: texts(session)[-1:] == ["a"])
            joined = await two.load(session.id, "/project")
            waiting = joined.prompt("short")
        assert (await waiting).text == "done"
        assert texts(joined) == ["go", "a", "short", "done"]


async def test_each_of_several_who_join_gets_the_session_when_no_other_works_in_it():
    stage = Stage()
    async with working(stage) as (session, reply, two), accord.connect(stage.agent, versions=(2,)) as three:
        second, third = await two.load(session.id, "/project"), await three.load(session.id, "/project")
        of_second, of_third = second.prompt("again"), third.prompt("short")
        stage.says("b", "")
        await reply
        stage.says("c", "")
        assert (await of_second).text == "c"
        assert (await of_third).text == "done"
        assert stage.ran == ["go", "again", "short"]
        assert texts(third) == ["go", "a b", "again", "c", "short", "done"]


async def test_what_who_joined_chooses_reaches_the_client_that_works():
    stage = Stage()
    async with working(stage, 1, 1) as (session, reply, two):
        joined = await two.load(session.id, "/project")
        await joined.set_mode("code")
        await eventually(lambda: session.state.mode == "code")
        stage.says("")
        await reply
        await joined.prompt("short")
        assert joined.state.mode == "code"


async def test_who_closes_a_session_that_it_has_joined_leaves_and_the_work_goes_on():
    stage = Stage()
    async with working(stage) as (session, reply, two):
        joined = await two.load(session.id, "/project")
        await joined.close()
        stage.says("b", "")
        assert (await reply).text == "a b"
        assert (await session.prompt("short")).text == "done"


async def test_a_join_ends_with_words_when_the_turn_that_it_saw_is_refused():
    stage = Stage()
    async with working(stage) as (session, reply, two):
        joined = await two.load(session.id, "/project")
        stage.says("refuse")
        assert (await reply).stop_reason == "refusal"
        await eventually(lambda: session.id not in two.open_sessions)
        assert "out of date" in joined.state.notices[-1].title
        assert (await session.prompt("short")).text == "done"


async def test_work_in_the_background_goes_on_until_a_prompt_of_who_joined_comes():
    stage = Stage()
    async with working(stage, text="watch") as (session, reply, two):
        stage.says("")
        await reply
        joined = await two.load(session.id, "/project")
        [call] = joined.state.tool_calls.values()
        assert (call.status, len(joined.state.background)) == ("in_progress", 1)
        stage.seen.set()
        await eventually(lambda: [it.text for it in joined.state.tool_calls.values()] == ["seen"])
        assert (await joined.prompt("short")).text == "done"
        assert not joined.state.background


async def test_a_prompt_does_not_wait_for_work_in_the_background():
    stage = Stage()
    async with working(stage, text="watch") as (session, reply, two):
        stage.says("")
        await reply
        joined = await two.load(session.id, "/project")
        assert (await joined.prompt("short")).text == "done"


async def test_another_folder_is_refused_and_the_work_goes_on():
    stage = Stage()
    async with working(stage) as (session, reply, two):
        with pytest.raises(PeerError, match="cwd must be the folder of the session"):
            await two.load(session.id, "/elsewhere")
        stage.says("")
        assert (await reply).stop_reason == "end_turn"


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_session_that_works_is_joined_over_the_network(scheme):
    stage = Stage()
    async with serving(stage.agent) as server:
        url = server.url.replace("http", scheme, 1)
        async with accord.connect(url, versions=(2,)) as one, accord.connect(url, versions=(2,)) as two:
            session = await one.new_session("/project")
            reply = session.prompt("go")
            stage.says("a ")
            await eventually(lambda: texts(session)[-1:] == ["a "])
            joined = await two.load(session.id, "/project")
            waiting = joined.prompt("short")
            stage.says("b", "")
            assert (await reply).stop_reason == "end_turn"
            assert (await waiting).text == "done"
            assert texts(joined) == ["go", "a b", "short", "done"]
