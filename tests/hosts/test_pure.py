"""The decisions: signatures, the choice of a host, and which headers pass."""

from random import Random

import pytest
from hypothesis import given, strategies as st

from accord.hosts.hop import GOOD_FOR, BadHop, Hop, body_digest, signed, verified
from accord.hosts.passing import FORWARDED, SIGNED, forwarded_headers, returned_headers
from accord.hosts.view import HostRow, View, host_id_of, new_host_id

KEY, OTHER = b"k" * 32, b"o" * 32
NOW = 1_800_000_000.0
TEXT = st.text(st.characters(blacklist_characters="\r\n"), max_size=20)
HEADERS = st.dictionaries(st.sampled_from(SIGNED), TEXT, max_size=4)


def hop(owner="ada", body=b"", moment=NOW, *, observes=False):
    return Hop("one", "two", int(moment * 1000), owner, body_digest(body), observes)


@given(owner=st.text(max_size=20), headers=HEADERS, body=st.binary(max_size=20), observes=st.booleans())
def test_what_is_signed_is_verified(owner, headers, body, observes):
    made = hop(owner, body, observes=observes)
    value = signed(made, KEY, "POST", headers)
    assert verified(value, [OTHER, KEY], "two", NOW, "POST", headers) == made


def test_a_host_that_knows_no_observers_can_read_controllers_and_nothing_else():
    words = [signed(hop(observes=it), KEY, "POST", {}).partition(" ")[0] for it in (False, True)]
    assert words == ["v1", "v1-observer"]  # a host of an earlier version refuses any word but the first with 400


def test_a_signature_for_an_observer_is_none_for_a_controller():
    value = signed(hop(observes=True), KEY, "POST", {})
    with pytest.raises(BadHop):
        verified(value.replace("v1-observer", "v1"), [KEY], "two", NOW, "POST", {})


@given(headers=HEADERS, other=HEADERS)
def test_a_signature_is_for_one_request_only(headers, other):
    value = signed(hop(), KEY, "POST", headers)
    with pytest.raises(BadHop) as caught:
        verified(value, [KEY], "two", NOW, "GET", headers)
    assert caught.value.status == 403
    if {**dict.fromkeys(SIGNED, ""), **headers} != {**dict.fromkeys(SIGNED, ""), **other}:
        with pytest.raises(BadHop):
            verified(value, [KEY], "two", NOW, "POST", other)


@given(st.data())
def test_a_changed_signature_is_refused(data):
    value = signed(hop(), KEY, "POST", {})
    place = data.draw(st.integers(0, len(value) - 1))
    letter = data.draw(st.characters().filter(lambda it: it != value[place]))
    with pytest.raises(BadHop):
        verified(value[:place] + letter + value[place + 1 :], [KEY], "two", NOW, "POST", {})


@pytest.mark.parametrize(
    ("keys", "me", "moment", "status"),
    [
        ([OTHER], "two", NOW, 403),
        ([KEY], "three", NOW, 404),
        ([KEY], "two", NOW - GOOD_FOR - 1, 403),
        ([KEY], "two", NOW + GOOD_FOR + 1, 403),
    ],
    ids=["another key", "another host", "too old", "from the future"],
)
def test_a_signature_is_refused(keys, me, moment, status):
    value = signed(hop(moment=moment), KEY, "POST", {})
    with pytest.raises(BadHop) as caught:
        verified(value, keys, me, NOW, "POST", {})
    assert caught.value.status == status


@given(st.dictionaries(st.sampled_from([*FORWARDED, "authorization", "cookie", "origin", "host"]), TEXT))
def test_credentials_are_not_forwarded(headers):
    assert dict(forwarded_headers(headers)) == {name: headers[name] for name in headers if name in FORWARDED}
    assert not {"authorization", "cookie", "origin", "host"} & dict(forwarded_headers(headers)).keys()


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
    assert [host.id for host in View(others).better_than(me, others, Random(1))] == chosen


def test_what_was_placed_since_the_last_beat_counts():
    host = row("a", load=0.1, connections=10)
    view = View([host])
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
