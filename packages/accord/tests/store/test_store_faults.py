"""A damaged file, a full disk, a file that is gone: an error with a reason, in words, and the store goes on."""

import asyncio
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import accord
from accord import SqliteStore, StoreError
from accord.store import Changes, StoredSession
from tests.store.stores import all_updates
from tests.waiting import DEADLINE


@pytest.fixture
def file(tmp_path):
    return tmp_path / "sessions.sqlite3"


async def filled(file, updates=(b'{"sessionUpdate":"plan","entries":[]}',)):
    async with SqliteStore(file) as store:
        session = await store.create(StoredSession(id="s", cwd="/"))
        await store.write(session, updates, Changes(title="A title", settings={"mode": "code"}))


async def everything(store):
    return await store.find("s"), await all_updates(store, "s")


def change(file, statement, *values):
    with sqlite3.connect(file) as connection:
        connection.execute(statement, values)
    connection.close()


async def test_a_file_with_random_bytes_works_or_is_an_error_of_a_store(file):
    await filled(file, [b'{"text":"%b"}' % (b"x" * 300)] * 100)
    whole = file.read_bytes()
    outcomes = set()
    for seed in range(60):
        chance = random.Random(seed)
        damaged = bytearray(whole)
        for _ in range(200):
            damaged[chance.randrange(100, len(damaged) if seed % 2 else 4096)] = chance.randrange(256)
        file.write_bytes(damaged)
        for suffix in ("-wal", "-shm"):
            file.with_name(file.name + suffix).unlink(missing_ok=True)
        try:
            async with SqliteStore(file) as store:
                session = await store.take("s")
                await store.page()
                await store.write(session, [b"{}"])
                await all_updates(store, "s")
            outcomes.add("works")
        except StoreError as error:
            outcomes.add(error.reason)
    assert "damaged" in outcomes


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sessions SET roots = 'zzz'",
        "UPDATE sessions SET roots = 7",
        "UPDATE sessions SET settings = '[1]'",
        "UPDATE sessions SET state = x'ff'",
        "UPDATE sessions SET created = 9e99",
        "UPDATE sessions SET updated = 'yesterday'",
        "UPDATE sessions SET title = x'00ff'",
        "UPDATE updates SET update_json = 12",
    ],
)
async def test_an_entry_that_makes_no_sense_is_damage(file, statement):
    await filled(file)
    change(file, statement)
    async with SqliteStore(file) as store:
        with pytest.raises(StoreError) as caught:
            await everything(store)
    assert caught.value.reason == "damaged"


@pytest.mark.parametrize("version", [-1, 0])
async def test_tables_of_a_format_that_never_was_are_damage(file, version):
    await filled(file)
    change(file, f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError) as caught:
        await SqliteStore(file).open()
    assert caught.value.reason == "damaged"


def echo(file):
    agent = accord.Agent("echo", store=file)

    @agent.on_prompt
    async def say(turn):
        await turn.say(turn.text)

    return agent


@pytest.mark.parametrize("update", [b"not JSON", b"[]", b"\xff\xff", b'{"sessionUpdate":'])
async def test_a_client_is_told_that_the_store_is_damaged(file, update, caplog):
    async with accord.connect(echo(file)) as remote:
        session = await remote.new_session("/")
        await session.prompt("hello")
    change(file, "UPDATE updates SET update_json = ?", update)
    async with accord.connect(echo(file)) as remote:
        with pytest.raises(accord.PeerError) as caught:
            await remote.load(session.id, "/")
        assert caught.value.data == {"reason": "damaged"}
        assert "damaged" in caught.value.message
        assert str(file.parent) not in str(caught.value)
        assert (await (await remote.new_session("/")).prompt("another")).text == "another"
    assert "Traceback" not in caplog.text


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 3 MB, and what makes it larger."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if sys.platform != "linux" or os.geteuid() != 0 or mount is None:
        pytest.skip("only root may mount a disk")
    mounting = [mount, "-t", "tmpfs", "-o", "size=3m", "none", folder]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder, lambda: subprocess.run([mount, "-o", "remount,size=60m", folder], check=True)
    subprocess.run(["umount", "-l", folder], check=True)


async def test_a_full_disk_is_told_to_the_client_and_the_store_goes_on_when_there_is_room(small_disk):
    folder, enlarge = small_disk
    agent = accord.Agent("writer", store=folder / "sessions.sqlite3")

    @agent.on_prompt
    async def write(turn):
        for _ in range(int(turn.text)):
            await turn.say("x" * 1000)

    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        await session.prompt("3")
        for count in ("100000", "100"):
            with pytest.raises(accord.PeerError) as caught:
                await session.prompt(count)
            assert caught.value.data == {"reason": "full"}
            assert "free some space" in caught.value.message
            assert str(folder) not in str(caught.value)
        seen = "".join(message.text for message in session.state.messages if message.speaker == "agent")
        enlarge()
        assert (await session.prompt("2")).stop_reason == "end_turn"
    async with accord.connect(agent) as remote:
        loaded = await remote.load(session.id, "/")
        kept = "".join(message.text for message in loaded.state.messages if message.speaker == "agent")
        assert len(kept) >= len(seen) + 2000


def delete(file):
    file.unlink()


def replace(file):
    shutil.copy(file, file.with_name("other"))
    file.with_name("other").replace(file)


def move(file):
    file.rename(file.with_name("moved"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let go of an open file")
@pytest.mark.parametrize("survives", ["process", "power"])
@pytest.mark.parametrize("vanish", [delete, replace, move])
async def test_a_store_whose_file_is_gone_keeps_nothing_and_says_so(file, vanish, survives):
    async with SqliteStore(file, survives=survives) as store:
        session = await store.create(StoredSession(id="s", cwd="/"))
        await store.write(session, [b"1"])
        vanish(file)
        for attempt in (
            lambda: store.write(session, [b"2"], Changes(title="A prompt")),
            lambda: store.find("s"),
            lambda: store.create(StoredSession(id="t", cwd="/")),
            lambda: store.write(session, [b"3"], Changes()),
        ):
            with pytest.raises(StoreError) as caught:
                await attempt()
            assert caught.value.reason == "replaced"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let go of an open file")
async def test_a_stream_of_updates_notices_that_the_file_is_gone(file):
    async def stream():
        async with asyncio.timeout(DEADLINE):
            while True:
                await store.write(session, [b"1"])

    async with SqliteStore(file) as store:
        session = await store.create(StoredSession(id="s", cwd="/"))
        await store.write(session, [b"1"])
        file.unlink()
        with pytest.raises(StoreError) as caught:
            await stream()
        assert caught.value.reason == "replaced"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let go of an open file")
async def test_a_client_is_told_that_the_store_was_deleted(file):
    async with accord.connect(echo(file)) as remote:
        session = await remote.new_session("/")
        await session.prompt("kept")
        file.unlink()
        with pytest.raises(accord.PeerError) as caught:
            await session.prompt("lost")
        assert caught.value.data == {"reason": "replaced"}
        assert "restart the agent" in caught.value.message


@pytest.mark.skipif(sys.platform != "linux", reason="reads the locks in /proc")
async def test_a_second_store_of_a_process_does_not_end_the_locks_of_the_first(file):
    def locks():
        inode = str(file.stat().st_ino)
        return sum(line.split()[5].endswith(f":{inode}") for line in Path("/proc/locks").read_text().splitlines())

    async with SqliteStore(file) as store:
        await store.create(StoredSession(id="s", cwd="/"))
        before = locks()
        assert before
        async with SqliteStore(file):
            assert locks() == before
