"""What may pass before `initialize`, cell by cell."""

from __future__ import annotations

import pytest

from accord.engine.gate import INITIALIZERS, Gate
from accord.jsonrpc.messages import Call, Tell

INITIALIZE = Call(1, "initialize")
CALL = Call(2, "session/new")
TELL = Tell("session/update")

#            before    during    after
TABLE = {
    "initialize": ("pass", "refuse", "refuse"),
    "call": ("refuse", "wait", "pass"),
    "tell": ("ignore", "wait", "pass"),
}
MESSAGES = {"initialize": INITIALIZE, "call": CALL, "tell": TELL}
STATES = ("before", "during", "after")
CELLS = [
    pytest.param(state, MESSAGES[kind], passage, id=f"{kind} {state}")
    for kind, passages in TABLE.items()
    for state, passage in zip(STATES, passages, strict=True)
]


def gate_in(state):
    gate = Gate()
    if state != "before":
        assert gate.passage(INITIALIZE) == "pass"
    if state == "after":
        assert gate.initialized(well=True) == []
    return gate


@pytest.mark.parametrize(("state", "message", "passage"), CELLS)
def test_each_cell_of_the_table(state, message, passage):
    gate = gate_in(state)
    assert gate.passage(message) == passage
    assert gate.waiting == ([message] if passage == "wait" else [])
    assert gate.state == ("during" if (state, message) == ("before", INITIALIZE) else state)


@pytest.mark.parametrize(("state", "message", "passage"), CELLS)
def test_a_cell_says_the_same_twice_but_for_the_initialize_that_passes(state, message, passage):
    gate = gate_in(state)
    gate.passage(message)
    assert gate.passage(message) == ("refuse" if message is INITIALIZE else passage)


@pytest.mark.parametrize("method", sorted(INITIALIZERS))
def test_each_way_to_initialize_opens_the_gate_once(method):
    gate = Gate()
    assert gate.passage(Call(1, method)) == "pass"
    assert [gate.passage(Call(2, other)) for other in INITIALIZERS] == ["refuse"] * len(INITIALIZERS)


def test_a_notification_called_initialize_opens_nothing():
    gate = Gate()
    assert gate.passage(Tell("initialize")) == "ignore"
    assert gate.state == "before"


def test_what_waited_comes_back_in_order_and_only_once():
    gate = gate_in("during")
    waiting = [CALL, TELL, Call("3", "session/load"), TELL]
    for message in waiting:
        gate.passage(message)
    assert gate.initialized(well=True) == waiting
    assert gate.waiting == []
    assert [gate.passage(message) for message in waiting] == ["pass"] * 4


def test_after_an_initialize_that_failed_what_waited_is_refused_and_a_new_one_passes():
    gate = gate_in("during")
    gate.passage(CALL)
    gate.passage(TELL)
    assert [gate.passage(message) for message in gate.initialized(well=False)] == ["refuse", "ignore"]
    assert gate.passage(INITIALIZE) == "pass"
    assert gate.initialized(well=True) == []
    assert gate.passage(CALL) == "pass"


def test_the_problem_names_what_is_wrong():
    assert "initialize must come before session/new" in gate_in("before").problem(CALL)
    assert "not been answered" in gate_in("during").problem(INITIALIZE)
    assert "already initialized" in gate_in("after").problem(INITIALIZE)
