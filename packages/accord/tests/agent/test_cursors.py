"""Cursors: a client that takes them can fork a session at each of its messages."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

import accord
from accord import Agent, CapabilityMissing, MemoryStore, PeerError, connect, v1
from accord.http import SharedHost, serving
from accord.sync import connect as connect_in_thread

TAKES_CURSORS = v1.ClientCapabilities(session=v1.ClientSessionCapabilities(cursors=v1.SessionCursorsCapabilities()))


def echo(**options):
    """An agent that repeats each prompt and says how many it has had, by the history that it reads."""
    agent = Agent("echo", **options)

    @agent.on_prompt
    async def answer(turn):
        history = await turn.session.history()
        prompts = [it.text for it in history.messages if it.speaker == "user"]
        if turn.text == "fail":
            await turn.say("half an answer")
            raise ValueError("broken")
        await turn.say(" ".join(prompts))

    return agent


def texts(session):
    return [(it.speaker, it.text) for it in session.state.messages]


@pytest.fixture(params=[1, 2])
def version(request):
    return request.param


def connected(agent, version, **options):
    return connect(agent, versions=(version,), unstable=True, **options)


async def test_each_message_of_the_agent_has_a_cursor_after_it(version):
    async with connected(echo(), version) as remote:
        session = await remote.new_session("/")
        await session.prompt("one")
        await session.prompt("two")
        said = [it.id for it in session.state.messages if it.speaker == "agent"]
        after = [it for it in session.state.cursors.values() if it.anchor.position == "after"]
        assert [it.anchor_id for it in after] == said
        assert all(it.can_fork for it in after)


async def test_a_message_of_the_user_has_a_cursor_before_it_once_the_client_knows_its_id(version):
    agent = echo(store=MemoryStore())
    async with connected(agent, version) as remote:
        session = await remote.new_session("/")
        await session.prompt("one")
        live = [it for it in session.state.cursors.values() if it.anchor.position == "before"]
        assert len(live) == (1 if version == 2 else 0)
        session_id = session.id
    async with connected(agent, version) as remote:
        session = await remote.load(session_id, "/")
        asked = [it.id for it in session.state.messages if it.speaker == "user"]
        before = [it for it in session.state.cursors.values() if it.anchor.position == "before"]
        assert [it.anchor_id for it in before] == asked


async def test_a_fork_has_the_conversation_up_to_the_cursor(version):
    agent = echo(store=MemoryStore())
    async with connected(agent, version) as remote:
        source = await remote.new_session("/")
        for text in ("one", "two", "three"):
            await source.prompt(text)
        second = [it for it in source.state.messages if it.speaker == "agent"][1]
        fork = await source.fork(at=second.id)
        assert (await fork.prompt("other")).text == "one two other"
        assert (await source.prompt("four")).text == "one two three four"
        fork_id = fork.id
    async with connected(agent, version) as remote:  # a connection that knows only what is kept
        loaded = await remote.load(fork_id, "/")
        assert [text for _, text in texts(loaded)] == ["one", "one", "two", "one two", "other", "one two other"]


async def test_a_fork_before_a_message_of_the_user_takes_it_back(version):
    agent = echo(store=MemoryStore())
    async with connected(agent, version) as remote:
        source = await remote.new_session("/")
        for text in ("one", "two"):
            await source.prompt(text)
        source_id = source.id
    async with connected(agent, version) as remote:
        source = await remote.load(source_id, "/")
        [second] = [it for it in source.state.messages if it.speaker == "user" and it.text == "two"]
        fork = await source.fork(at=second.id)
        assert (await fork.prompt("instead")).text == "one instead"


async def test_cursors_mean_the_same_after_a_restart_and_in_a_fork(version):
    agent = echo(store=MemoryStore())
    async with connected(agent, version) as remote:
        source = await remote.new_session("/")
        await source.prompt("one")
        await source.prompt("two")
        cursors = dict(source.state.cursors)
        fork = await source.fork()
        await fork.prompt("three")  # the cursors come after the answer that opens the fork, and before this one
        assert set(cursors) <= set(fork.state.cursors)
        source_id = source.id
    async with connected(agent, version) as remote:
        resumed = await remote.resume(source_id, "/")
        assert {it: resumed.state.cursors[it] for it in cursors} == cursors
        fork = await resumed.fork(at=next(iter(it.id for it in cursors.values() if it.anchor.position == "after")))
        assert (await fork.prompt("other")).text == "one other"


async def test_a_failed_turn_leaves_cursors_too(version):
    async with connected(echo(), version) as remote:
        session = await remote.new_session("/")
        with pytest.raises(PeerError):
            await session.prompt("fail")
        assert [it.anchor.position for it in session.state.cursors.values()][-1] == "after"


async def test_work_without_a_prompt_leaves_cursors():
    agent = echo()

    @agent.command("work", "Work")
    async def work(turn):
        async def later():
            async with turn.session.work() as own:
                await own.say("done by myself")

        turn.session.start(later())

    async with connected(agent, 1) as remote:
        session = await remote.new_session("/")
        await session.prompt("/work")
        updates = session.updates()
        async for update in updates:
            if isinstance(update, v1.CursorUpdate):
                break
        assert session.state.cursor_at(session.state.messages[-1].id).can_fork


async def test_a_client_that_takes_no_cursors_is_told_none(serve):
    async with serve(echo()) as editor:
        session = await editor.open()
        await editor.prompt(session, "one")
        assert editor.of(v1.CursorUpdate) == []


@pytest.mark.parametrize("unstable", [False, True])
async def test_only_an_agent_with_proposals_sends_cursors_to_a_client_of_version_2_that_does_not_ask(unstable):
    async with connect(echo(unstable=unstable), versions=(2,)) as remote:
        session = await remote.new_session("/")
        await session.prompt("one")
        assert bool(session.state.cursors) is unstable


@asynccontextmanager
async def reached(way, version):
    if way == "proxy":
        async with connected(accord.chain(accord.Proxy("between"), echo()), version) as remote:
            yield remote
    else:
        async with (
            serving(SharedHost(echo()) if way == "shared" else echo()) as server,
            connected(server.url, version) as remote,
        ):
            yield remote


@pytest.mark.parametrize("way", ["proxy", "served", "shared"])
async def test_a_fork_at_a_message_works_on_any_way_to_the_agent(way, version):
    async with reached(way, version) as remote:
        session = await remote.new_session("/")
        for text in ("one", "two"):
            await session.prompt(text)
        first = next(it for it in session.state.messages if it.speaker == "agent")
        fork = await session.fork(at=first.id)
        assert (await fork.prompt("other")).text == "one other"


async def test_an_agent_that_rewinds_its_state_offers_cursors(version):
    agent = Agent("counts", state=dict, store=MemoryStore())

    @agent.on_prompt
    async def count(turn):
        turn.session.state["prompts"] = number = turn.session.state.get("prompts", 0) + 1
        await turn.say(str(number))

    @agent.on_rewind
    async def rewind(session):
        history = await session.history()
        session.state["prompts"] = sum(it.speaker == "user" for it in history.messages)

    async with connected(agent, version) as remote:
        session = await remote.new_session("/")
        for _ in range(3):
            await session.prompt("next")
        first = next(it for it in session.state.messages if it.speaker == "agent")
        fork = await session.fork(at=first.id)
        assert (await fork.prompt("next")).text == "2"
        assert (await (await session.fork()).prompt("next")).text == "4"


async def test_an_agent_whose_author_keeps_state_offers_no_cursors(serve):
    agent = echo(state=dict, store=MemoryStore())
    async with serve(agent, declare=TAKES_CURSORS) as editor:
        session = await editor.open()
        await editor.prompt(session, "one")
        assert editor.of(v1.CursorUpdate) == []
        [said] = {it.message_id for it in editor.of(v1.AgentMessageChunk)}
        with pytest.raises(PeerError) as refused:
            await editor.request(v1.ForkSessionRequest(session, "/project", cursor_id=f"agent-{said}"))
        assert refused.value.code == accord.errors.INVALID_PARAMS


async def test_a_refused_prompt_leaves_no_cursor(serve):
    agent = Agent("refuses")

    @agent.on_prompt
    async def refuse(turn):
        await turn.say(turn.text)
        return "refusal" if turn.text == "bad" else None

    async with serve(agent, declare=TAKES_CURSORS) as editor:
        session = await editor.open()
        for text in ("one", "bad", "two"):
            await editor.prompt(session, text)
        said = {it.content.text: it.message_id for it in editor.of(v1.AgentMessageChunk)}
        told = [it.anchor.message_id for it in editor.of(v1.CursorUpdate)]
        assert told == [said["one"], said["two"]]


async def test_a_place_without_a_cursor_is_refused_with_those_that_there_are():
    async with connected(echo(), 1) as remote:
        session = await remote.new_session("/")
        with pytest.raises(ValueError, match="cannot be forked at 'm1'; it can be at no place"):
            await session.fork(at="m1")
        await session.prompt("one")
        with pytest.raises(ValueError, match=f"it can be at '{session.state.messages[-1].id}'"):
            await session.fork(at="m1")


async def test_a_fork_that_cannot_be_cut_is_not_kept():
    class Uncut(MemoryStore):
        async def cut(self, session, length):  # noqa: ARG002
            raise accord.StoreError("unavailable", "no cuts today")

    store = Uncut()
    async with connected(echo(store=store), 1) as remote:
        session = await remote.new_session("/")
        await session.prompt("one")
        with pytest.raises(PeerError):
            await session.fork(at=session.state.messages[-1].id)
        assert [it.id for it in (await store.page()).sessions] == [session.id]


def test_a_program_without_async_forks_at_a_message(version):
    with connect_in_thread(echo(), versions=(version,), unstable=True) as remote:
        session = remote.new_session("/")
        for text in ("one", "two"):
            assert session.prompt(text).text
        first = next(it for it in session.state.messages if it.speaker == "agent")
        assert session.fork(at=first.id).prompt("other").text == "one other"


async def test_an_agent_that_cannot_fork_cannot_rewind():
    agent = echo(capabilities=lambda _: v1.AgentCapabilities())
    async with connected(agent, 1) as remote:
        session = await remote.new_session("/")
        await session.prompt("one")
        with pytest.raises(CapabilityMissing):
            await session.fork(at=session.state.messages[-1].id)
