"""Agents of the official Python SDK go through a whole conversation on our engine, with nothing of them changed."""

import pytest
from benchmarks.build import Unavailable
from interop.compat_agents import AGENTS
from interop.conversation import NOT_OFFERED, PASSED, converse
from interop.model.server import ModelServer
from interop.real_agents import installed

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", AGENTS)
async def test_an_agent_of_the_official_sdk_goes_through_the_whole_conversation_on_our_engine(name, tmp_path):
    agent = AGENTS[name]
    try:
        installed(agent)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with ModelServer() as model:
        parts = await converse(agent, model, tmp_path, 1)
    wrong = {part: how for part, how in parts.items() if how not in (PASSED, NOT_OFFERED)}
    assert wrong.keys() == agent.lacks.keys() & parts.keys(), "\n".join([str(wrong), *model.notes])
