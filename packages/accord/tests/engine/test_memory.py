"""What a connection keeps in memory: little behind a stuck handler, few copies of a giant, nothing of what is over."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc"),
    pytest.mark.timeout(600),  # ten seconds of work each, on a machine that may have a lot else to do
]

RUNS = Path(__file__).with_name("memory_runs.py")
MB = 1_000_000
MANY = 300_000
BIG = 60 * MB
BESIDE = 4 * MB
"""What a link takes beside a giant: buffers, and the garbage of the moment."""
NOISE = 2_000
"""Blocks of memory that Python may have more or fewer of from one moment to another."""


def figures_of(run):
    """Each is measured in a process of its own, where nothing has used memory before."""
    done = subprocess.run([sys.executable, str(RUNS), run], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def test_a_stuck_handler_behind_many_updates_costs_the_sender_time_and_not_us_memory():
    figures = figures_of("stuck")
    assert figures["held"] > MB, "nothing was stuck"
    assert figures["while stuck"] < 100 * MB
    assert figures["in all"] < 100 * MB
    assert figures["updates"] == MANY, "nothing is lost"


def test_where_reading_may_not_stop_a_stuck_handler_s_updates_are_given_up_before_they_fill_the_memory():
    figures = figures_of("given_up")
    assert "waited for the handler of session/update" in figures["error"]
    assert figures["most"] < 100 * MB


@pytest.mark.parametrize("way", ["big_in", "big_out"])
def test_a_giant_is_in_memory_three_times_at_most_itself_included(way):
    figures = figures_of(way)
    assert BIG < figures["most"] < 3 * BIG + BESIDE
    assert figures.get("characters", BIG) >= BIG


def test_a_link_of_many_messages_does_not_grow():
    figures = figures_of("long_link")
    assert figures["messages"] >= MANY
    assert figures["late"]["blocks"] < figures["early"]["blocks"] + NOISE
    assert figures["late"]["memory"] < figures["early"]["memory"] + 10 * MB
    assert figures["left"] == 0
