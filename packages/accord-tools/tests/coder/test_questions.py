"""How often the user is asked for ten small tasks, with the coding agent and the client of `accord run` and chat."""

import pytest
from interop.small_tasks import LEVELS, TASKS, questions_at

import accord
from accord_tools.coder.coding_agent import coding_agent

pytestmark = pytest.mark.parametrize("api", ["openai"])


@pytest.mark.parametrize("level", LEVELS)
async def test_one_act_is_one_question_at_every_level_and_reading_is_none(settings, model, project, level):
    agent = coding_agent(settings, version="0", store=None)
    outcomes = await questions_at(level, model, project, lambda client: accord.connect(agent, client, unstable=True))
    wanted = {task.name: task.at_most.get(level, 0) for task in TASKS}
    # Ours does not ask about a file outside of the session's folders: the client would refuse it.
    wanted["a file outside"] = 0
    wanted["several edits"] = 1 if level == "ask" else 0
    assert {name: len(it.asked) for name, it in outcomes.items()} == wanted, outcomes
    assert all(it.is_done and it.is_offered for it in outcomes.values()), outcomes
