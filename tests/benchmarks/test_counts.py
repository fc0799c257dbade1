"""Counts of instructions: every path runs, a cost is read from two runs, and a path that costs more is named."""

import pytest
from benchmarks.counts.__main__ import arguments, main, table, worse
from benchmarks.counts.counting import CALIBRATION, Counts, NoValgrind, cost, counted
from benchmarks.counts.paths import HOT, PATHS
from benchmarks.counts.worker import LONGER

BEFORE = Counts({CALIBRATION: 40_000, "a turn": 200_000, "a chunk": 10_000})


@pytest.mark.parametrize("path", PATHS, ids=[path.name for path in PATHS])
async def test_a_path_runs_again_and_again(path):
    async with path.opened() as run:
        await run(2)
        await run(3)


def test_a_path_that_costs_four_percent_more_is_named():
    assert worse(Counts({CALIBRATION: 40_000, "a turn": 208_000, "a chunk": 10_000}), BEFORE) == ["a turn"]


def test_two_percent_more_are_allowed():
    assert worse(Counts({CALIBRATION: 40_000, "a turn": 204_000, "a chunk": 10_000}), BEFORE) == []


def test_costs_are_compared_as_multiples_of_the_calibration():
    assert worse(Counts({CALIBRATION: 80_000, "a turn": 400_000, "a chunk": 20_000}), BEFORE) == []


def test_a_path_that_was_never_recorded_is_shown_and_not_judged():
    counts = Counts({CALIBRATION: 40_000, "a new path": 10_000})

    assert worse(counts, BEFORE) == []
    assert "a new path" in table(counts, BEFORE)


def test_the_cost_of_a_message_is_the_difference_of_two_runs(tmp_path):
    fixed, each, size = 5_000, 70, 10
    marks = [999, fixed + each * size, 999, fixed + each * size * LONGER]  # before the second path there is the first
    for mark, instructions in enumerate([1, 2, 3, 4, *marks], 1):
        (tmp_path / f"out.{mark}").write_text(f"version: 1\nsummary: {instructions}\n")

    assert cost(tmp_path / "out", 1, size) == each


def test_counting_without_valgrind_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NoValgrind, match="install the package valgrind"):
        counted([])


def test_a_path_of_an_unknown_name_is_refused_with_the_names_that_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["a journey"])

    assert "no path is named 'a journey'; the paths are: calibration, " in capsys.readouterr().err


def test_the_hot_paths_are_ten_of_them_beside_those_that_are_named():
    assert arguments(["--hot"]).paths == list(HOT)
    assert arguments(["a turn over HTTP/2", "--hot"]).paths == ["a turn over HTTP/2", *HOT]
    assert len(set(HOT) & {path.name for path in PATHS}) == 10
