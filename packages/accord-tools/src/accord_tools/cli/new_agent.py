"""The files that `accord new agent` writes; PROJECT and PACKAGE stand for the project's two names."""

from __future__ import annotations

PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "PROJECT"
version = "0.1.0"
description = "An agent that speaks the Agent Client Protocol"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["accord"]

[project.optional-dependencies]
test = ["pytest>=8"]

[project.scripts]
PROJECT = "PACKAGE.agent:main"

[tool.hatch.build.targets.wheel]
packages = ["src/PACKAGE"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]
"""

README = """\
# PROJECT

An agent that speaks the Agent Client Protocol, written with Accord.

| command | does |
|---|---|
| `accord run "Hello" -- src/PACKAGE/agent.py` | talks to it, without installing it |
| `accord run "/shout hello" -- src/PACKAGE/agent.py` | uses its slash command |
| `pip install -e '.[test]'` | installs it with what its test needs |
| `pytest` | tests it |
| `PROJECT` | is the command to enter in an editor's settings, once it is installed |
"""

AGENT = '''\
"""The agent: functions that answer prompts."""

from __future__ import annotations

import accord

agent = accord.Agent("PROJECT", version="0.1.0", title="PROJECT")


@agent.on_prompt
async def reply(turn: accord.Turn) -> None:
    """Answer a prompt. What the agent does is a tool call, which its user sees."""
    async with turn.tool("Count the words", kind="think") as tool:
        count = len(turn.text.split())
        await tool.text(f"{count} words")
    await turn.say(f"Your prompt has {count} words.")


@agent.command("shout", "Say something in capitals", hint="what to say")
async def shout(turn: accord.Turn, text: str) -> None:
    await turn.say(text.upper())


def main() -> None:
    """Serve the client that started this program, such as an editor."""
    agent.run()


if __name__ == "__main__":
    main()
'''

TEST = '''\
"""The agent as a client sees it, in one process."""

from __future__ import annotations

import accord
from PACKAGE.agent import agent


async def answer(prompt: str) -> str:
    async with accord.connect(agent) as remote:
        session = await remote.new_session(".")
        return (await session.prompt(prompt)).text


def test_a_prompt_is_answered() -> None:
    assert accord.run(answer("How many words?")) == "Your prompt has 3 words."


def test_a_slash_command_is_answered() -> None:
    assert accord.run(answer("/shout hello")) == "HELLO"
'''

IGNORED = """\
__pycache__/
.pytest_cache/
.venv/
dist/
"""

FILES = {
    "pyproject.toml": PYPROJECT,
    "README.md": README,
    ".gitignore": IGNORED,
    "src/PACKAGE/__init__.py": '"""The agent PROJECT."""\n',
    "src/PACKAGE/agent.py": AGENT,
    "src/PACKAGE/py.typed": "",
    "tests/test_agent.py": TEST,
}
"""The text of each file by its place in the project."""
