"""The table of hosts: who is declared dead, by whom, and when not."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import accord
from accord.hosts.host_table import Beat, HostRow
from accord.hosts.hosts import directory_of
from accord.store import StoreError
from tests.store.postgres_server import Relay
from tests.waiting import DEADLINE

LEASE = 2.0


@pytest.fixture
async def table(directory):
    async with directory_of(directory["directory"], directory.get("schema", "accord")) as opened:
        yield opened


def beat(name, *, judges=False, lease=LEASE, state="live"):
    return Beat(HostRow(name, "127.0.0.1:1", name, state=state), lease, ("one", "two") if judges else ())


def states(hosts):
    return {host.id: host.state for host in hosts}


async def expired(table, name):
    """Wait until the lease of a host is over."""
    async with asyncio.timeout(DEADLINE):
        while next(host for host in await table.hosts() if host.id == name).expires_in > 0:  # noqa: ASYNC110 - a lease
            await asyncio.sleep(0.01)


async def test_hosts_see_each_other(table):
    await table.beat(beat("one", lease=60))
    seen = await table.beat(beat("two", lease=60))
    assert states(seen) == {"one": "live", "two": "live"}
    assert all(0 < host.expires_in <= 60 for host in seen)


async def test_an_expired_host_is_declared_dead_by_one_that_may_judge(table):
    await table.beat(beat("one"))
    await expired(table, "one")
    assert states(await table.beat(beat("two", lease=60)))["one"] == "live"
    assert states(await table.beat(beat("two", lease=60, judges=True)))["one"] == "dead"
    assert await table.beat(beat("one")) is None


async def test_a_host_that_left_is_not_declared_dead(table):
    await table.beat(beat("one", state="gone"))
    await expired(table, "one")
    assert states(await table.beat(beat("two", lease=60, judges=True)))["one"] == "gone"


async def test_a_dead_host_does_not_judge(table):
    await table.beat(beat("one"))
    await table.beat(beat("two"))
    await expired(table, "one")
    await expired(table, "two")
    await table.beat(beat("three", lease=60, judges=True))
    assert await table.beat(beat("one", judges=True)) is None


async def test_a_directory_that_is_away_is_one_error(postgres, schema):
    async with Relay(postgres) as relay, directory_of(relay.url, schema) as table:
        await table.beat(beat("one", lease=60))
        relay.cut_answer()
        with pytest.raises(StoreError):
            await table.beat(beat("one", lease=60))
        assert states(await table.beat(beat("one", lease=60))) == {"one": "live"}


async def test_processes_of_one_machine_share_a_key(tmp_path):
    path = tmp_path / "hosts.sqlite3"
    async with directory_of(path, "accord") as one, directory_of(path, "accord") as two:
        assert await one.key() == await two.key()
        assert len(await one.key()) >= 32
    assert path.stat().st_mode & 0o077 == 0


async def test_a_file_that_is_not_a_directory_of_hosts_is_one_error(tmp_path):
    (tmp_path / "hosts.sqlite3").write_bytes(b"this is no database " * 100)
    with pytest.raises(StoreError, match="directory of hosts"):
        async with directory_of(tmp_path / "hosts.sqlite3", "accord"):
            pass


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"peer": "10.0.3.7"}, "'10.0.3.7:8100'"),
        ({"key": "short"}, "at least 32 bytes"),
        ({"lease": 0}, "lease"),
        ({"weight": -1}, "weight"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, problem):
    with pytest.raises(ValueError, match=problem):
        accord.Hosts("hosts.sqlite3", **arguments)


async def test_postgresql_requires_a_key(postgres, schema):
    hosts = accord.Hosts(postgres.url, schema=schema)
    with pytest.raises(accord.AccordError, match="key"):
        async with accord.http.serving(accord.Agent("keyless"), hosts=hosts):
            pass


def test_hosts_that_start_together_open_the_same_new_file(tmp_path):
    together = threading.Barrier(6)

    async def open_and_close(path):
        together.wait()
        async with directory_of(path, "accord") as opened:
            return await opened.key()

    with ThreadPoolExecutor(6) as threads:
        for number in range(20):
            path = str(tmp_path / f"{number}.sqlite3")
            starting = [threads.submit(asyncio.run, open_and_close(path)) for _ in range(6)]
            assert len({one.result() for one in starting}) == 1
