"""Every check that follows from a MUST or a SHOULD has a mutant: a program or a trace with exactly this fault."""

from __future__ import annotations

from accord_check.checks import ACTIVE_OF_AGENT, ACTIVE_OF_CLIENT, CHECKS, PASSIVE, Check
from tests.check.test_clients_over_http import MUTANTS as HTTP_CLIENTS
from tests.check.test_mutants_of_a_client import MUTANTS as CLIENTS
from tests.check.test_mutants_of_a_trace import MUTANTS as TRACES, MUTANTS_V2 as TRACES_V2
from tests.check.test_mutants_of_a_v2_agent import MUTANTS as AGENTS_V2
from tests.check.test_mutants_of_a_v2_client import MUTANTS as CLIENTS_V2
from tests.check.test_mutants_of_an_agent import MUTANTS as AGENTS
from tests.check.test_raw_http import FAULTS as HTTP_AGENTS

OF_TRACES = [found for _, found in (*TRACES.values(), *TRACES_V2.values())]
"""What is found in each broken trace, as `SIDE ID`, with a mark before the side."""

OF_AGENTS = [mutant.found for mutant in (*AGENTS.values(), *AGENTS_V2.values())] + list(HTTP_AGENTS.values())
"""What is found of each broken agent, as ids with a mark before them."""

OF_CLIENTS = [mutant.found for mutant in (*CLIENTS.values(), *CLIENTS_V2.values())] + list(HTTP_CLIENTS.values())
"""The same of each broken client."""


def names(tables: list[set[str]]) -> set[str]:
    return {name.lstrip("~?") for found in tables for name in found}


def owed(check: Check) -> bool:
    return check.level in ("MUST", "SHOULD")


def test_every_check_of_a_trace_has_a_mutant_on_each_side_that_can_break_it():
    wanted = {
        f"{side} {check.id}"
        for check in PASSIVE.values()
        if owed(check)
        for side in ("agent", "client")
        if check.of in (side, "both", "transport")
    }
    assert wanted - names(OF_TRACES) == set()


def test_every_check_that_takes_a_scenario_has_an_agent_or_a_client_that_breaks_it():
    assert {check.id for check in ACTIVE_OF_AGENT.values() if owed(check)} - names(OF_AGENTS) == set()
    assert {check.id for check in ACTIVE_OF_CLIENT.values() if owed(check)} - names(OF_CLIENTS) == set()


def test_no_check_stands_in_two_parts_of_the_file():
    assert len(CHECKS) == len(PASSIVE) + len(ACTIVE_OF_AGENT) + len(ACTIVE_OF_CLIENT)


def test_there_are_mutants_enough():
    assert sum(1 for found in (*OF_TRACES, *OF_AGENTS, *OF_CLIENTS) if found) >= 400
