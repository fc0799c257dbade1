"""Watching a session by the store: an observer sees each step of a turn elsewhere, once and in order."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import accord
from accord import v1, v2
from accord.agent import watch_feed
from accord.http import serving
from accord.store.postgres_store import PostgresStore
from tests.hosts.hosting import editor_on
from tests.store.conftest import postgres, schema  # noqa: F401 - fixtures
from tests.waiting import eventually

VERSIONS = [(1, 1), (2, 1), (1, 2), (2, 2)]
"""The versions of the client that works and of the one that watches."""

WATCHING = {"accord.dev/watch": True}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def stores(request, tmp_path):
    """Makes a store for one agent: all see the same sessions."""
    if request.param == "memory":
        memory = accord.MemoryStore()
        yield lambda: memory
    elif request.param == "sqlite":
        yield lambda: accord.SqliteStore(tmp_path / "sessions.sqlite3")
    else:
        url, named = request.getfixturevalue("postgres").url, request.getfixturevalue("schema")
        yield lambda: PostgresStore(url, schema=named)


class Steps:
    """Lets an agent say one more thing at a time."""

    def __init__(self):
        self._allowed = asyncio.Semaphore(0)

    def one_more(self):
        self._allowed.release()

    async def wait(self):
        await self._allowed.acquire()


def an_agent(store, steps=None):
    agent = accord.Agent("working", store=store)

    @agent.on_session
    async def opened(session):
        await session.modes.offer(["ask", "code"])

    @agent.on_prompt
    async def work(turn):
        match turn.text.split():
            case ["steps", number]:
                for step in range(int(number)):
                    await steps.wait()
                    await turn.say(f"{step} ")
            case ["tool"]:
                async with turn.tool("Read", kind="read") as tool:
                    await tool.text("half")
                    await steps.wait()
                    await tool.text("done")
            case ["mode", mode]:
                await turn.session.modes.set(mode)
            case ["refuse"]:
                await turn.say("said for nothing")
                await steps.wait()
                return "refusal"
            case _:
                await turn.say(turn.text)
        return None

    return agent


def texts(session):
    return [message.text for message in session.state.messages]


@contextlib.asynccontextmanager
async def both(stores, worker=1, observer=1, steps=None):
    """A client that works with an agent, and one that watches with another agent of the same store."""
    async with (
        accord.connect(an_agent(stores(), steps), versions=(worker,)) as one,
        accord.connect(an_agent(stores()), versions=(observer,)) as two,
    ):
        yield one, two


@pytest.mark.parametrize(("worker", "observer"), VERSIONS)
async def test_each_step_of_a_turn_is_seen_once_and_in_order(stores, worker, observer):
    steps = Steps()
    async with both(stores, worker, observer, steps) as (one, two):
        session = await one.new_session("/project")
        await session.prompt("before")
        turn = session.prompt("steps 5")
        steps.one_more()
        await eventually(lambda: texts(session)[-1] == "0 ")
        watched = await two.watch(session.id)
        assert texts(watched) == ["before", "before", "steps 5", "0 "]
        for step in range(1, 5):
            steps.one_more()
            said = "".join(f"{number} " for number in range(step + 1))
            await eventually(lambda said=said: texts(watched)[-1] == said)
        assert (await turn).stop_reason == "end_turn"  # the turn was not ended by the observer
        await session.prompt("after")
        await eventually(lambda: len(texts(watched)) == 6)
        assert texts(watched) == ["before", "before", "steps 5", "0 1 2 3 4 ", "after", "after"]
        assert watched.state.title == "before"


@pytest.mark.parametrize(("worker", "observer"), VERSIONS)
async def test_a_tool_call_is_watched_while_it_runs(stores, worker, observer):
    steps = Steps()
    async with both(stores, worker, observer, steps) as (one, two):
        session = await one.new_session("/project")
        watched = await two.watch(session.id)
        turn = session.prompt("tool")
        await eventually(lambda: [call.text for call in watched.state.tool_calls.values()] == ["half"])
        steps.one_more()
        await turn
        await eventually(lambda: [call.status for call in watched.state.tool_calls.values()] == ["completed"])
        [call] = watched.state.tool_calls.values()
        [original] = session.state.tool_calls.values()
        assert (call.text, call.title) == (original.text, original.title)


@pytest.mark.parametrize(("worker", "observer"), VERSIONS)
async def test_an_observer_may_change_nothing_and_its_cancel_is_ignored(stores, worker, observer):
    steps = Steps()
    async with both(stores, worker, observer, steps) as (one, two):
        session = await one.new_session("/project")
        turn = session.prompt("steps 1")
        watched = await two.watch(session.id)
        asked = [
            v1.PromptRequest.of(session.id, "no") if observer == 1 else v2.PromptRequest.of(session.id, "no"),
            v1.DeleteSessionRequest(session.id) if observer == 1 else v2.DeleteSessionRequest(session.id),
        ]
        if observer == 1:
            asked.append(v1.SetSessionModeRequest(session.id, v1.SessionModeId("code")))
        else:
            asked.append(v2.SetSessionConfigOptionId(session.id, v1.SessionConfigId("mode"), "code"))
        for request in asked:
            with pytest.raises(accord.PeerError, match="only watches the session") as error:
                await two.request(request, force=True)
            assert (error.value.code, error.value.data) == (-32600, {"reason": "watching"})
        cancel = v1.CancelNotification(session.id) if observer == 1 else v2.CancelSessionNotification(session.id)
        await two.notify(cancel)
        await watched.close()
        with pytest.raises(accord.PeerError) as error:
            await two.request(asked[0], force=True)
        assert error.value.code == -32002  # the watch is over, and the agent does not know the session here
        steps.one_more()
        assert (await turn).stop_reason == "end_turn"


@pytest.mark.parametrize(("worker", "observer"), VERSIONS)
async def test_a_cut_ends_the_watch_with_words(stores, worker, observer):
    steps = Steps()
    async with both(stores, worker, observer, steps) as (one, two):
        session = await one.new_session("/project")
        await session.prompt("stays")
        watched = await two.watch(session.id)
        turn = session.prompt("refuse")
        await eventually(lambda: texts(watched)[-1] == "said for nothing")
        steps.one_more()
        assert (await turn).stop_reason == "refusal"
        await eventually(lambda: not two.open_sessions)
        assert [notice.title for notice in watched.state.notices] == [watch_feed.CUT]
        await session.prompt("and goes on")
        again = await two.watch(session.id)
        assert texts(again) == ["stays", "stays", "and goes on", "and goes on"]


async def test_a_cut_is_noticed_though_the_session_has_grown_again_before_the_next_look():
    class SeldomLookedAt(accord.MemoryStore):
        may_look = asyncio.Event()

        async def lengths(self, known, *, owner=""):
            await self.may_look.wait()
            return await super().lengths(known, owner=owner)

    store, steps = SeldomLookedAt(), Steps()
    async with both(lambda: store, steps=steps) as (one, two):
        session = await one.new_session("/project")
        turn = session.prompt("refuse")
        await eventually(lambda: texts(session)[-1] == "said for nothing")
        watched = await two.watch(session.id)
        steps.one_more()
        await turn
        for text in ("more than", "there was before"):
            await session.prompt(text)
        store.may_look.set()
        await eventually(lambda: not two.open_sessions)
        assert texts(watched)[:2] == ["refuse", "said for nothing"]
        assert [notice.title for notice in watched.state.notices] == [watch_feed.CUT]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_deletion_ends_the_watch_with_words(stores, version):
    async with both(stores, 1, version) as (one, two):
        session = await one.new_session("/project")
        watched = await two.watch(session.id)
        await one.delete(session.id)
        await eventually(lambda: not two.open_sessions)
        assert [notice.title for notice in watched.state.notices] == [watch_feed.DELETED]


async def test_a_client_without_notices_reads_the_end_of_a_watch_as_a_message():
    async with serving(an_agent(None)) as server, accord.connect(server.url) as one:
        session = await one.new_session("/project")
        async with editor_on(server.url, "websocket") as editor:
            await editor.request(v1.LoadSessionRequest(session.id, "/project", [], meta=WATCHING))
            await one.delete(session.id)
            await eventually(lambda: editor.text(session.id) == watch_feed.DELETED)


async def test_a_client_that_logs_out_watches_no_more():
    store = accord.MemoryStore()
    agent = an_agent(store)

    @agent.login("account", "Account")
    async def log_in(login):
        pass

    @agent.on_logout
    def log_out():
        pass

    async with accord.connect(an_agent(store)) as one, accord.connect(agent) as two:
        session = await one.new_session("/project")
        await two.login("account")
        watched = await two.watch(session.id)
        await two.logout()
        await session.prompt("secret")
        assert [notice.title for notice in watched.state.notices] == [watch_feed.LOGGED_OUT]
        assert not two.open_sessions
        assert watched.state.messages == []


async def test_owners_do_not_see_each_other(tmp_path):
    file = tmp_path / "sessions.sqlite3"
    access = accord.http.Access({"a": "ada", "e": "eve"})
    async with (
        accord.http.serving(an_agent(file), access=access) as server,
        accord.connect(server.url, headers={"Authorization": "Bearer a"}) as ada,
        accord.connect(server.url, headers={"Authorization": "Bearer e"}) as eve,
    ):
        session = await ada.new_session("/project")
        with pytest.raises(accord.PeerError) as error:
            await eve.watch(session.id)
        assert error.value.code == -32002
        mine = await eve.new_session("/project")
        await session.prompt("secret")
        async with accord.connect(server.url, headers={"Authorization": "Bearer e"}) as second:
            watched = await second.watch(mine.id)
            await mine.prompt("own")
            await eventually(lambda: texts(watched) == ["own", "own"])


async def test_settings_come_with_the_answer_and_changes_of_the_agent_follow():
    store = accord.MemoryStore()
    async with both(lambda: store) as (one, two):
        session = await one.new_session("/project")
        await session.prompt("mode code")
        watched = await two.watch(session.id)
        assert watched.state.mode == "code"
        assert [mode.id for mode in watched.state.modes] == ["ask", "code"]
        await session.prompt("mode ask")
        await eventually(lambda: watched.state.mode == "ask")
        await watched.close()
        answer = await two.request(v1.LoadSessionRequest(session.id, "/project", [], meta=WATCHING))
        assert answer.modes is not None
        assert answer.modes.current_mode_id == "ask"


async def test_a_session_that_this_connection_has_open_is_not_watched_on_it():
    async with accord.connect(an_agent(None)) as one:
        session = await one.new_session("/project")
        with pytest.raises(accord.PeerError, match="close it, then watch it"):
            await one.request(v1.LoadSessionRequest(session.id, "/project", [], meta=WATCHING))
        assert (await session.prompt("goes on")).text == "goes on"


async def test_a_load_after_a_watch_on_the_same_connection_takes_the_session(stores):
    steps = Steps()
    async with both(stores, steps=steps) as (one, two):
        session = await one.new_session("/project")
        turn = session.prompt("steps 2")
        steps.one_more()
        await eventually(lambda: texts(session)[-1:] == ["0 "])
        await (await two.watch(session.id)).close()
        watched = await two.watch(session.id)
        await two.request(v1.LoadSessionRequest(session.id, "/project", []))
        steps.one_more()
        with pytest.raises(accord.PeerError) as error:
            await turn
        assert error.value.data["reason"] == "taken"
        await two.request(v1.PromptRequest.of(session.id, "mine"))
        assert not watched.state.notices


async def test_an_agent_has_a_limit_of_watched_sessions(monkeypatch):
    monkeypatch.setattr(watch_feed, "MOST", 2)
    store = accord.MemoryStore()
    async with both(lambda: store) as (one, two):
        sessions = [await one.new_session("/project") for _ in range(3)]
        watched = [await two.watch(session.id) for session in sessions[:2]]
        with pytest.raises(accord.PeerError, match="clients of this agent watch 2 sessions"):
            await two.watch(sessions[2].id)
        await watched[0].close()
        await sessions[2].prompt("now")
        assert texts(await two.watch(sessions[2].id)) == ["now", "now"]


async def test_one_statement_asks_for_all_watched_sessions():
    class Counted(accord.MemoryStore):
        asked = asyncio.Queue()

        async def lengths(self, known, *, owner=""):
            self.asked.put_nowait(sorted(known))
            return await super().lengths(known, owner=owner)

    store = Counted()
    async with both(lambda: store) as (one, two):
        sessions = [await one.new_session("/project") for _ in range(20)]
        for session in sessions:
            await two.watch(session.id)
        async with asyncio.timeout(30):
            while await store.asked.get() != sorted(session.id for session in sessions):
                pass
        for session in sessions:
            await two.open_sessions[session.id].close()
    assert not [task for task in asyncio.all_tasks() if "watching" in task.get_name()]


async def test_a_store_that_fails_for_a_while_stops_no_watch(caplog):
    class Away(accord.MemoryStore):
        is_away = False
        refused = asyncio.Event()

        async def lengths(self, known, *, owner=""):
            if self.is_away:
                self.refused.set()
                raise accord.StoreError("failed", "the database is away")
            return await super().lengths(known, owner=owner)

    store = Away()
    async with both(lambda: store) as (one, two):
        session = await one.new_session("/project")
        watched = await two.watch(session.id)
        store.is_away = True
        async with asyncio.timeout(30):
            await store.refused.wait()
        await session.prompt("meanwhile")
        store.is_away = False
        await eventually(lambda: texts(watched) == ["meanwhile", "meanwhile"])
    assert sum("cannot be watched now" in record.message for record in caplog.records) == 1


def test_an_agent_that_nobody_watches_loads_nothing_for_it():
    code = """
import asyncio, sys
import accord
agent = accord.Agent("plain")
@agent.on_prompt
async def answer(turn):
    await turn.say("hi")
async def main():
    async with accord.connect(agent) as remote:
        assert remote.meta == {"accord.dev/watch": True}
        await (await remote.new_session("/")).prompt("hello")
        assert not {"accord.agent.watch_feed", "accord.agent.watch_feed"} & set(sys.modules)
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# Processes


@pytest.mark.skipif(sys.platform == "win32", reason="needs a FIFO")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_process_that_is_killed_leaves_its_observers_with_all_that_it_said(tmp_path, version):
    file, steps = tmp_path / "sessions.sqlite3", tmp_path / "steps"
    os.mkfifo(steps)
    program = Path(__file__).with_name("watching_agent.py")
    async with (
        accord.connect(an_agent(file), versions=(version,)) as observer,
        contextlib.AsyncExitStack() as stack,
    ):
        process = await stack.enter_async_context(accord.connect([sys.executable, str(program), str(file), str(steps)]))
        session = await process.new_session("/project")
        number = int((await session.prompt("who")).text)
        turn = session.prompt("steps 9")
        watched = await observer.watch(session.id)
        with await asyncio.to_thread(open, steps, "w") as pipe:
            for step in range(3):
                pipe.write("\n")
                pipe.flush()
                said = "".join(f"{each} " for each in range(step + 1))
                await eventually(lambda said=said: texts(watched)[-1:] == [said])
            assert not turn.done
            os.kill(number, signal.SIGKILL)
            with pytest.raises(accord.ConnectionClosed):
                await turn
        async with accord.connect(an_agent(file)) as heir:
            loaded = await heir.load(session.id, "/project")
            await loaded.prompt("inherited")
            await eventually(lambda: texts(watched)[-1] == "inherited")
        assert texts(watched) == ["who", str(number), "steps 9", "0 1 2 ", "inherited", "inherited"]
