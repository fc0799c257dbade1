"""`accord hosts`: what an operator sees of a service."""

import asyncio
import json
import sqlite3
from contextlib import AsyncExitStack

import pytest

import accord
import accord.hosts
from accord.hosts.host_table import Beat, HostRow
from accord.hosts.hosts import directory_of
from accord.http import serving
from tests.hosts.hosting import HostProcesses, editor_on, post
from tests.hosts.test_host_table import expired
from tests.http.processes import accord_once
from tests.http.talking import an_agent
from tests.waiting import DEADLINE


@pytest.fixture
async def where(directory):
    """A directory with three hosts."""
    schema = directory.get("schema", "accord")
    async with directory_of(directory["directory"], schema) as table:
        await table.beat(Beat(HostRow("one", "10.0.3.7:8100", "a\x1b[31m", load=0.25, connections=1234), 600.0))
        await table.beat(Beat(HostRow("two", "10.0.3.8:8100", "b", "draining"), 600.0))
        await table.beat(Beat(HostRow("three", "10.0.3.9:8100", "c", load=float("inf")), 4.0))
        await expired(table, "three")
    return [directory["directory"], "--schema", schema]


async def test_the_hosts_of_a_service_are_listed(where):
    done = accord_once("hosts", *where)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["NAME", "ID", "ADDRESS", "STATE", "CONNECTIONS", "LOAD"]
    assert [line[1:] for line in lines[1:]] == [
        ["one", "10.0.3.7:8100", "live", "1,234", "0.250"],
        ["two", "10.0.3.8:8100", "draining", "0", "0.000"],
        ["three", "10.0.3.9:8100", "silent", "0", "forwards", "only"],
    ]
    assert "\x1b" not in done.stdout


async def test_the_hosts_of_a_service_are_told_as_json(where):
    one, two, three = json.loads(accord_once("hosts", *where, "--json").stdout)
    assert (one["id"], one["state"], one["connections"], one["load"]) == ("one", "live", 1234, 0.25)
    assert (two["state"], three["state"], three["load"]) == ("draining", "silent", None)


async def test_a_service_without_hosts_is_said_to_have_none(tmp_path):
    async with directory_of(str(tmp_path / "hosts.sqlite3"), "accord"):
        said = accord_once("hosts", str(tmp_path / "hosts.sqlite3")).stdout
    assert said == "No hosts. Start one with: accord serve --hosts ...\n"


def test_a_file_that_lists_no_hosts_is_left_as_it_is(tmp_path):
    other = tmp_path / "other.sqlite3"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE notes (text)")
    before = other.read_bytes()
    done = accord_once("hosts", str(other))
    assert done.returncode == 1
    assert "cannot use the directory of hosts" in done.stderr
    assert other.read_bytes() == before


def test_a_directory_that_is_not_there_is_explained(tmp_path):
    done = accord_once("hosts", str(tmp_path / "missing"))
    assert done.returncode == 2
    assert "neither the URL of a PostgreSQL database nor a file" in done.stderr
    assert not (tmp_path / "missing").exists()


ADA, BOB = {"authorization": "Bearer s3cret"}, {"authorization": "Bearer other"}


def options_for(directory, folder):
    """The options of `accord hosts` that reach these hosts."""
    schema = ["--schema", directory["schema"]] if "schema" in directory else []
    if "key" not in directory:
        return schema
    (file := folder / "key").write_text(directory["key"])
    file.chmod(0o600)
    return [*schema, "--hosts-key-file", str(file)]


@pytest.fixture
async def service(directory, tmp_path):
    """Three hosts with two owners, and what `accord hosts` says of them."""
    settings = {**directory, "tokens": {"s3cret": "ada", "other": "bob"}}
    options = options_for(directory, tmp_path)
    async with HostProcesses(settings, 3) as hosts:

        async def operate(*words):
            words = ("hosts", directory["directory"], *words, *options, "--json")
            return await asyncio.to_thread(accord_once, *words)

        yield hosts, operate


async def test_an_operator_lists_sessions_and_ends_those_of_an_id_or_an_owner_on_all_hosts(service):
    hosts, operate = service
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(DEADLINE):
            adas = [
                await stack.enter_async_context(editor_on(host.url, way, headers=ADA))
                for host, way in zip(hosts.all, ("http1", "websocket", "http1"), strict=True)
            ]
            bobs = await stack.enter_async_context(editor_on(hosts.url, headers=BOB))
            ids = [await editor.open_session() for editor in (*adas, bobs)]
        listed = json.loads((await operate("sessions")).stdout)
        assert {(it["id"], it["owner"], it["is_running"]) for it in listed} == {
            *((session, "ada", False) for session in ids[:3]),
            (ids[3], "bob", False),
        }
        one = listed[0]["host"]
        assert json.loads((await operate("sessions", one)).stdout) == [it for it in listed if it["host"] == one]

        assert json.loads((await operate("end", ids[0])).stdout) == {"session": ids[0], "ended": 1}
        await asyncio.wait_for(adas[0].connection.closed(), DEADLINE)
        close = await operate("end", ids[1][:-1])
        assert (close.returncode, f"did you mean {ids[1]}?" in close.stderr) == (2, True)

        revoked = await operate("revoke", "ada")
        assert json.loads(revoked.stdout) == {"owner": "ada", "ended": 2}
        assert "The tokens of ada still work: remove them from the file of --token-file" in revoked.stderr
        for editor in adas[1:]:
            await asyncio.wait_for(editor.connection.closed(), DEADLINE)
        assert [it["id"] for it in json.loads((await operate("sessions")).stdout)] == [ids[3]]
        await bobs.prompt(ids[3], "still here")


async def test_a_drained_host_opens_no_connections_until_that_is_undone(service):
    hosts, operate = service
    drained = hosts.all[0]
    async with editor_on(drained.url, headers=ADA) as before:
        session = await before.open_session()
        told = json.loads((await operate("drain", drained.id)).stdout)
        assert (told["host"], told["state"]) == (drained.id, "draining")
        assert await drained.ask("GET", path="/readyz") == (503, "this host is draining")
        assert await drained.health() == 200
        for way in "http1", "websocket":
            async with editor_on(drained.url, way, headers=ADA) as editor:
                assert await hosts.host_of(editor) is not drained
        await before.prompt(session, "go on")
    assert json.loads((await operate("drain", drained.id, "--undo")).stdout)["state"] == "live"
    assert await drained.ask("GET", path="/readyz") == (200, "ok")
    states = {it["id"]: it["state"] for it in json.loads((await operate()).stdout)}
    assert states[drained.id] == "live"


async def test_the_last_host_that_drains_refuses_connections(directory, tmp_path):
    options = options_for(directory, tmp_path)
    async with HostProcesses(directory, 1) as hosts:
        words = ("hosts", directory["directory"], "drain", hosts.all[0].id, *options)
        done = await asyncio.to_thread(accord_once, *words)
        assert f"({hosts.all[0].id}) opens no more connections; open: 0" in done.stdout
        status, _, text = await post(hosts.all[0].url)
        assert (status, "this host is draining" in text) == (503, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["drain", "web-1"], "name the hosts first: accord hosts URL|FILE drain"),
        (["FILE", "dran", "one"], "unknown action 'dran'; did you mean drain?"),
        (["FILE", "drain"], "drain takes the name or the id of a host"),
        (["FILE", "sessions", "--undo"], "--undo goes with drain"),
        (["FILE", "--undo", "sessions"], "--undo goes with drain"),
        (["FILE", "drain", "ome"], "no live host has the name or id 'ome'; did you mean one?"),
        (["FILE", "drain", "twin"], "2 hosts have the name 'twin': give an id of b, c"),
    ],
)
async def test_a_command_of_an_operator_that_cannot_be_done_is_explained(tmp_path, words, says):
    async with directory_of(tmp_path / "hosts.sqlite3", "accord") as table:
        for identifier, name in ("a", "one"), ("b", "twin"), ("c", "twin"):
            await table.beat(Beat(HostRow(identifier, "127.0.0.1:1", name), 600.0))
    done = accord_once("hosts", *(str(tmp_path / "hosts.sqlite3") if word == "FILE" else word for word in words))
    assert done.returncode == 2
    assert says in done.stderr


async def test_a_host_that_an_operator_cannot_reach_is_named(tmp_path):
    async with directory_of(tmp_path / "hosts.sqlite3", "accord") as table:
        await table.beat(Beat(HostRow("a", "127.0.0.1:1", "one"), 600.0))
    done = accord_once("hosts", str(tmp_path / "hosts.sqlite3"), "revoke", "ada")
    assert done.returncode == 1
    assert "host one (a) at 127.0.0.1:1 does not answer" in done.stderr


async def test_a_program_commands_hosts_as_an_operator(tmp_path):
    directory = tmp_path / "hosts.sqlite3"
    async with (
        serving(an_agent(), hosts=accord.Hosts(directory)) as server,
        accord.hosts.operator(directory) as operator,
        editor_on(server.url) as editor,
    ):
        [host] = operator.hosts
        session = await editor.open_session()
        assert [(it.id, it.is_running) for it in await operator.sessions(host)] == [(session, False)]
        assert await operator.drain(host) == 1
        assert (await post(server.url))[0] == 503
        assert await operator.drain(host, undo=True) == 1
        assert (await post(server.url))[0] == 200
        assert await operator.end(host, "another") == 0
        assert await operator.end(host, session) == 1
        await asyncio.wait_for(editor.connection.closed(), DEADLINE)
