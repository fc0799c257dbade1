"""Processor time of remote turns: what is measured, and that its floor works."""

import pytest
from benchmarks.build import Built
from benchmarks.measure import Side
from benchmarks.peers import DEFAULT_LOOP, UVLOOP
from benchmarks.remote import ours
from benchmarks.remote_cpu import Cost, conversation, floor, line, spent


@pytest.mark.parametrize("loop", [DEFAULT_LOOP, UVLOOP])
def test_the_floor_goes_through_its_turns_in_processes_whose_time_is_counted(loop):
    if loop == UVLOOP:
        pytest.importorskip("uvloop")
    assert spent(lambda turns: floor(turns, loop), 20).total > 0


def test_the_time_of_the_server_is_counted_with_that_of_its_client(tmp_path):
    converse_for = conversation(Side(Built(ours("websocket"), tmp_path), DEFAULT_LOOP))
    assert spent(converse_for, 5).total > 0


def test_the_median_of_each_part_is_shown():
    shown = line("WebSocket", [Cost(1, 2), Cost(30, 40), Cost(500, 600)])
    assert shown.split() == ["WebSocket", "70", "us", "(user", "30,", "system", "40)"]
