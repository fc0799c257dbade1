"""Chains of proxies: what is run, and that our half of it keeps the contract."""

from __future__ import annotations

import json

import pytest
from benchmarks.build import Built, Unavailable, build
from benchmarks.conductors import PROXIES, arguments, chain, main, measures
from benchmarks.measure import Side, converse
from benchmarks.peers import FLOOR, OURS
from interop.peers import CONDUCTOR, conductor


@pytest.fixture
def floor():
    try:
        return build(FLOOR, print)
    except Unavailable as missing:
        pytest.skip(str(missing))


def test_both_chains_stand_between_the_same_programs(tmp_path):
    floor = Built(FLOOR, tmp_path)
    ours, theirs = (chain(Built(peer, tmp_path), floor, 2).peer for peer in (OURS, CONDUCTOR))
    assert ours.client == theirs.client
    assert ours.agent[-1] == theirs.agent[-1]
    assert (ours.agent[3], theirs.agent[1]) == ("conduct", "agent")
    assert [len(set(peer.agent[-3:-1])) for peer in (ours, theirs)] == [1, 1]


def test_results_of_different_chains_are_not_mixed_up():
    names = [measure.name for proxies in PROXIES for measure in measures(proxies)]
    assert len(set(names)) == len(names) == 9


@pytest.mark.parametrize("given", [("--pairs", "0"), ("--proxies", "9"), ("--compare", "no-such-file.json")])
def test_wrong_usage_is_told(given):
    with pytest.raises(SystemExit) as ended:
        arguments(given)
    assert ended.value.code == 2


def test_our_chain_keeps_the_contract(floor, tmp_path):
    side = Side(chain(Built(OURS, tmp_path), floor, 1), "")
    stream, read = converse(side, side, ["stream 50", "read 5"])
    assert stream["ok"]
    assert stream["updates"] == 50
    assert read["ok"]


@pytest.mark.rust
@pytest.mark.timeout(300)
def test_a_quick_comparison_prints_a_ratio(capsys):
    try:
        conductor()
    except Unavailable as missing:
        pytest.skip(str(missing))
    assert main(["--quick", "--pairs", "1", "--proxies", "1", "--only", "stream", "--json"]) == 0
    [result] = json.loads(capsys.readouterr().out)
    assert result["measure"] == "stream through 1 proxy"
    assert result["ratio"] > 0
