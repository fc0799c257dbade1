"""What a session's store may do to it: be slow, full, or of a newer Accord; and clients that do not take a replay."""

import asyncio
import sqlite3
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from accord import Agent, Handlers, Peer, PeerError, SqliteStore, StoreError, memory_pair, v1
from accord.agent.replay_tree import PART
from accord.schema import codec
from accord.store import StoredSession
from accord.testing import FaultyTransport
from accord.transports import HIGH_WATER
from tests.waiting import DEADLINE

CWD = "/project"
WORDS = "word " * 200
CHUNK = codec.encode(v1.AgentMessageChunk.of(WORDS))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "sessions.sqlite3"


def parrot(file):
    agent = Agent("parrot", store=file)

    @agent.on_prompt
    async def repeat(turn):
        await turn.say(turn.text)

    return agent


async def a_long_session(file, updates):
    async with SqliteStore(file) as store:
        held = await store.create(StoredSession(id="long", cwd=CWD))
        for _ in range(updates // 100):
            await store.write(held, [CHUNK] * 100)


def counting():
    """A client that keeps nothing of what it hears but how many characters it was."""
    handlers, seen = Handlers(), Counter()

    @handlers.on(v1.SessionNotification)
    def hear(notification):
        seen["characters"] += len(notification.update.content.text)

    return handlers, seen


async def test_what_cannot_be_kept_is_not_seen_and_the_session_goes_on_when_it_can(serve, file):
    agent = parrot(file)
    async with serve(agent) as editor:
        session = await editor.open()
        await editor.prompt(session, "before")
        editor.updates.clear()
        connections = agent._definition.store._open.quick, agent._definition.store._open.patient
        for connection in connections:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(PeerError) as error:
            await editor.prompt(session, "x" * 100_000)
        assert error.value.code == -32603
        assert editor.updates == []
        for connection in connections:
            connection.execute("PRAGMA max_page_count = 1000000")
        await editor.prompt(session, "after")
        assert editor.text == "after"
    async with serve(parrot(file)) as editor:
        await editor.request(v1.LoadSessionRequest(session, CWD, []))
        assert [it.content.text for it in editor.updates if hasattr(it, "content")] == ["before"] * 2 + ["after"] * 2


def test_an_agent_whose_store_is_newer_ends_with_one_clear_line(file):
    asyncio.run(a_long_session(file, 100))
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    example = Path(__file__).parents[4] / "examples" / "lasting_agent.py"
    done = subprocess.run(
        [sys.executable, example, file], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "written by a newer Accord" in done.stderr


async def test_a_service_does_not_begin_without_its_store(file):
    file.write_text("Dear diary")
    _, there = memory_pair()
    with pytest.raises(StoreError):
        await parrot(file).serve(there)


async def test_a_replay_waits_for_a_client_that_does_not_read(file):
    await a_long_session(file, 20_000)  # 20 MB
    here, there = memory_pair()
    serving = asyncio.create_task(parrot(file).serve(there))
    handlers, seen = counting()
    link = FaultyTransport(here)
    async with Peer(link, handlers, role="client") as client:
        await client.initialize(v1.InitializeRequest(1))
        link.stop_reading()
        loading = asyncio.create_task(client.request(v1.LoadSessionRequest("long", CWD, [])))
        async with asyncio.timeout(DEADLINE):
            while there.unsent < HIGH_WATER:
                await asyncio.wait([loading], timeout=0.001)
        most = 0
        for _ in range(100):  # as many chances to send more
            await asyncio.sleep(0.001)
            most = max(most, there.unsent)
        assert most < HIGH_WATER + 2 * PART
        assert not loading.done()
        link.go_on_reading()
        await asyncio.wait_for(loading, DEADLINE)
        assert seen.total() == 20_000 * len(WORDS)
    await serving


async def test_loading_a_long_session_takes_no_more_memory_than_a_short_one(tmp_path):
    peaks = []
    for count in (1_000, 8_000):
        path = tmp_path / f"{count}.sqlite3"
        await a_long_session(path, count)
        here, there = memory_pair(high_water=64 * 1024)
        serving = asyncio.create_task(parrot(path).serve(there))
        handlers, seen = counting()
        async with Peer(here, handlers, role="client") as client:
            await client.initialize(v1.InitializeRequest(1))
            tracemalloc.start()
            await client.request(v1.LoadSessionRequest("long", CWD, []), timeout=DEADLINE)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        await serving
        assert seen.total() == count * len(WORDS)
    assert peaks[1] < 1.5 * peaks[0]


async def test_a_load_that_is_given_up_leaves_the_session_to_be_loaded(serve, file):
    await a_long_session(file, 5_000)
    async with serve(parrot(file)) as editor:
        loading = asyncio.create_task(editor.request(v1.LoadSessionRequest("long", CWD, [])))
        await editor.heard(v1.AgentMessageChunk)
        loading.cancel()
        await asyncio.wait([loading])
        editor.updates.clear()
        await editor.request(v1.LoadSessionRequest("long", CWD, []), timeout=DEADLINE)
        assert (await editor.prompt("long", "again")).stop_reason == "end_turn"
