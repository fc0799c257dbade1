"""`accord new`: writes a new project, such as an agent with a test."""

from __future__ import annotations

import argparse
import keyword
import re
from pathlib import Path

from accord_tools.cli.command_table import Command, add_commands
from accord_tools.cli.console import print_line
from accord_tools.cli.exit_codes import ENDED_WELL, WrongUsage

# The files that `accord new agent` writes; PROJECT and PACKAGE stand for the project's two names


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

PLAIN = {"async def": "def", "async with": "with", "await ": "", "accord.Turn": "accord.sync.Turn"}
"""What an agent of plain functions has instead."""


EPILOG = """\
example:
  accord new agent weather
  cd weather
  accord run "Hello" -- src/weather/agent.py
  pip install -e '.[test]' && pytest
  accord new agent weather --plain         without async and await"""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_commands(parser, COMMANDS, "new_command")
    parser.set_defaults(run_command=run)


def run(_options: argparse.Namespace) -> int:
    raise WrongUsage(f"name what to write: {', '.join(COMMANDS)}; accord new --help has an example")


def _agent_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="PROJECT", help="the project's name: letters, digits and - ; also its folder's")
    parser.add_argument("--in", metavar="DIR", dest="parent", default=".", help="the folder to write it in")
    parser.add_argument(
        "--plain", action="store_true", help="write plain functions, which run in threads, not async ones"
    )


def _agent(options: argparse.Namespace) -> int:
    name: str = options.name
    package = name.lower().replace("-", "_")
    if not NAME.fullmatch(name) or keyword.iskeyword(package) or package in ("accord", "test", "tests"):
        raise WrongUsage(f"PROJECT must be a name of letters, digits and -, and no word of Python; got {name!r}")
    folder = Path(options.parent) / name
    if folder.exists():
        raise WrongUsage(f"{folder} exists; choose another name, or another folder with --in DIR")
    agent = AGENT
    for with_async, plain in PLAIN.items() if options.plain else ():
        agent = agent.replace(with_async, plain)
    try:
        for place, text in (FILES | {"src/PACKAGE/agent.py": agent}).items():
            path = folder / place.replace("PACKAGE", package)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("PACKAGE", package).replace("PROJECT", name), encoding="utf-8")
    except OSError as error:
        raise WrongUsage(f"cannot write {folder}: {error.strerror}") from error
    print_line(f"""\
Wrote {folder}: an agent in src/{package}/agent.py, and its test.

  cd {folder}

Talk to it:             accord run "Hello" -- src/{package}/agent.py
Install and test it:    pip install -e '.[test]' && pytest
Then give it a name:    accord agents add {name} -- {name}""")
    return ENDED_WELL


COMMANDS = {"agent": Command("Write a project with an agent, its command and a test.", _agent_arguments, _agent)}
