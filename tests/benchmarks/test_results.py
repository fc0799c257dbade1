"""Ratios, their medians and their spread."""

import pytest
from benchmarks.results import Reading, Result, spread_of, summarize
from hypothesis import given, strategies


def pairs_of(*values):
    return [(Reading(ours), Reading(theirs)) for ours, theirs in values]


def test_more_of_ours_is_a_ratio_above_one():
    found = summarize("stream", "go", "asyncio", "updates/s", pairs_of((300, 100)), more_is_better=True)
    assert (found.ratio, found.ours, found.theirs) == (3, 300, 100)


def test_less_of_ours_is_a_ratio_above_one_where_less_is_better():
    found = summarize("start", "go", "asyncio", "ms", pairs_of((10, 50)), more_is_better=False)
    assert found.ratio == 5


def test_the_ratio_is_the_median_of_the_pairs_and_not_the_ratio_of_the_medians():
    pairs = pairs_of((100, 10), (10, 10), (30, 10), (1000, 500), (40, 20))
    found = summarize("read", "go", "asyncio", "round trips/s", pairs, more_is_better=True)
    assert found.ratio == 2
    assert found.runs == 5


def test_equal_ratios_have_no_spread_however_the_machine_behaved():
    found = summarize("read", "go", "asyncio", "", pairs_of((10, 5), (400, 200), (3, 1.5)), more_is_better=True)
    assert found.spread == 0


def test_one_disturbed_pair_does_not_spoil_the_spread():
    assert spread_of([2.0, 2.02, 1.98, 2.01, 9.0]) < 0.02


@given(strategies.lists(strategies.floats(0.01, 100), min_size=1, max_size=9), strategies.floats(0.1, 10))
def test_the_spread_is_relative(ratios, factor):
    assert spread_of([ratio * factor for ratio in ratios]) == pytest.approx(spread_of(ratios), abs=1e-9)


def test_latencies_are_told_where_both_sides_have_them():
    pairs = [(Reading(1, 30, 60), Reading(1, 90, 100)), (Reading(1, 50, 80), Reading(1, 110, 400))]
    found = summarize("read", "go", "asyncio", "", pairs, more_is_better=True)
    assert (found.p50us, found.p99us) == ((40, 100), (70, 250))
    assert summarize("stream", "go", "asyncio", "", pairs_of((1, 1)), more_is_better=True).p50us is None


def test_a_result_survives_json(result):
    for one in (result(), result(p50us=(30.0, 60.0), p99us=(1.0, 2.0))):
        assert Result.from_json(one.to_json()) == one


def test_json_has_what_was_promised_and_no_empty_keys(result):
    promised = {"measure", "peer", "loop", "ratio", "spread", "ours", "theirs", "unit", "runs"}
    assert set(result().to_json()) == promised
