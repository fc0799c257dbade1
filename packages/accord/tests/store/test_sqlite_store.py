"""The file of a SQLite store: shared by processes, locked by others, of another format, or no store at all."""

import asyncio
import json
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from accord import SqliteStore, StoreError
from accord.paths import data_folder
from accord.store import Changes, StoredSession
from accord.store.sqlite_database import FORMAT
from accord.store.sqlite_queries import CHECKPOINT_AFTER, LONG
from tests.store.stores import all_sessions, all_updates
from tests.waiting import DEADLINE

HERE = Path(__file__).parent


@pytest.fixture
def file(tmp_path):
    return tmp_path / "folder" / "sessions.sqlite3"


async def refusal(file):
    with pytest.raises(StoreError) as error:
        await SqliteStore(file).open()
    return error.value


def change(file, statements):
    connection = sqlite3.connect(file)
    connection.executescript(statements)
    connection.close()


# What the file may be


async def test_sessions_are_there_when_the_file_is_opened_again(file):
    async with SqliteStore(file) as store:
        await store.write(await store.create(StoredSession(id="s", cwd="/")), [b"1", b"2"])
    async with SqliteStore(file) as store:
        assert await all_updates(store, "s") == [b"1", b"2"]


async def test_a_closed_store_opens_by_itself_when_it_is_used(file):
    store = SqliteStore(file)
    await store.create(StoredSession(id="s", cwd="/"))
    await store.close()
    assert await all_sessions(store) == ["s"]
    await store.close()


async def test_a_file_without_the_later_columns_is_read_and_can_be_read_by_older_versions_still(file):
    async with SqliteStore(file) as store:
        await store.create(StoredSession(id="a", cwd="/w", title="kept"))
    change(file, "ALTER TABLE sessions DROP COLUMN info; ALTER TABLE sessions DROP COLUMN archived;")
    async with SqliteStore(file) as store:
        found = await store.find("a")
        assert (found.title, found.info, found.archived) == ("kept", None, False)
        await store.amend("a", Changes(archived=True))
    older = sqlite3.connect(file)
    assert older.execute("PRAGMA user_version").fetchone() == (1,)
    older.close()
    change(
        file,
        "INSERT INTO sessions (id, cwd, owner, roots, title, created, updated, settings, state, format, hold) "
        "VALUES ('b', '/w', '', '[]', NULL, 0, 0, '{}', 'null', 1, 1);",
    )
    async with SqliteStore(file) as store:
        assert [it.id for it in (await store.page(archived=False)).sessions] == ["b"]


async def test_a_newer_format_is_refused_and_left_alone(file):
    async with SqliteStore(file) as store:
        await store.create(StoredSession(id="s", cwd="/"))
    change(file, f"PRAGMA user_version = {FORMAT + 1}")
    before = file.read_bytes()
    error = await refusal(file)
    assert error.reason == "newer_format"
    assert f"format {FORMAT + 1}" in str(error)
    assert str(FORMAT) in str(error)
    assert file.read_bytes() == before


async def test_somebody_else_s_database_is_refused_and_left_alone(file):
    file.parent.mkdir()
    change(file, "CREATE TABLE recipes (title TEXT)")
    before = file.read_bytes()
    assert (await refusal(file)).reason == "not_a_store"
    assert file.read_bytes() == before


async def test_what_is_no_database_is_refused_and_left_alone(file):
    file.parent.mkdir()
    file.write_bytes(b"Dear diary, " * 1000)
    assert (await refusal(file)).reason == "not_a_store"
    assert file.read_bytes() == b"Dear diary, " * 1000


async def test_a_place_where_no_file_can_be_is_an_error_that_names_it(tmp_path):
    (tmp_path / "file").touch()
    error = await refusal(tmp_path / "file" / "sessions.sqlite3")
    assert error.reason == "failed"
    assert str(tmp_path) in str(error)


async def test_a_damaged_file_is_an_error_and_no_hang(file):
    async with SqliteStore(file) as store:
        session = await store.create(StoredSession(id="s", cwd="/"))
        await store.write(session, [b"x" * 1000] * 1000)
    with file.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xff" * 200 * 4096)
    async with SqliteStore(file) as store:
        with pytest.raises(StoreError):
            await all_updates(store, "s")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
async def test_conversations_are_for_their_user_alone(file):
    async with SqliteStore(file) as store:
        await store.write(await store.create(StoredSession(id="s", cwd="/")), [b"1"])
        made = [file.parent, *file.parent.iterdir()]
        assert len(made) == 4  # the folder, the file, its log and the log's index
        assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in made} == {0}


def test_the_usual_place_is_under_the_user_s_data(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert SqliteStore(name="greeter").path == tmp_path / "accord" / "greeter.sqlite3"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert data_folder().is_absolute()
    for platform, part in (("linux", ".local"), ("darwin", "Library"), ("win32", "AppData")):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.delenv("LOCALAPPDATA", raising=False)
        assert part in data_folder().parts


# Others at the same file


async def test_processes_share_a_store(file):
    names, count = ["a", "b", "c"], 60
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, HERE / "sharing_process.py", file, name, str(count), stdout=asyncio.subprocess.PIPE
        )
        for name in names
    ]
    async with asyncio.timeout(DEADLINE):
        printed = [(await process.communicate())[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    async with SqliteStore(file) as store:
        for name in names:
            assert [json.loads(it) for it in await all_updates(store, name)] == [[name, n] for n in range(count)]
        shared = [json.loads(it) for it in await all_updates(store, "shared")]
        for name, output in zip(names, printed, strict=True):
            assert [number for who, number in shared if who == name] == json.loads(output)


@pytest.fixture
async def locked(file):
    """A store, and a connection of somebody else that keeps the file locked."""
    async with SqliteStore(file, patience=DEADLINE) as store:
        session = await store.create(StoredSession(id="s", cwd="/"))
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        yield store, session, other
        other.close()


async def test_while_others_write_writers_wait_in_order_and_the_loop_does_not(locked):
    store, session, other = locked
    first = asyncio.create_task(store.write(session, [b"1"]))
    for _ in range(10):
        await asyncio.sleep(0)  # the loop goes on, and the first write is with the worker by now
    second = asyncio.create_task(store.write(session, [b"2"]))
    done, _ = await asyncio.wait([first, second], timeout=0.05)
    assert not done
    other.execute("COMMIT")
    await asyncio.wait_for(asyncio.gather(first, second), DEADLINE)
    assert await all_updates(store, "s") == [b"1", b"2"]


async def test_reading_waits_for_no_writer(locked):
    store, _, other = locked
    assert await all_sessions(store) == ["s"]
    other.execute("COMMIT")


async def test_closing_waits_for_writes_under_way(locked):
    store, session, other = locked
    write = asyncio.create_task(store.write(session, [b"1"]))
    await asyncio.sleep(0)
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    other.execute("COMMIT")
    await asyncio.wait_for(asyncio.gather(write, closing), DEADLINE)
    assert await all_updates(store, "s") == [b"1"]


async def test_patience_ends_in_an_error_and_nothing_is_kept(file):
    async with SqliteStore(file, patience=0.01) as store:
        session = await store.create(StoredSession(id="s", cwd="/"))
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for attempt in (store.write(session, [b"lost"]), store.take("s"), store.delete("s")):
            with pytest.raises(StoreError) as error:
                await attempt
            assert error.value.reason == "busy"
        other.execute("COMMIT")
        other.close()
        await store.write(session, [b"kept"])
        assert await all_updates(store, "s") == [b"kept"]


async def test_whoever_opens_gives_up_without_leaving_anything(file):
    store = SqliteStore(file)
    opening = asyncio.create_task(store.open())
    await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait([opening])
    async with store:
        assert await all_sessions(store) == []


# The log


async def test_the_log_does_not_grow_with_what_is_written(file):
    async with SqliteStore(file) as store:
        session = await store.create(StoredSession(id="s", cwd="/"))
        for _ in range(10 * CHECKPOINT_AFTER // LONG):
            await store.write(session, [b"x" * (LONG // 32)] * 16)
            await store.find("s")  # behind a checkpoint, if there is one
        assert file.with_name(f"{file.name}-wal").stat().st_size < 3 * CHECKPOINT_AFTER


async def test_opening_a_second_store_in_one_process_keeps_the_locks_of_the_first(file):
    """Otherwise another process takes itself for the last one that uses the file, and deletes its log."""
    come_and_go = "import sqlite3, sys; file = sqlite3.connect(sys.argv[1]); file.execute('VACUUM'); file.close()"
    async with SqliteStore(file) as first:
        await first.create(StoredSession(id="one", cwd="/"))
        async with SqliteStore(file) as second:
            other = await asyncio.create_subprocess_exec(sys.executable, "-c", come_and_go, str(file))
            assert await asyncio.wait_for(other.wait(), DEADLINE) == 0
            assert file.with_name(f"{file.name}-wal").exists()
            await first.create(StoredSession(id="two", cwd="/"))
            assert sorted(await all_sessions(second)) == ["one", "two"]


async def test_stores_of_one_process_open_while_others_close(file):
    """A connection that closes locks the file for a moment, which one that opens has to wait for."""

    async def come_and_go(number):
        for time in range(100):
            async with SqliteStore(file) as store:
                await store.create(StoredSession(id=f"{number} {time}", cwd="/"))

    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*(come_and_go(number) for number in range(8)))


async def test_stores_that_open_a_new_file_at_the_same_time_find_one_store(tmp_path):
    """One of them makes the tables while the others look whether the file is a store."""
    async with asyncio.timeout(DEADLINE):
        for number in range(100):
            stores = [SqliteStore(tmp_path / f"{number}.sqlite3") for _ in range(8)]
            await asyncio.gather(*(store.open() for store in stores))
            await asyncio.gather(*(store.close() for store in stores))
