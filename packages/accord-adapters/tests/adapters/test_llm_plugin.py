"""The example of an adapter in a distribution of its own: ACP agents as a model of LLM."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[4] / "examples" / "plugins" / "llm-acp"
AGENT = """
import accord

agent = accord.Agent("helper", accepts=["image"], unstable=True)


@agent.on_prompt
async def reply(turn):
    await turn.say("You said: ")
    await turn.say("|".join(getattr(block, "text", type(block).__name__) for block in turn.prompt))
    turn.tokens(5, 2)


agent.run()
"""

pytestmark = pytest.mark.skipif(importlib.util.find_spec("llm") is None, reason="LLM is missing: make test-adapters")


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Run `llm` with the plug-in installed and an agent as its model."""
    folder = tmp_path_factory.mktemp("llm")
    (folder / "agent.py").write_text(AGENT)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(PLUGIN)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(folder), "LLM_USER_PATH": str(folder / "user")}

    def run(*arguments, agent=f"{sys.executable} {folder / 'agent.py'}"):
        command = [sys.executable, "-m", "llm", *arguments, "-o", "agent", agent]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def test_an_agent_answers_as_a_model_and_knows_the_conversation(ask, tmp_path):
    first = ask("-m", "acp", "Hello", "--usage")
    assert (first.returncode, first.stdout) == (0, "You said: Hello\n"), first.stderr
    assert "5 input, 2 output" in first.stderr
    again = ask("-c", "Again", "--no-stream")
    assert again.stdout == "You said: \n[user]\n|Hello|\n[assistant]\n|You said: Hello|\n[user]\n|Again\n", again.stderr
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    assert ask("-m", "acp", "See", "-a", str(picture)).stdout == "You said: See|ImageContent\n"


def test_an_agent_that_cannot_be_started_is_an_error_of_llm(ask):
    failed = ask("-m", "acp", "Hello", agent="/no/such/agent --acp")
    assert failed.returncode == 1
    assert "Error: cannot start /no/such/agent: no such file" in failed.stderr
