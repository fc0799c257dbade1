"""The page of the suite is what its last run made of it, and nothing in it is left unexplained."""

from pathlib import Path

from interop.conversation import NOT_OFFERED, PASSED
from interop.outcomes import complaint, rows
from interop.pairs import PAIRS
from interop.real_agents import AGENTS
from interop.results import Results
from interop.script import Outcome
from interop.table import PAGE, page

FAULTS = Path(__file__).parents[2] / "interop" / "faults"


def test_the_page_is_made_from_the_results():
    assert PAGE.read_text() == page(Results.read()), "run: python -m interop.table"


def test_every_pair_was_run_and_what_did_not_pass_is_declared():
    results = Results.read()
    for pair in PAIRS:
        statuses = results.pairs[pair.key]
        assert statuses.keys() == {behaviour.name for behaviour in pair.behaviours()}, pair.key
        for behaviour, status in statuses.items():
            assert not (wrong := complaint(pair.client.name, pair.agent.name, behaviour, Outcome(status))), wrong


def test_every_real_agent_got_through_its_conversation():
    for name, parts in Results.read().agents.items():
        wrong = {part for part, how in parts.items() if how not in (PASSED, NOT_OFFERED)}
        assert wrong <= AGENTS[name].lacks.keys(), name


def test_every_fault_of_theirs_has_a_reproduction_of_at_most_30_lines():
    for row in rows():
        assert (row.status == "their fault") == bool(row.fault)
        if row.fault:
            assert len((FAULTS / row.fault).read_text().splitlines()) <= 30
