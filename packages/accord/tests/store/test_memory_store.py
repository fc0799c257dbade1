"""What the memory store forgets: sessions that nobody holds, past its limit."""

import pytest

from accord import Agent
from accord.errors import StoreError
from accord.store import MemoryStore
from tests.store.stores import all_sessions, all_updates

LARGE = b"x" * 100_000


@pytest.fixture
async def store(clock):
    """Keeps two large sessions that nobody holds."""
    return MemoryStore(limit=250_000, clock=clock)


async def written(store, session):
    session = await store.create(session)
    await store.write(session, [LARGE])
    return session


async def test_sessions_that_are_held_are_all_kept(store, new):
    sessions = [await written(store, new(name)) for name in "abcd"]
    for session in sessions:
        await store.write(session, [b"more"])
        assert await all_updates(store, session.id) == [LARGE, b"more"]


async def test_what_was_released_first_is_forgotten_first(store, new):
    for name in "abcd":
        store.release(await written(store, new(name)))
    assert sorted(await all_sessions(store)) == ["c", "d"]
    with pytest.raises(StoreError) as error:
        await store.take("a")
    assert error.value.reason == "gone"


async def test_what_was_taken_again_is_kept(store, new):
    store.release(await written(store, new("a")))
    held = await store.take("a")
    for name in "bcd":
        store.release(await written(store, new(name)))
    assert sorted(await all_sessions(store)) == ["a", "c", "d"]
    store.release(held)
    assert sorted(await all_sessions(store)) == ["a", "d"]


async def test_who_no_longer_holds_a_session_cannot_release_it(store, new):
    first = await written(store, new("a"))
    await store.take("a")
    store.release(first)
    for name in "bcd":
        store.release(await written(store, new(name)))
    assert sorted(await all_sessions(store)) == ["a", "c", "d"]


async def test_what_was_deleted_no_longer_counts(store, new):
    for name in "abcd":
        store.release(await written(store, new(name)))
        await store.delete(name)
    for name in "ef":
        store.release(await written(store, new(name)))
    assert sorted(await all_sessions(store)) == ["e", "f"]


async def test_releasing_twice_counts_once(store, new):
    for name in "ab":
        session = await written(store, new(name))
        store.release(session)
        store.release(session)
    assert sorted(await all_sessions(store)) == ["a", "b"]


async def test_an_agent_releases_what_its_clients_leave(new):
    """Through clients that come and go, as a server has them."""
    from accord import connect

    store = MemoryStore(limit=250_000)
    agent = Agent("talker", store=store)

    @agent.on_prompt
    async def talk(turn):
        await turn.say("x" * 100_000)

    for _ in range(5):
        async with connect(agent) as remote:
            session = await remote.new_session("/")
            await session.prompt("go")
            other = await remote.new_session("/")
            assert (await session.prompt("again")).stop_reason == "end_turn"
            await other.prompt("go")
    assert len(await all_sessions(store)) == 1
