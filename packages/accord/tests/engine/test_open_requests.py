"""Two endpoints and a link between them: whatever happens in whichever order, the books are right."""

from __future__ import annotations

from collections import Counter, deque

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from accord.jsonrpc import wire_messages
from accord.jsonrpc.wire_messages import OpenRequests, head_of, key_of

SIDES = st.sampled_from([0, 1])
FOREIGN_IDS = st.one_of(st.none(), st.integers(-3, 30), st.integers(0, 30).map(str))


class Books:
    """One side, and what a careful reader of the wire would say about it."""

    def __init__(self):
        self.endpoint = OpenRequests()
        self.incoming = deque()
        self.ids = []
        self.waiting = set()
        self.abandoned = set()
        self.got = Counter()
        self.owes = set()
        self.strays = 0

    def ask(self):
        note = object()
        request_id = self.endpoint.add_outgoing(note)
        self.ids.append(request_id)
        self.waiting.add(request_id)
        assert self.endpoint.outgoing[head_of(request_id)] is note
        return request_id

    def hear(self, request_id):
        """An answer with this id comes in, from whoever and for whatever reason."""
        note = self.endpoint.answered(request_id)
        assert (note is not None) == (request_id in self.waiting)
        if request_id in self.waiting:
            self.waiting.remove(request_id)
            self.got[request_id] += 1
        elif request_id in self.abandoned:
            self.abandoned.remove(request_id)
        else:
            self.strays += 1


class TwoEndpoints(RuleBasedStateMachine):
    """Calls, answers and cancellations cross on the wire in every order; a foreign hand sends answers to anything."""

    def __init__(self):
        super().__init__()
        self.sides = Books(), Books()

    @rule(side=SIDES)
    def ask(self, side):
        here, there = self.sides[side], self.sides[1 - side]
        there.incoming.append(("call", here.ask()))

    @rule(side=SIDES, pick=st.randoms(use_true_random=False))
    def abandon(self, side, pick):
        here = self.sides[side]
        if here.ids:
            request_id = pick.choice(here.ids)
            waited = request_id in here.waiting
            assert here.endpoint.abandon(request_id) is waited
            if waited:
                here.waiting.remove(request_id)
                here.abandoned.add(request_id)

    @precondition(lambda self: any(side.incoming for side in self.sides))
    @rule(side=SIDES)
    def deliver(self, side):
        here = self.sides[side]
        if here.incoming:
            kind, request_id = here.incoming.popleft()
            if kind == "answer":
                here.hear(request_id)
            else:
                assert here.endpoint.add_incoming(request_id, object())
                here.owes.add(request_id)

    @rule(side=SIDES, request_id=st.integers(1, 3).map(str))
    def deliver_a_call_with_an_id_of_its_own(self, side, request_id):
        here = self.sides[side]
        assert here.endpoint.add_incoming(request_id, object()) is (request_id not in here.owes)
        here.owes.add(request_id)

    @rule(side=SIDES, pick=st.randoms(use_true_random=False))
    def deliver_a_call_whose_id_is_in_use(self, side, pick):
        here = self.sides[side]
        if here.owes:
            assert not here.endpoint.add_incoming(pick.choice(sorted(here.owes, key=repr)), object())

    @rule(side=SIDES, pick=st.randoms(use_true_random=False))
    def pay(self, side, pick):
        here, there = self.sides[side], self.sides[1 - side]
        if here.owes:
            request_id = pick.choice(sorted(here.owes, key=repr))
            here.owes.remove(request_id)
            assert here.endpoint.remove_incoming(request_id)
            assert not here.endpoint.remove_incoming(request_id)
            there.incoming.append(("answer", request_id))

    @rule(side=SIDES, request_id=FOREIGN_IDS)
    def hear_an_answer_to_anything(self, side, request_id):
        self.sides[side].hear(request_id)

    @invariant()
    def no_id_is_used_twice(self):
        for side in self.sides:
            assert len(set(side.ids)) == len(side.ids)

    @invariant()
    def each_call_is_answered_at_most_once(self):
        for side in self.sides:
            assert all(count == 1 for count in side.got.values())

    @invariant()
    def the_books_are_right(self):
        for side in self.sides:
            assert set(side.endpoint.outgoing) == set(map(head_of, side.waiting))
            assert set(side.endpoint.incoming) == side.owes
            assert side.endpoint.strays == side.strays
            assert set(side.endpoint._abandoned) == side.abandoned

    def teardown(self):
        """Everything that is owed is paid and everything on the wire arrives: then nothing is left."""
        while any(side.owes or side.incoming for side in self.sides):
            for number, side in enumerate(self.sides):
                while side.incoming:
                    self.deliver(number)
                for request_id in list(side.owes):
                    side.owes.remove(request_id)
                    assert side.endpoint.remove_incoming(request_id)
                    self.sides[1 - number].incoming.append(("answer", request_id))
        for side in self.sides:
            assert not side.waiting
            assert not side.abandoned
        self.the_books_are_right()


class ForgetfulEndpoint(RuleBasedStateMachine):
    """With a peer that never answers abandoned requests, only the last few of them are remembered."""

    MOST = 3

    @initialize()
    def remember_few(self):
        self.abandoned = []
        self.endpoint = OpenRequests()
        self.endpoint_limit, wire_messages.MOST_ABANDONED = wire_messages.MOST_ABANDONED, self.MOST

    @rule()
    def abandon_one(self):
        request_id = self.endpoint.add_outgoing(object())
        assert self.endpoint.abandon(request_id)
        assert not self.endpoint.abandon(request_id)
        self.abandoned = [*self.abandoned, request_id][-self.MOST :]

    @rule(request_id=st.integers(1, 12))
    def an_answer_comes_after_all(self, request_id):
        strays = self.endpoint.strays
        assert self.endpoint.answered(request_id) is None
        assert self.endpoint.strays == strays + (request_id not in self.abandoned)
        self.abandoned = [kept for kept in self.abandoned if kept != request_id]

    @invariant()
    def what_is_remembered_is_bounded(self):
        assert list(self.endpoint._abandoned) == self.abandoned
        assert len(self.endpoint._abandoned) <= self.MOST

    def teardown(self):
        wire_messages.MOST_ABANDONED = self.endpoint_limit


unhurried = settings(deadline=None, max_examples=100, stateful_step_count=50)

TestTwoEndpoints = TwoEndpoints.TestCase
TestTwoEndpoints.settings = unhurried
TestForgetfulEndpoint = ForgetfulEndpoint.TestCase
TestForgetfulEndpoint.settings = unhurried


def test_the_number_and_the_string_are_two_ids():
    ours = OpenRequests()
    assert ours.add_incoming(3, "number")
    assert ours.add_incoming("3", "string")
    assert ours.remove_incoming("3")
    assert ours.incoming == {3: "number"}


def test_the_string_does_not_answer_the_number():
    ours = OpenRequests()
    request_id = ours.add_outgoing("note")
    assert ours.answered(str(request_id)) is None
    assert ours.strays == 1
    assert ours.answered(request_id) == "note"


def test_an_error_for_nothing_in_particular_is_a_stray():
    ours = OpenRequests()
    assert ours.answered(None) is None
    assert ours.strays == 1


def test_an_id_may_be_used_again_once_it_is_paid():
    ours = OpenRequests()
    assert ours.add_incoming(1, "first")
    assert not ours.add_incoming(1, "second")
    assert ours.remove_incoming(1)
    assert ours.add_incoming(1, "third")


def test_the_two_directions_have_their_own_ids():
    ours = OpenRequests()
    request_id = ours.add_outgoing("asked")
    assert ours.add_incoming(request_id, "owed")
    assert ours.remove_incoming(request_id)
    assert ours.answered(request_id) == "asked"


def test_the_end_drops_all_open_requests_and_those_made_meanwhile():
    ours = OpenRequests()
    ours.add_outgoing("first")
    ours.add_outgoing("second")
    dropped = ours.drop_all()
    assert next(dropped) == "first"
    ours.add_outgoing("third")
    assert list(dropped) == ["second", "third"]
    assert not ours.outgoing


@pytest.mark.parametrize("answered", [True, False])
def test_the_late_answer_to_an_abandoned_request_is_not_a_stray(answered):
    ours = OpenRequests()
    request_id = ours.add_outgoing("note")
    if answered:
        assert ours.answered(request_id) == "note"
    assert ours.abandon(request_id) is not answered
    assert ours.answered(request_id) is None
    assert ours.strays == answered


def test_ids_of_any_size_do_not_share_a_hash():
    # Python hashes each of these integers to 0.
    keys = {key_of(number * (2**61 - 1)) for number in range(10_000)}
    assert len({hash(key) for key in keys}) > 9_900


@pytest.mark.parametrize("request_id", [10**30, -(10**30)])
def test_a_very_large_id_is_owed_once_and_is_no_string(request_id):
    ours = OpenRequests()
    assert ours.add_incoming(key_of(request_id), "number")
    assert not ours.add_incoming(key_of(request_id), "again")
    assert ours.add_incoming(key_of(hex(request_id)), "string")
    assert ours.remove_incoming(key_of(request_id))
    assert not ours.remove_incoming(key_of(request_id))
    assert ours.remove_incoming(key_of(hex(request_id)))


def test_the_end_of_very_many_requests_takes_each_once():
    ours, count = OpenRequests(), 300_000  # for as many, taking the first of a dictionary each time takes minutes
    for number in range(count):
        ours.add_outgoing(number)
    assert list(ours.drop_all()) == list(range(count))
