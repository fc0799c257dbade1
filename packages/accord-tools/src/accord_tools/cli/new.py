"""`accord new`: writes a new project, such as an agent with a test."""

from __future__ import annotations

import argparse
import keyword
import re
from pathlib import Path

from accord_tools.cli import printing
from accord_tools.cli.endings import ENDED_WELL, WrongUsage
from accord_tools.cli.new_agent import FILES
from accord_tools.cli.parser import Command, add_commands

EPILOG = """\
example:
  accord new agent weather
  cd weather
  accord run "Hello" -- src/weather/agent.py
  pip install -e '.[test]' && pytest"""

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


def _agent(options: argparse.Namespace) -> int:
    name: str = options.name
    package = name.lower().replace("-", "_")
    if not NAME.fullmatch(name) or keyword.iskeyword(package) or package in ("accord", "test", "tests"):
        raise WrongUsage(f"PROJECT must be a name of letters, digits and -, and no word of Python; got {name!r}")
    folder = Path(options.parent) / name
    if folder.exists():
        raise WrongUsage(f"{folder} exists; choose another name, or another folder with --in DIR")
    try:
        for place, text in FILES.items():
            path = folder / place.replace("PACKAGE", package)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("PACKAGE", package).replace("PROJECT", name), encoding="utf-8")
    except OSError as error:
        raise WrongUsage(f"cannot write {folder}: {error.strerror}") from error
    printing.say(f"""\
Wrote {folder}: an agent in src/{package}/agent.py, and its test.

  cd {folder}

Talk to it:             accord run "Hello" -- src/{package}/agent.py
Install and test it:    pip install -e '.[test]' && pytest
Then give it a name:    accord agents add {name} -- {name}""")
    return ENDED_WELL


COMMANDS = {"agent": Command("Write a project with an agent, its command and a test.", _agent_arguments, _agent)}
