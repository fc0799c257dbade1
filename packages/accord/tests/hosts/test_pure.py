"""The choice of a host, and which headers of an answer pass."""

from random import Random

import pytest

from accord.hosts.forwarder import returned_headers
from accord.hosts.host_table import HostRow, HostTable, host_id_of, new_host_id


def test_only_the_protocols_headers_come_back():
    came = [("Acp-Connection-Id", "c"), ("set-cookie", "a=b"), ("date", "now"), ("retry-after", "1")]
    assert returned_headers(came) == [("Acp-Connection-Id", "c"), ("retry-after", "1")]


def row(name, load=0.0, state="live", connections=0):
    return HostRow(name, "127.0.0.1:1", state=state, load=load, connections=connections)


@pytest.mark.parametrize(
    ("me", "others", "chosen"),
    [
        (row("me"), [], []),
        (row("me", 0.1), [row("a", 0.1)], []),
        (row("me", 0.125), [row("a", 0.1)], []),
        (row("me", 0.13), [row("a", 0.1)], ["a"]),
        (row("me", 0.5), [row("a", 0.1), row("b", 0.2)], ["a"]),
        (row("me", 0.0, "draining"), [row("a", 0.2), row("b", 0.1)], ["b", "a"]),
        (row("me", float("inf")), [row("a", 0.9)], ["a"]),
    ],
    ids=["alone", "equal", "a little more", "too much", "the better of two", "draining", "only forwards"],
)
def test_a_place_is_chosen(me, others, chosen):
    assert [host.id for host in HostTable(others).better_than(me, others, Random(1))] == chosen


def test_what_was_placed_since_the_last_beat_counts():
    host = row("a", load=0.1, connections=10)
    view = HostTable([host])
    for _ in range(10):
        view.placed(host)
    assert view.load(host) == pytest.approx(0.2)
    empty = row("b")
    view.placed(empty)
    assert view.load(empty) > 0


def test_the_id_of_a_host_is_the_first_part_of_its_connections():
    made = new_host_id()
    assert host_id_of(f"{made}.a-b_c.d") == made
    assert host_id_of("no-host") == ""
