"""What may pass before `initialize`, cell by cell."""

from __future__ import annotations

import subprocess
import sys

import pytest

from accord.engine.incoming_requests import HandshakeGate
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame

HANDSHAKE = RequestFrame(1, "initialize")
CALL = RequestFrame(2, "session/new")
TELL = NotificationFrame("session/update")

#            before    during    after
TABLE = {
    "handshake": ("pass", "refuse", "refuse"),
    "call": ("refuse", "wait", "pass"),
    "tell": ("ignore", "wait", "pass"),
}
MESSAGES = {"handshake": HANDSHAKE, "call": CALL, "tell": TELL}
STATES = ("before", "during", "after")
CELLS = [
    pytest.param(state, MESSAGES[kind], passage, id=f"{kind} {state}")
    for kind, passages in TABLE.items()
    for state, passage in zip(STATES, passages, strict=True)
]


def passage(gate, message):
    return gate.passage(message, handshake=message is HANDSHAKE)


def gate_in(state):
    gate = HandshakeGate()
    if state != "before":
        assert passage(gate, HANDSHAKE) == "pass"
    if state == "after":
        assert gate.answered(well=True) == []
    return gate


@pytest.mark.parametrize(("state", "message", "expected"), CELLS)
def test_each_cell_of_the_table(state, message, expected):
    gate = gate_in(state)
    assert passage(gate, message) == expected
    assert gate.waiting == ([message] if expected == "wait" else [])
    assert gate.state == ("during" if (state, message) == ("before", HANDSHAKE) else state)


@pytest.mark.parametrize(("state", "message", "expected"), CELLS)
def test_a_cell_says_the_same_twice_but_for_the_handshake_that_passes(state, message, expected):
    gate = gate_in(state)
    passage(gate, message)
    assert passage(gate, message) == ("refuse" if message is HANDSHAKE else expected)


def test_the_messages_that_waited_are_returned_in_order_and_once():
    gate = gate_in("during")
    waiting = [CALL, TELL, RequestFrame("3", "session/load"), TELL]
    for message in waiting:
        passage(gate, message)
    assert gate.answered(well=True) == waiting
    assert gate.waiting == []
    assert [passage(gate, message) for message in waiting] == ["pass"] * 4


def test_after_a_failed_handshake_the_messages_that_waited_are_refused_and_a_new_handshake_passes():
    gate = gate_in("during")
    passage(gate, CALL)
    passage(gate, TELL)
    assert [passage(gate, message) for message in gate.answered(well=False)] == ["refuse", "ignore"]
    assert passage(gate, HANDSHAKE) == "pass"
    assert gate.answered(well=True) == []
    assert passage(gate, CALL) == "pass"


def test_the_problem_names_what_is_wrong():
    assert "initialize must come before session/new" in gate_in("before").problem(CALL)
    assert "not been answered" in gate_in("during").problem(HANDSHAKE)
    assert "already initialized" in gate_in("after").problem(HANDSHAKE)


UNKNOWN_METHOD = """
import asyncio, sys
import accord
from accord.testing import ScriptedPeer
from accord.transports.memory_transport import pair

agent = accord.Agent("asked nonsense")

@agent.on_prompt
async def work(turn): ...

async def main():
    here, there = pair()
    serving = asyncio.create_task(agent.serve(there))
    async with ScriptedPeer(here) as script:
        await script.expect_error(script.call("no/such/method", {}), -32600)
        await script.expect_result(script.call("initialize", {"protocolVersion": 1}))
        await script.expect_error(script.call("no/such/method", {}), -32601)
    await serving
    print("accord.schema.v1_nes" in sys.modules)

asyncio.run(main())
"""


def test_a_peer_cannot_make_us_load_every_type_of_the_protocol():
    done = subprocess.run([sys.executable, "-c", UNKNOWN_METHOD], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
