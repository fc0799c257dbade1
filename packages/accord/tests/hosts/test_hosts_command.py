"""`accord hosts`: what an operator sees of a service."""

import json
import sqlite3

import pytest

from accord.hosts.host_table import Beat, HostRow
from accord.hosts.hosts import directory_of
from tests.hosts.test_host_table import expired
from tests.http.processes import accord_once


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
