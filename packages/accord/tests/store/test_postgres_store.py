"""A store in PostgreSQL, with a server and connections that fail in every way."""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import accord
from accord.errors import StoreError
from accord.store import Changes, StoredSession
from accord.store.postgres_store import PostgresStore
from tests.store.postgres_server import PostgresServer, Relay, programs
from tests.store.stores import all_updates
from tests.waiting import DEADLINE

HERE = Path(__file__).parent

NAMES = ["a", "b", "c"]


@pytest.fixture
def own_server():
    """A server that a test may kill."""
    if programs() is None:
        pytest.skip("there is no PostgreSQL: Debian's package postgresql has it")
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
async def store(postgres, schema):
    async with PostgresStore(postgres.url, schema=schema) as made:
        yield made


def a_session(identifier="s", **more):
    return StoredSession(id=identifier, cwd="/work", **more)


def reason(caught):
    return caught.value.reason


# Processes that share it


async def test_processes_that_take_a_session_from_each_other_lose_nothing_and_mix_nothing(own_server):
    count = 40
    async with Relay(own_server, every=17) as relay:
        processes = [
            await asyncio.create_subprocess_exec(
                sys.executable, HERE / "sharing_process.py", relay.url, name, str(count), stdout=asyncio.subprocess.PIPE
            )
            for name in NAMES
        ]
        async with asyncio.timeout(DEADLINE):
            printed = [output for output, _ in await asyncio.gather(*[it.communicate() for it in processes])]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert relay.cuts > 3
    async with PostgresStore(own_server.url, schema="shared") as store:
        for name in NAMES:
            assert [json.loads(it) for it in await all_updates(store, name)] == [[name, n] for n in range(count)]
        shared = [json.loads(it) for it in await all_updates(store, "shared")]
    for name, output in zip(NAMES, printed, strict=True):
        # A write whose answer was cut off, and whose session was taken before it was sent again, counts as refused.
        stored = [number for who, number in shared if who == name]
        assert stored == sorted(set(stored))
        assert set(json.loads(output)) <= set(stored)


async def test_stores_that_open_at_once_make_the_tables_once(postgres, schema):
    stores = [PostgresStore(postgres.url, schema=schema) for _ in range(8)]
    await asyncio.gather(*[store.open() for store in stores])
    await stores[0].create(a_session())
    assert all([await store.find("s") for store in stores])
    for store in stores:
        await store.close()


# Answers that are lost


async def test_a_write_whose_answer_is_lost_is_stored_once(postgres, schema):
    async with Relay(postgres) as relay, PostgresStore(relay.url, schema=schema) as store:
        session = await store.create(a_session())
        for number in range(20):
            relay.cut_answer()
            await store.write(session, [b"%d" % number], Changes(title=str(number)))
        assert relay.cuts == 20
        assert await all_updates(store, "s") == [b"%d" % number for number in range(20)]
        assert (await store.find("s")).title == "19"


async def test_a_session_is_created_copied_taken_and_deleted_once_when_answers_are_lost(postgres, schema):
    async with Relay(postgres) as relay, PostgresStore(relay.url, schema=schema) as store:
        relay.cut_answer()
        session = await store.create(a_session())
        await store.write(session, [b"1", b"2"])
        relay.cut_answer()
        copied = await store.copy("s", a_session("copied"))
        await store.write(copied, [b"3"])
        relay.cut_answer()
        taken = await store.take("s")
        await store.write(taken, [b"4"])
        relay.cut_answer()
        await store.cut(copied, 1)
        await store.write(copied, [b"5"])
        assert await all_updates(store, "s") == [b"1", b"2", b"4"]
        assert await all_updates(store, "copied") == [b"1", b"5"]
        relay.cut_answer()
        await store.delete("s")
        assert await store.find("s") is None
        assert relay.cuts == 5


async def test_an_id_in_use_is_refused_also_when_the_answer_is_lost(postgres, schema):
    async with Relay(postgres) as relay, PostgresStore(relay.url, schema=schema) as store:
        await store.create(a_session())
        relay.cut_answer()
        with pytest.raises(StoreError) as caught:
            await store.create(a_session(title="another"))
        assert reason(caught) == "exists"


async def test_a_call_that_is_cancelled_does_no_harm_to_the_next(store):
    session = await store.create(a_session())
    await store.write(session, [b"1"])
    for _ in range(10):
        reading = asyncio.create_task(store.find("s"))
        await asyncio.sleep(0)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
    assert await all_updates(store, "s") == [b"1"]


# A server that goes


async def test_while_the_server_is_away_writes_wait_and_nothing_is_lost(own_server):
    async with PostgresStore(own_server.url, patience=DEADLINE) as store:
        session = await store.create(a_session())
        await store.write(session, [b"0"])
        own_server.kill()
        writes = [asyncio.create_task(store.write(session, [b"%d" % number])) for number in range(1, 5)]
        finding = asyncio.create_task(store.find("s"))
        await asyncio.to_thread(own_server.start)
        await asyncio.gather(*writes)
        assert (await finding).id == "s"
        assert await all_updates(store, "s") == [b"%d" % number for number in range(5)]


async def test_what_was_stored_survives_the_death_of_the_server(own_server):
    async with PostgresStore(own_server.url) as store:
        sessions = [await store.create(a_session(str(number))) for number in range(5)]
        for number in range(20):
            await asyncio.gather(*[store.write(session, [b"%d" % number]) for session in sessions])
        own_server.kill()
    own_server.start()
    async with PostgresStore(own_server.url) as store:
        for session in sessions:
            assert await all_updates(store, session.id) == [b"%d" % number for number in range(20)]


async def test_a_server_that_does_not_answer_fails_a_call_after_its_patience_and_serves_the_next(own_server):
    async with PostgresStore(own_server.url, patience=1.0) as store:
        session = await store.create(a_session())
        await store.write(session, [b"1"])
        own_server.freeze()
        try:
            with pytest.raises(StoreError) as reading:
                await store.find("s")
            with pytest.raises(StoreError) as writing:
                await store.write(session, [b"2"])
        finally:
            own_server.thaw()
        assert reason(reading) == reason(writing) == "busy"
        again = PostgresStore(own_server.url, patience=DEADLINE)
        taken = await again.take("s")
        await again.write(taken, [b"3"])
        assert [it for it in await all_updates(again, "s") if it != b"2"] == [b"1", b"3"]
        await again.close()


async def test_after_a_failed_write_the_next_goes_on_where_the_database_is(own_server):
    async with Relay(own_server) as relay, PostgresStore(relay.url, patience=1.0) as store:
        session = await store.create(a_session())
        await store.write(session, [b"1"])
        own_server.freeze()
        with pytest.raises(StoreError):
            await store.write(session, [b"2"])
        own_server.thaw()
        patient = PostgresStore(own_server.url, patience=DEADLINE)
        await patient.find("s")  # the server works again
        await patient.close()
        await store.write(session, [b"3"])
        assert await all_updates(store, "s") in ([b"1", b"3"], [b"1", b"2", b"3"])


async def test_a_database_that_has_lost_updates_is_noticed(store, postgres, schema):
    session = await store.create(a_session())
    await store.write(session, [b"1", b"2", b"3"])
    await postgres.run(
        f'DELETE FROM "{schema}".updates WHERE position >= 1', f'UPDATE "{schema}".holds SET length = 1'
    )  # as a replica has it that was behind
    with pytest.raises(StoreError, match="has 1 updates in the database, but 3 were stored") as caught:
        await store.write(session, [b"4"])
    assert reason(caught) == "failed"
    taken = await store.take("s")
    await store.write(taken, [b"4"])
    assert await all_updates(store, "s") == [b"1", b"4"]


async def test_one_refused_writer_harms_no_other_in_the_same_commit(store, postgres, schema):
    sessions = [await store.create(a_session(str(number))) for number in range(3)]
    async with PostgresStore(postgres.url, schema=schema) as elsewhere:
        await elsewhere.take("1")
        await elsewhere.delete("2")
    written = await asyncio.gather(*[store.write(it, [b"x"]) for it in sessions], return_exceptions=True)
    assert [getattr(it, "reason", it) for it in written] == [None, "taken", "gone"]
    assert await all_updates(store, "0") == [b"x"]


# Errors that a user reads


async def test_a_wrong_url_is_an_error_at_once_that_hides_the_password(tmp_path):
    store = PostgresStore(f"postgresql://ada:secret@/accord?host={tmp_path}")
    with pytest.raises(StoreError) as caught:
        await store.open()
    assert reason(caught) == "failed"
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(store)
    assert str(caught.value).startswith("cannot use the store postgresql://***@/accord")


@pytest.mark.parametrize("wrong", ["sessions.sqlite3", "mysql://host/name"])
def test_a_url_of_something_else_is_refused(wrong):
    with pytest.raises(ValueError, match="takes a URL such as 'postgresql://host/name'"):
        PostgresStore(wrong)


async def test_tables_of_a_newer_accord_are_refused(store, postgres, schema):
    await postgres.run(f'UPDATE "{schema}".format SET format = 99')
    with pytest.raises(StoreError, match="was written by a newer Accord") as caught:
        await PostgresStore(postgres.url, schema=schema).open()
    assert reason(caught) == "newer_format"


async def test_a_schema_may_have_any_name(postgres, schema):
    async with PostgresStore(postgres.url, schema=f'{schema} "Ünicode"') as store:
        session = await store.create(a_session())
        await store.write(session, [b"1"])
        assert await all_updates(store, "s") == [b"1"]


# Agents


async def test_an_agent_keeps_its_sessions_in_a_database_that_another_continues(postgres):
    def make():
        agent = accord.Agent("echo", store=postgres.url, state=dict)

        @agent.on_prompt
        async def echo(turn):
            turn.session.state["turns"] = turn.session.state.get("turns", 0) + 1
            await turn.say(f"{turn.session.state['turns']}: {turn.text}")

        return agent

    async with accord.connect(make()) as first, accord.connect(make()) as second:
        session = await first.new_session("/work")
        assert (await session.prompt("one")).text == "1: one"
        taken = await second.load(session.id, "/work")
        assert [message.text for message in taken.state.messages] == ["one", "1: one"]
        assert (await taken.prompt("two")).text == "2: two"
        with pytest.raises(accord.PeerError) as caught:
            await session.prompt("lost")
        assert caught.value.data["reason"] == "taken"
        await second.delete(session.id)
