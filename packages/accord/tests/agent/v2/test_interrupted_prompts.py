"""A prompt whose agent, connection or client has died is sent again under its key: it is inserted and ends once."""

import asyncio
import random
import sys
from pathlib import Path

import pytest

import accord
from accord import MemoryStore, SqliteStore
from accord.http import SharedHost, serving
from accord.session.replay_scan import has_key, key_in, stop_reason_in
from tests.waiting import eventually

MORTAL = Path(__file__).parents[1] / "mortal_agent.py"


class Worker:
    """An agent whose turns say one word for each step that the test allows, until it lets them end."""

    def __init__(self, store):
        self.words = asyncio.Queue()
        self.began, self.ended = [], []
        self.agent = accord.Agent("worker", store=store)

        @self.agent.on_prompt
        async def work(turn):
            self.began.append(turn.text)
            while word := await self.words.get():
                await turn.say(word)
            self.ended.append(turn.text)

    def connect(self):
        return accord.connect(self.agent, versions=(2,))


async def kept_of(store, session_id):
    """The messages with a key in the record, by their keys in order, and why turns have ended."""
    entries = [entry async for page in store.updates(session_id) for entry in page]
    keys = [key_in(entry, session_id) for entry in entries if has_key(entry)]
    return keys, [reason for entry in entries if (reason := stop_reason_in(entry)) is not None]


@pytest.mark.parametrize("step", ["sent", "inserted", "running", "idle"])
async def test_a_prompt_whose_connection_ended_at_any_step_is_inserted_once_and_ends_once(step):
    worker = Worker(store := MemoryStore())
    async with worker.connect() as one:
        session = await one.new_session("/project")
        reply = session.prompt("go", idempotency_key="k")
        if step != "sent":
            first = await reply.inserted
        if step in ("running", "idle"):
            worker.words.put_nowait("half ")
            await eventually(lambda: session.state.messages[-1].text == "half ")
        if step == "idle":
            worker.words.put_nowait("")
            await reply
    async with worker.connect() as two:
        session = await two.load(session.id, "/project")
        again = session.prompt("go", idempotency_key="k")
        message_id = await again.inserted
        assert step == "sent" or message_id == first
        if step != "idle":
            worker.words.put_nowait("whole")
            worker.words.put_nowait("")
        assert (await again).stop_reason == "end_turn"
        texts = [it.text for it in session.state.messages]
        assert texts == {"running": ["go", "half ", "whole"], "idle": ["go", "half "]}.get(step, ["go", "whole"])
    assert worker.ended == ["go"]
    assert await kept_of(store, session.id) == ([("k", message_id)], ["end_turn"])


async def test_two_attempts_at_once_after_the_death_of_the_first_run_it_once():
    worker = Worker(store := MemoryStore())
    async with worker.connect() as one:
        session = await one.new_session("/project")
        await session.prompt("go", idempotency_key="k").inserted
    async with worker.connect() as two:
        session = await two.load(session.id, "/project")
        attempts = [session.prompt("go", idempotency_key="k") for _ in range(3)]
        worker.words.put_nowait("")
        assert [(await it).stop_reason for it in attempts] == ["end_turn"] * 3
    assert worker.began == ["go", "go"]
    assert len((await kept_of(store, session.id))[1]) == 1


async def test_a_prompt_that_its_user_has_cancelled_does_not_run_again():
    worker = Worker(store := MemoryStore())
    async with worker.connect() as one:
        session = await one.new_session("/project")
        reply = session.prompt("go", idempotency_key="k")
        await reply.inserted
        await reply.cancel()
    async with worker.connect() as two:
        session = await two.load(session.id, "/project")
        assert (await session.prompt("go", idempotency_key="k")).stop_reason == "cancelled"
    assert worker.began == ["go"]
    assert (await kept_of(store, session.id))[1] == ["cancelled"]


async def test_an_interrupted_prompt_does_not_run_again_once_the_conversation_has_gone_on():
    worker = Worker(MemoryStore())
    async with worker.connect() as one:
        session = await one.new_session("/project")
        await session.prompt("go", idempotency_key="k").inserted
    async with worker.connect() as two:
        session = await two.load(session.id, "/project")
        worker.words.put_nowait("")
        await session.prompt("something else")
        await session.prompt("go", idempotency_key="k")
    assert worker.began == ["go", "something else"]


async def test_a_prompt_that_joined_a_turn_ends_with_it():
    store, began, both = MemoryStore(), asyncio.Event(), asyncio.Event()
    agent = accord.Agent("steered", store=store, prompt_while_working="steer", unstable=True)

    @agent.on_prompt
    async def work(turn):
        began.set()
        await both.wait()
        assert [more.text async for more in turn.prompts()] == ["second"]

    async with accord.connect(agent, versions=(2,), unstable=True) as remote:
        session = await remote.new_session("/project")
        first = session.prompt("first")
        await began.wait()
        second = session.prompt("second", idempotency_key="2")
        await remote.status(session.id)  # the agent has the second prompt when it answers this
        both.set()
        await asyncio.gather(first, second)
    keys, reasons = await kept_of(store, session.id)
    assert ([key for key, _ in keys][1:], reasons) == (["2"], ["end_turn"])


# Wherever an attempt comes from


async def test_an_attempt_at_another_host_runs_what_was_interrupted_and_knows_what_has_ended(tmp_path):
    file = tmp_path / "sessions.sqlite3"
    here, there = Worker(SqliteStore(file)), Worker(SqliteStore(file))
    async with here.connect() as one, there.connect() as two:
        session = await one.new_session("/project")
        first = await session.prompt("go", idempotency_key="k").inserted
        elsewhere = await two.load(session.id, "/project")  # another process takes the session at once
        again = elsewhere.prompt("go", idempotency_key="k")
        assert await again.inserted == first
        there.words.put_nowait("")
        assert (await again).stop_reason == "end_turn"
        await session.close()
        back = await one.load(session.id, "/project")
        over = back.prompt("go", idempotency_key="k")
        assert (await over.inserted, (await over).stop_reason) == (first, "end_turn")
    assert (here.began, there.began, there.ended) == (["go"], ["go"], ["go"])


async def test_clients_that_share_a_session_insert_a_prompt_once_and_get_one_end_of_a_replay():
    worker = Worker(MemoryStore())
    async with (
        serving(SharedHost(worker.agent)) as server,
        accord.connect(server.url, versions=(2,)) as one,
        accord.connect(server.url, versions=(2,)) as two,
    ):
        session = await one.new_session("/project")
        shared = await two.load(session.id, "/project")
        assert shared.state.history_length == 0  # told by `replay_complete`
        attempts = [it.prompt("go", idempotency_key="k") for it in (session, shared)]
        worker.words.put_nowait("")
        assert [(await it).stop_reason for it in attempts] == ["end_turn"] * 2
        assert await attempts[0].inserted == await attempts[1].inserted
        await shared.close()
        again = await two.load(session.id, "/project")
        assert [it.text for it in again.state.messages] == ["go"]
        assert again.state.history_length == 1
    assert worker.began == ["go"]


async def test_keys_and_the_end_of_a_replay_pass_a_proxy():
    worker = Worker(MemoryStore())
    proxy = accord.Proxy("nothing")
    async with accord.connect(accord.chain(proxy, worker.agent), versions=(2,)) as remote:
        session = await remote.new_session("/project")
        replies = [session.prompt("go", idempotency_key="k") for _ in range(2)]
        worker.words.put_nowait("")
        assert [(await it).stop_reason for it in replies] == ["end_turn"] * 2
        await session.close()
        again = await remote.load(session.id, "/project")
        assert again.state.history_length == 1
    assert worker.began == ["go"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
async def test_a_prompt_whose_agent_was_killed_at_any_step_of_its_store_is_inserted_once_and_ends_once(tmp_path):
    file = tmp_path / "sessions.sqlite3"

    def life(step):
        return accord.connect([sys.executable, str(MORTAL), str(file), str(step)], versions=(2,))

    async with life(0) as remote:
        session_id = (await remote.new_session("/project")).id
    steps = range(random.randint(1, 4), 60, 4)
    for step in steps:
        print(f"step {step} of {steps}")
        try:
            async with life(step) as remote:
                session = await remote.load(session_id, "/project")
                await session.prompt("a b", idempotency_key=str(step))
        except accord.AccordError as error:
            print(f"died: {error}")
        async with life(0) as remote:
            session = await remote.load(session_id, "/project")
            assert (await session.prompt("a b", idempotency_key=str(step))).stop_reason == "end_turn"
    async with SqliteStore(file) as store:
        keys, reasons = await kept_of(store, session_id)
    assert [key for key, _ in keys] == [str(step) for step in steps]
    assert reasons == ["end_turn"] * len(steps)
