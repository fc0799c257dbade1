"""Real agents are taken through a whole conversation by our client, with a model that is made of rules."""

import pytest
from benchmarks.build import Unavailable
from interop.conversation import NOT_OFFERED, PASSED, converse, parts_of
from interop.model.server import ModelServer
from interop.real_agents import AGENTS, SECOND_VERSION, installed
from interop.small_tasks import AGENTS as SMALL_TASK_AGENTS, TASKS, questions_of, table

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("name", "version"), [*((name, 1) for name in AGENTS), *((name, 2) for name in SECOND_VERSION)]
)
async def test_a_real_agent_goes_through_the_whole_conversation(name, version, tmp_path):
    agent = AGENTS[name]
    try:
        installed(agent)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with ModelServer() as model:
        parts = await converse(agent, model, tmp_path, version)
    wrong = {part: how for part, how in parts.items() if how not in (PASSED, NOT_OFFERED)}
    assert wrong.keys() == agent.lacks.keys() & parts.keys(), "\n".join([str(wrong), *model.notes])
    assert parts.keys() == set(parts_of(version))


@pytest.mark.parametrize("agent", SMALL_TASK_AGENTS, ids=lambda it: it.name)
async def test_a_real_agent_s_user_is_asked_once_for_each_act(agent, tmp_path, capsys):
    try:
        installed(agent)
    except Unavailable as missing:
        pytest.skip(str(missing))
    found = await questions_of(agent, tmp_path)
    with capsys.disabled():
        print("", table({agent.name: found}), sep="\n")
    for level, outcomes in found.items():
        for task in TASKS:
            outcome = outcomes[task.name]
            if outcome.is_offered:
                assert len(outcome.asked) <= task.at_most.get(level, 0), (level, task.name, outcome)
                assert outcome.is_done, (level, task.name, outcome)
