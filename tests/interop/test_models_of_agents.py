"""Real agents change their model: the model server sees which one they ask for."""

from dataclasses import replace

import pytest
from benchmarks.build import Unavailable
from interop.conversation import Conversation
from interop.model.replies import SENTENCE
from interop.model.server import ModelServer
from interop.real_agents import CODEX, GEMINI, QWEN, command, environment, installed, repository

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]

QWEN_MODELS = """\
{{"modelProviders": {{"openai": [
  {{"id": "fake", "name": "Fake", "baseUrl": "{url}/v1", "envKey": "OPENAI_API_KEY"}},
  {{"id": "other", "name": "Other", "baseUrl": "{url}/v1", "envKey": "OPENAI_API_KEY"}}
]}}}}
"""
QWEN_WITH_TWO = replace(QWEN, files=lambda url: {".qwen/settings.json": QWEN_MODELS.format(url=url)})
"""Qwen offers the models of its settings; without any it has one."""


@pytest.mark.parametrize(
    ("agent", "model", "name"),
    [
        pytest.param(GEMINI, "gemini-2.5-pro", "gemini-2.5-pro", id="gemini-cli"),
        pytest.param(CODEX, "gpt-6-luna", "gpt-6-luna", id="codex-acp"),
        pytest.param(QWEN_WITH_TWO, "other(openai)", "other", id="qwen-code"),
    ],
)
async def test_a_real_agent_changes_its_model(agent, model, name, tmp_path):
    try:
        installed(agent)
    except Unavailable as missing:
        pytest.skip(str(missing))
    home, work = tmp_path / "home", repository(tmp_path / "work")
    home.mkdir()
    with ModelServer() as server:
        talk = Conversation(command(agent, home), agent, work, environment(agent, server.url, home), 1)
        async with talk.connect() as remote:
            session = await remote.new_session(work)
            offered = [it.model_id for it in session.state.models]
            assert model in offered, offered
            assert session.state.model != model
            await session.set_model(model)
            assert session.state.model == model
            outcome = await session.prompt("Say hello.")
            assert SENTENCE in outcome.text, outcome.text
    answered = [asked for asked, text in server.asked if "Say hello." in text]
    assert name in answered, server.asked
