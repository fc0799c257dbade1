"""The page of the suite is what its last run made of it, and nothing in it is left unexplained."""

from interop.conversation import NOT_OFFERED, PARTS, PASSED, parts_of
from interop.other_clients import OTHER_CLIENTS
from interop.outcomes import complaint, rows
from interop.pairs import PAIRS
from interop.real_agents import AGENTS, SECOND_VERSION
from interop.reproductions import FAULTS, faults
from interop.results import Results
from interop.script import Outcome
from interop.table import PAGE, page


def test_the_page_is_made_from_the_results():
    assert PAGE.read_text() == page(Results.read()), "run: python -m interop.table"


def test_every_pair_was_run_and_what_did_not_pass_is_declared():
    results = Results.read()
    for pair in PAIRS:
        statuses = results.pairs[pair.key]
        assert statuses.keys() == {behaviour.name for behaviour in pair.behaviours()}, pair.key
        for behaviour, status in statuses.items():
            assert not (wrong := complaint(pair.client.name, pair.agent.name, behaviour, Outcome(status))), wrong


def test_everything_was_run_with_every_other_client_and_passed():
    for client in OTHER_CLIENTS:
        assert Results.read().clients[client.name] == dict.fromkeys(client.sentences(), PASSED), client.name


def test_every_real_agent_got_through_its_conversation():
    for name, parts in Results.read().agents.items():
        wrong = {part for part, how in parts.items() if how not in (PASSED, NOT_OFFERED)}
        assert wrong == AGENTS[name].lacks.keys() & set(PARTS), name


def test_every_real_agent_of_version_2_got_through_its_conversation():
    results = Results.read().agents_in_version_2
    assert results.keys() == set(SECOND_VERSION)
    for name, parts in results.items():
        assert parts.keys() == set(parts_of(2))
        wrong = {part for part, how in parts.items() if how not in (PASSED, NOT_OFFERED)}
        assert wrong == AGENTS[name].lacks.keys() & set(parts), name


def test_every_fault_of_theirs_has_a_reproduction():
    assert all((row.status == "their fault") == bool(row.fault) for row in rows())
    named = {row.fault for row in rows() if row.fault} | {
        it.fault for agent in AGENTS.values() for it in agent.lacks.values()
    }
    assert named == set(faults())


def test_no_reproduction_is_longer_than_30_lines():
    assert all(len((FAULTS / name).read_text().splitlines()) <= 30 for name in faults())
