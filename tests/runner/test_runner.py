"""The runner of the suite: what it chooses, how it divides it, and when a run is good."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.mutants import candidates, without_test

from tests import __main__ as runner
from tests.__main__ import FileCost, plan
from tests.selection import Rest, share

SAMPLE = "tests/runner/sample.py"
TESTS = [f"tests/a/test_a.py::test_many[{case}]" for case in range(23)] + [
    f"tests/b/test_b.py::test_{name}" for name in ("one", "two", "three")
]


@pytest.mark.parametrize("number", [1, 2, 5, 40])
def test_the_shares_have_every_test_once(number):
    shares = [list(share(TESTS, index, number)) for index in range(number)]
    assert sorted(test for tests in shares for test in tests) == sorted(TESTS)


def test_each_share_has_cases_of_a_large_family():
    sizes = [sum("test_many" in test for test in share(TESTS, index, 5)) for index in range(5)]
    assert max(sizes) - min(sizes) <= 1


def test_the_rest_names_functions_and_cases_and_excepts_cases():
    rest = Rest(["# a note", "f.py::test_a", "but f.py::test_a[1]", "f.py::test_b[2]"])
    assert "f.py::test_a" in rest
    assert "f.py::test_a[0]" in rest
    assert "f.py::test_a[1]" not in rest
    assert "f.py::test_b[2]" in rest
    assert "f.py::test_b[3]" not in rest


def test_short_processes_come_first_and_programs_last():
    costs = {
        "tests/a/test_1.py": FileCost(fast=9.0),
        "tests/a/test_2.py": FileCost(fast=8.0),
        "tests/b/test_3.py": FileCost(fast=1.0),
        "tests/c/test_4.py": FileCost(fast=11.0, programs=True),
        "tests/d/test_5.py": FileCost(fast=0.0, rest=5.0),
    }
    shards = plan(costs, costs, "fast")
    assert [shard.files for shard in shards] == [
        ["tests/b/test_3.py"],
        ["tests/d/test_5.py"],  # none of its tests is fast, but a new one would be
        ["tests/a/test_1.py"],
        ["tests/a/test_2.py"],
        ["tests/c/test_4.py"],
    ]
    assert [shard.files for shard in plan(costs, costs, "rest")] == [["tests/d/test_5.py"]]


def test_files_without_a_record_are_run():
    assert [shard.files for shard in plan(["tests/a/test_new.py"], {}, "fast")] == [["tests/a/test_new.py"]]


def test_each_mutant_that_needs_no_test_is_one_that_can_be_made():
    named = without_test()
    made = {(file, mutant.source) for file in {file for file, _ in named} for mutant in candidates(file)}
    assert set(named) <= made


def row(test, own, *, wall=0.0, shared=0.0, fixtures=(), links=False):
    return {
        "id": test, "outcome": "passed", "own": own, "children": 0.0, "wall": wall or own,
        "shared": shared, "fixtures": list(fixtures), "links": links,
    }  # fmt: skip


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Record these rows, and return the lines of rest.txt."""
    monkeypatch.setattr(runner, "COSTS", tmp_path / "costs.json")
    monkeypatch.setattr(runner, "REST", tmp_path / "rest.txt")

    def recorded(*rows):
        runner.record(rows)
        return [line for line in (tmp_path / "rest.txt").read_text().splitlines() if not line.startswith("#")]

    return recorded


def test_a_function_keeps_its_cheap_cases(recorded):
    assert recorded(row("f.py::test_a[0]", 0.01), row("f.py::test_a[1]", 0.5)) == ["f.py::test_a[1]"]


def test_a_function_without_cheap_cases_keeps_its_cheapest(recorded):
    rows = [row(f"f.py::test_a[{case}]", 0.2 + case / 100) for case in range(6)]
    assert recorded(*rows) == ["f.py::test_a", "but f.py::test_a[0]"]


def test_a_function_whose_cheapest_case_is_dear_is_left_out(recorded):
    assert recorded(row("f.py::test_a", 3.0)) == ["f.py::test_a"]


def test_a_case_that_waits_is_left_out(recorded):
    assert recorded(row("f.py::test_a", 0.01, wall=20.0)) == ["f.py::test_a"]


def test_the_cost_of_a_shared_fixture_is_divided_among_its_tests(recorded):
    """Else the next test would pay it as soon as the first is left out."""
    fixture = {"fixture": "server", "file": "f.py", "own": 9.0, "children": 0.0, "wall": 9.0}
    rows = [
        row("f.py::test_a", 9.01, shared=9.0, fixtures=["server"]),
        row("f.py::test_b", 0.01, fixtures=["server"]),
        row("f.py::test_c", 0.01),
    ]
    assert recorded(fixture, *rows) == ["f.py::test_a", "f.py::test_b"]


def test_a_record_of_some_files_leaves_that_of_the_others(recorded):
    here, gone = str(Path(__file__).relative_to(runner.ROOT)), "tests/gone.py"
    recorded(*(row(f"{file}::test_a", 3.0) for file in (here, gone)))
    assert recorded(row("f.py::test_a", 3.0)) == ["f.py::test_a", f"{here}::test_a"]
    assert list(runner.recorded_costs()) == ["f.py", here]


def run(tmp_path, *options, **environment):
    notes = tmp_path / "unsteady.txt"
    command = [sys.executable, "-m", "tests", SAMPLE, "-n", "1", "--notes", str(notes), *options]
    ended = subprocess.run(
        command,
        cwd=runner.ROOT,
        env={**os.environ, "SAMPLE_STATE": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return ended, notes.read_text() if notes.exists() else ""


def test_a_test_that_passes_alone_is_unsteady_and_the_run_is_good(tmp_path):
    ended, notes = run(tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    assert f"unsteady: {SAMPLE}::test_fails_once" in lines
    assert f"unsteady: {SAMPLE}::test_ends_the_process_once" in lines
    assert lines[-1] == "5 passed, 0 failed, 1 skipped"
    head = lines.index("| room | processor s | wall s |")
    assert [line.split(" | ")[0] for line in lines[head + 2 : -1]] == ["| runner", "| all"]
    assert f"{SAMPLE}::test_fails_once\n" in notes


def test_a_test_that_fails_again_fails_the_run(tmp_path):
    ended, notes = run(tmp_path, "-k", "passes or always_fails", SAMPLE_WITH="fails")
    assert ended.returncode == 1
    lines = ended.stdout.splitlines()
    assert f"failed: {SAMPLE}::test_always_fails" in lines
    assert lines[-1] == "1 passed, 1 failed, 0 skipped"
    assert not notes


def test_a_file_that_cannot_be_read_fails_the_run(tmp_path):
    ended, _ = run(tmp_path, "--strict-nonsense")
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
