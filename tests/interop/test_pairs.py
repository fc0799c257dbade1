"""Other people's clients with our agents, and our client with theirs: every behaviour of the suite."""

import pytest
from benchmarks.build import Unavailable
from interop.outcomes import complaint, rows
from interop.pairs import PAIRS

pytestmark = pytest.mark.timeout(300)

CASES = [(pair, behaviour) for pair in PAIRS for behaviour in pair.behaviours()]
NAMES = [f"{pair.client.name}-with-{pair.agent.name}-{behaviour.name}" for pair, behaviour in CASES]


@pytest.mark.interop
@pytest.mark.parametrize(("pair", "behaviour"), CASES, ids=NAMES)
def test_a_client_and_an_agent_do_this_together(pair, behaviour, tmp_path):
    try:
        outcome = pair.run(behaviour, tmp_path)
    except Unavailable as missing:
        pytest.skip(str(missing))
    assert not (wrong := complaint(pair.client.name, pair.agent.name, behaviour.name, outcome)), wrong


def test_every_declared_outcome_is_about_something_that_there_is():
    there = {(pair.client.name, pair.agent.name, behaviour.name) for pair, behaviour in CASES}
    for row in rows():
        for behaviour in row.behaviours:
            assert (row.client, row.agent, behaviour) in there
