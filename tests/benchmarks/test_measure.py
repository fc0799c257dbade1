"""Planning a run and reading what it printed."""

import sys

import pytest
from benchmarks.build import Built
from benchmarks.measure import (
    LEAST_MEMORY,
    MEASURES,
    Failed,
    Side,
    growth,
    megabytes,
    plan,
    rate,
    reading_of,
    run_process,
    turns,
)
from benchmarks.peers import FLOOR, GO, OURS, PEERS, TYPESCRIPT
from benchmarks.results import Reading
from benchmarks.versus import SPARE, OursFailed, collect, loops_of, loud, possible, side


def line(prompt="stream 10", ms=100.0, per_sec=1000.0, **more):
    return {
        "prompt": prompt,
        "ms": ms,
        "perSec": per_sec,
        "p50us": None,
        "p99us": None,
        "error": None,
        "ok": True,
    } | more


def test_the_measures_are_these():
    assert list(MEASURES) == ["stream", "tools", "read", "conc", "big", "start", "import", "memory"]


def test_a_measure_either_prompts_or_launches():
    assert all(bool(measure.prompts) != bool(measure.launch) for measure in MEASURES.values())


@pytest.mark.parametrize(
    ("count", "longest", "expected"),
    [(10, None, [10]), (10, 10, [10]), (25, 10, [10, 10, 5]), (30, 10, [10, 10, 10]), (1, 10, [1])],
)
def test_a_count_is_cut_into_turns_no_longer_than_allowed(count, longest, expected):
    assert turns(count, longest) == expected


def test_a_rate_is_over_all_turns_and_not_the_mean_of_their_rates():
    assert rate([line(ms=100, per_sec=1000), line(ms=300, per_sec=200)]) == pytest.approx(400)


def test_an_echo_moves_its_bytes_twice():
    lines = [line("big 10000000", ms=100), line("echo 10000000", ms=200)]
    assert megabytes(lines) == pytest.approx(100)


def weights(agent, client):
    return {"agent": {"now": agent, "peak": 0}, "client": {"now": client, "peak": 0}}


def test_memory_is_what_both_processes_grew_by_for_a_thousand_sessions():
    memory = {"before": weights(1000, 1000), "after": weights(1000 + 10_240, 1000 + 10_240)}
    assert growth([line("sessions 10000", memory=memory)]) == pytest.approx(2)


def test_memory_that_did_not_grow_counts_as_the_least_that_can_be_told():
    memory = {"before": weights(1000, 1000), "after": weights(900, 1000)}
    assert growth([line("sessions 10000", memory=memory)]) == LEAST_MEMORY


def test_a_system_that_does_not_tell_memory_fails_the_run():
    memory = {"before": {"agent": None, "client": None}, "after": {"agent": None, "client": None}}
    with pytest.raises(Failed, match="does not tell"):
        growth([line("sessions 10000", memory=memory)])


@pytest.mark.parametrize(
    ("name", "pace", "seconds", "size"),
    [
        ("stream", 412_345, 1.0, 410_000),
        ("tools", 20_000, 1.0, 10_000),
        ("stream", 10, 1.0, 3000),
        ("stream", 1e9, 1.0, 2_000_000),
        ("big", 130, 1.0, 4),
        ("big", 3, 1.0, 1),
        ("memory", 5, 1.0, 10_000),
    ],
)
def test_a_size_fits_the_time_and_stays_within_bounds(name, pace, seconds, size):
    assert MEASURES[name].size(pace, seconds) == size


def test_a_warm_up_runs_ahead_and_counts_for_none():
    measures = [MEASURES["stream"], MEASURES["read"]]
    assert plan(measures, {"stream": 5000, "read": 300}, None, 0.1) == [
        (None, "stream 500"),
        ("stream", "stream 5000"),
        (None, "read 30"),
        ("read", "read 300"),
    ]


def test_long_turns_are_cut_in_the_warm_up_too():
    assert plan([MEASURES["tools"]], {"tools": 1200}, 1000, 0.5) == [
        (None, "tools 500"),
        (None, "tools 100"),
        ("tools", "tools 500"),
        ("tools", "tools 500"),
        ("tools", "tools 200"),
    ]


def test_what_launches_is_not_prompted():
    assert plan([MEASURES["start"], MEASURES["import"]], {"start": 1, "import": 1}, None, 0.1) == []


def test_sessions_are_opened_once():
    assert plan([MEASURES["memory"]], {"memory": 10_000}, None, 1.0) == [("memory", "sessions 10000")]


def test_a_reading_has_the_latencies_of_its_turns():
    found = reading_of(MEASURES["read"], [line(p50us=10, p99us=90), line(p50us=30, p99us=50)])
    assert found == Reading(pytest.approx(1000), 20, 70)


def test_a_turn_that_broke_its_promise_fails_the_run():
    with pytest.raises(Failed, match="`stream 10` did not end as promised"):
        reading_of(MEASURES["stream"], [line(), line(ok=False)])


def test_a_process_s_output_comes_back(tmp_path):
    assert run_process([sys.executable, "-c", "print('here')"], tmp_path) == "here\n"


def test_a_process_that_fails_is_told_by_its_last_words(tmp_path):
    script = "import sys; print('first', file=sys.stderr); sys.exit('last words')"
    with pytest.raises(Failed, match="exit code 1: last words"):
        run_process([sys.executable, "-c", script], tmp_path)


def test_an_exit_code_can_be_expected(tmp_path):
    assert run_process([sys.executable, "-c", "print(1); raise SystemExit(1)"], tmp_path, (0, 1)) == "1\n"


def reading_pairs():
    return {"read": (Reading(2), Reading(1))}


def test_so_many_pairs_are_collected():
    said = []
    assert len(collect(3, reading_pairs, said.append)) == 3
    assert said == ["pair 1 of 3", "pair 2 of 3", "pair 3 of 3"]


def test_a_lost_pair_is_made_up_for():
    attempts = iter([Failed("gone"), None, Failed("gone"), None, None])

    def one_pair():
        if failure := next(attempts):
            raise failure
        return reading_pairs()

    said = []
    assert len(collect(3, one_pair, said.append)) == 3
    assert said.count("lost a pair: gone") == 2


def test_a_peer_that_keeps_breaking_is_given_up():
    said = []

    def one_pair():
        raise Failed("gone")

    assert collect(5, one_pair, said.append) == []
    assert len(said) == SPARE + 1


def test_a_failure_of_ours_is_never_just_a_lost_pair():
    def attempt():
        raise Failed("stuck")

    with pytest.raises(OursFailed, match="read: ours failed: stuck"):
        loud(attempt, "read")


def test_the_loop_is_ours_to_choose(tmp_path):
    assert loops_of(Built(OURS, tmp_path), ["asyncio", "uvloop"]) == ["asyncio", "uvloop"]
    assert loops_of(Built(GO, tmp_path), ["asyncio", "uvloop"]) == ["asyncio"]
    assert side(Built(FLOOR, tmp_path), "uvloop").loop == "uvloop"
    assert side(Built(TYPESCRIPT, tmp_path), "uvloop").loop == ""


def test_imports_are_compared_only_where_both_have_some(tmp_path):
    ours, go, node = (Built(peer, tmp_path) for peer in (OURS, GO, TYPESCRIPT))
    assert possible(MEASURES["import"], ours, node)
    assert not possible(MEASURES["import"], ours, go)
    assert possible(MEASURES["start"], ours, go)


@pytest.mark.parametrize("peer", PEERS.values(), ids=lambda peer: peer.name)
def test_a_side_s_commands_name_its_programs(peer, tmp_path):
    one = Side(Built(peer, tmp_path), "uvloop" if peer.loops else "")
    assert ("--uvloop" in one.agent()) == ("--uvloop" in one.client()) == bool(peer.loops)
    assert one.agent() != one.client()
