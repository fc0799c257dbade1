"""Other people's clients with our agent, and our client with their agents: every behaviour of the suite."""

import pytest
from benchmarks.build import Unavailable
from interop.outcomes import complaint, rows
from interop.peers import OURS, SDKS, THEIRS

from interop import peers, script

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

PROTOCOL = script.behaviours("protocol")


def program(name, part):
    try:
        return peers.command(SDKS[name], part)
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("behaviour", PROTOCOL, ids=lambda it: it.name)
@pytest.mark.parametrize("name", THEIRS)
def test_their_client_and_our_agent_do_this_together(name, behaviour, tmp_path):
    client = program(name, lambda sdk: sdk.client)
    agent = program(OURS.name, lambda sdk: sdk.agent)
    outcome = script.run_behaviour(behaviour, client, agent, tmp_path, SDKS[name].environment)
    assert not (wrong := complaint(name, OURS.name, behaviour.name, outcome)), wrong


@pytest.mark.parametrize("behaviour", PROTOCOL, ids=lambda it: it.name)
@pytest.mark.parametrize("name", THEIRS)
def test_our_client_and_their_agent_do_this_together(name, behaviour, tmp_path):
    client = program(OURS.name, lambda sdk: sdk.client)
    agent = program(name, lambda sdk: sdk.agent)
    outcome = script.run_behaviour(behaviour, client, agent, tmp_path, SDKS[name].environment)
    assert not (wrong := complaint(OURS.name, name, behaviour.name, outcome)), wrong


def test_every_declared_outcome_is_about_something_that_there_is():
    names = {behaviour.name for behaviour in PROTOCOL}
    for row in rows():
        assert {row.client, row.agent} <= set(SDKS) | {"demo"}
        assert set(row.behaviours) <= names | {it.name for it in script.behaviours("demo")}
