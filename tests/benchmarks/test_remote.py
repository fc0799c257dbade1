"""Remote links: what is run, and that our half of it keeps the contract."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.build import Built
from benchmarks.measure import Side, converse
from benchmarks.peers import TYPESCRIPT
from benchmarks.remote import WAYS, arguments, measures, ours, theirs

ROOT = Path(__file__).parents[2]


def test_both_are_measured_with_the_http_that_theirs_speaks():
    assert [their_way for _, their_way in WAYS.values()] == ["websocket", "http", "http"]
    assert "--over=http" in theirs("http").client


def test_theirs_is_built_once_for_both_benchmarks():
    remote = theirs("websocket")
    assert (remote.files, remote.steps, remote.version) == (TYPESCRIPT.files, TYPESCRIPT.steps, TYPESCRIPT.version)


def test_results_of_two_ways_are_not_mixed_up():
    names = [measure.name for way in WAYS for measure in measures(way)]
    assert len(set(names)) == len(names) == 2 * len(WAYS)


@pytest.mark.parametrize("given", [("--pairs", "0"), ("--way", "pigeon"), ("--compare", "no-such-file.json")])
def test_wrong_usage_is_told(given):
    with pytest.raises(SystemExit) as ended:
        arguments(given)
    assert ended.value.code == 2


@pytest.mark.parametrize("over", ["websocket", "http", "http2"])
def test_our_server_and_client_keep_the_contract(over, tmp_path):
    side = Side(Built(ours(over), tmp_path), "")
    turns, stream = converse(side, side, ["turns 3", "stream 50"])
    assert turns["ok"]
    assert turns["updates"] == 3
    assert 0 < turns["p50us"] <= turns["p99us"]
    assert stream["ok"]
    assert stream["updates"] == 50


def test_a_turn_that_ends_otherwise_is_not_counted_as_one():
    script = """
import sys
from contextlib import asynccontextmanager
from benchmarks.drive import Turn, main

class Fake:
    pid, seen = 0, 0
    async def open(self):
        return "one"
    async def prompt(self, session, text):
        self.seen += 1
        return Turn("refusal", None)

@asynccontextmanager
async def connect(agent):
    yield Fake()

sys.exit(main(connect))
"""
    command = [sys.executable, "-c", script, "--json", "turns 2", "--", "agent"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert json.loads(done.stdout)["ok"] is False
