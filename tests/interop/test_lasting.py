"""Sessions that last, across restarts of our agent: taken through by our own client and by other people's."""

import pytest
from benchmarks.build import Unavailable
from interop.peers import OURS, SDKS, THEIRS

from interop import peers, script

LASTING = script.behaviours("lasting")
AGENT = peers.Sdk("lasting", "Accord", client=(), agent=("{python}", "{interop}/agents/lasting_agent.py"))

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("behaviour", LASTING, ids=lambda it: it.name)
@pytest.mark.parametrize("name", [OURS.name, *[pytest.param(name, marks=pytest.mark.interop) for name in THEIRS]])
def test_a_client_finds_its_sessions_again(name, behaviour, tmp_path):
    try:
        client = peers.command(SDKS[name], lambda sdk: sdk.client)
    except Unavailable as missing:
        pytest.skip(str(missing))
    agent = peers.command(AGENT, lambda sdk: sdk.agent)
    outcome = script.run_behaviour(behaviour, client, agent, tmp_path, SDKS[name].environment)
    if outcome.status == "unsupported" and name in THEIRS:
        pytest.skip(f"{SDKS[name].title}: {outcome.problems[0]}")
    assert outcome.status == "passed", outcome.problems
