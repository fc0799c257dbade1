"""`accord new`: writes a new project, such as an agent with a test."""

from __future__ import annotations

import argparse
import keyword
import re
from pathlib import Path

from accord_tools.cli.command_table import Command, add_commands, option
from accord_tools.cli.console import print_line
from accord_tools.cli.exit_codes import WrongUsage

TEMPLATE = Path(__file__).with_name("templates") / "agent"
"""The files of a project, each with .txt after its name; PROJECT and PACKAGE stand for the project's two names."""

PLAIN = {"async def": "def", "async with": "with", "await ": "", "accord.Turn": "accord.sync.Turn"}
"""The replacements for an agent of plain functions."""


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
    option(parser, "--in DIR", "the folder to write it in", dest="parent", default=".")
    option(parser, "--plain", "write plain functions, which run in threads, not async ones")


def _agent(options: argparse.Namespace) -> None:
    name: str = options.name
    package = name.lower().replace("-", "_")
    if not NAME.fullmatch(name) or keyword.iskeyword(package) or package in ("accord", "test", "tests"):
        raise WrongUsage(f"PROJECT must be a name of letters, digits and -, and no word of Python; got {name!r}")
    folder = Path(options.parent) / name
    if folder.exists():
        raise WrongUsage(f"{folder} exists; choose another name, or another folder with --in DIR")
    try:
        for template in TEMPLATE.rglob("*.txt"):
            path = folder / str(template.relative_to(TEMPLATE).with_suffix("")).replace("PACKAGE", package)
            text = template.read_text("utf-8")
            for with_async, plain in PLAIN.items() if options.plain and path.name == "agent.py" else ():
                text = text.replace(with_async, plain)
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


COMMANDS = {"agent": Command("Write a project with an agent, its command and a test.", _agent_arguments, _agent)}
