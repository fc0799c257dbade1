"""Real agents are taken through a whole conversation by our client, with a model that is made of rules."""

import pytest
from benchmarks.build import Unavailable
from interop.conversation import NOT_OFFERED, PARTS, PASSED, converse
from interop.model.server import ModelServer
from interop.real_agents import AGENTS, installed

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", AGENTS)
async def test_a_real_agent_goes_through_the_whole_conversation(name, tmp_path):
    agent = AGENTS[name]
    try:
        installed(agent)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with ModelServer() as model:
        parts = await converse(agent, model, tmp_path)
    wrong = {part: how for part, how in parts.items() if how not in (PASSED, NOT_OFFERED)}
    assert wrong.keys() == agent.lacks.keys() & set(PARTS), "\n".join([str(wrong), *model.notes])
    assert parts.keys() == set(PARTS)
