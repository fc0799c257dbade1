"""What counts as a regression."""

import json

import pytest
from benchmarks.record import LEAST_LOSS, load, merge, regressions, save, tolerance


def test_a_loss_beyond_the_noise_is_reported_with_both_ratios(result):
    (found,) = regressions([result(ratio=4.0)], [result(ratio=3.0)])
    assert str(found).startswith("stream go asyncio: 4.00x has become 3.00x, 25% less")


def test_a_gain_is_no_regression(result):
    assert not regressions([result(ratio=4.0)], [result(ratio=6.0)])


def test_a_small_loss_is_noise_even_when_the_pairs_agree(result):
    assert not regressions([result(ratio=4.0, spread=0)], [result(ratio=4.0 * (1 - LEAST_LOSS) + 0.01, spread=0)])


def test_a_loss_within_a_wide_spread_is_noise(result):
    before, now = result(ratio=4.0, spread=0.3), result(ratio=3.0, spread=0.3)
    assert not regressions([before], [now])


@pytest.mark.parametrize("which", ["before", "now"])
def test_the_spread_of_either_side_widens_the_tolerance(result, which):
    narrow, wide = result(spread=0.01), result(spread=0.4)
    pair = (wide, narrow) if which == "before" else (narrow, wide)
    assert tolerance(*pair) > tolerance(narrow, narrow)


def test_more_runs_tell_smaller_losses(result):
    few, many = result(spread=0.2, runs=3), result(spread=0.2, runs=48)
    assert tolerance(many, many) < tolerance(few, few)


def test_only_the_same_measure_peer_and_loop_are_compared(result):
    now = [result(ratio=1, measure="read"), result(ratio=1, peer="rust"), result(ratio=1, loop="uvloop")]
    assert not regressions([result(ratio=4)], now)


def test_new_results_replace_old_ones_with_the_same_key(result):
    old, other, new = result(ratio=1), result(ratio=2, peer="rust"), result(ratio=3)
    assert merge([old, other], [new]) == [new, other]


def test_a_record_is_read_back(tmp_path, result):
    path = tmp_path / "recorded.json"
    results = [result(), result(measure="read", p50us=(1.0, 2.0), p99us=(3.0, 4.0))]
    save(path, results)
    assert load(path) == results
    assert set(json.loads(path.read_text())["machine"]) == {"python", "system", "cores"}


def test_no_record_has_no_results(tmp_path):
    assert load(tmp_path / "recorded.json") == []
