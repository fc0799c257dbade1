"""`accord agents`: the agents that have names: lists, adds and removes them, and chooses the default."""

from __future__ import annotations

import argparse
import shutil
from typing import TYPE_CHECKING, Any

from accord.cli import agents_changing, printing
from accord.cli.command import CliCommand, add_commands
from accord.cli.endings import ENDED_WELL, WrongUsage
from accord.cli.naming import known_agents
from accord.cli.table import print_table
from accord.masking import mask_urls

if TYPE_CHECKING:
    from accord.configuration.known_agents import KnownAgent

EPILOG = """\
examples:
  accord agents                                           list them
  accord agents add gemini -- gemini --acp                a command
  accord agents add team --url https://agents.example/acp --token-file ~/.team-token
  accord agents add careful --mode plan --set fast=true --allow reads -- my-agent
  accord agents default gemini                            the agent of commands that name none
  accord run "Say hello" -a gemini

Agents stand in two files: your own, and that of a project, which is .accord/agents.toml in the project's folder and
comes first. `accord agents list` prints their paths. You may edit both:

  default = "gemini"

  [agents.gemini]
  command = ["gemini", "--acp"]             or url = "https://..."
  description = "Gemini CLI"
  cwd = "..."                               the folder that the program is started in
  env = { GEMINI_MODEL = "flash" }
  mode = "plan"                             defaults of accord run
  config = { fast = true }
  allow = "reads"
  token_file, headers, ca                   for a URL

The variable ACCORD_CONFIG names another file as your own. A project's file names programs that run as you: before its
first use, and after each change of it, you are asked whether you trust it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    _list_arguments(parser, default=False)
    add_commands(parser, COMMANDS, "agents_command")


def run(options: argparse.Namespace) -> int:
    """List the agents."""
    from accord.configuration.trust import is_trusted

    known = known_agents()
    if options.json:
        import json

        printing.say(json.dumps([_plain(agent) for agent in known], indent=2, ensure_ascii=False))
        return ENDED_WELL
    agents = list(known)
    if not agents:
        printing.say("No agent has a name yet. Add one: accord agents add NAME -- COMMAND")
    else:
        print_table(("NAME", "FROM", "STATE", "AGENT"), [_row(agent) for agent in agents])
    for file in known.files:
        trusted = "" if is_trusted(file) else " (not trusted: read it, then run: accord agents trust)"
        printing.say(f"{file.owner}'s file: {file.path}{trusted}")
    return ENDED_WELL


def _row(agent: KnownAgent) -> tuple[str, str, str, str]:
    name = agent.name + (" (default)" if agent.is_default else "")
    return name, agent.file.owner, _state(agent), agent.settings.description or mask_urls(agent.settings.where)


def _state(agent: KnownAgent) -> str:
    from accord.configuration.trust import is_trusted

    if agent.is_hidden:
        return "hidden"
    if not is_trusted(agent.file):
        return "not trusted"
    return "url" if agent.settings.url else "found" if found(agent) else "not found"


def found(agent: KnownAgent) -> str | None:
    """The path of the agent's program; None if it is not found, or the agent has a URL."""
    from accord.configuration.resolving import python_file, started_by_us

    if agent.settings.url is not None:
        return None
    settings = started_by_us(agent.settings)
    if (file := python_file(settings)) is not None:
        return str(file) if file.is_file() else None
    return shutil.which(settings.words[0], path=settings.env.get("PATH"))


def _plain(agent: KnownAgent) -> dict[str, Any]:
    from accord.configuration.trust import is_trusted

    settings = agent.settings
    return {
        "name": agent.name,
        "default": agent.is_default,
        "from": agent.file.owner,
        "file": str(agent.file.path),
        "trusted": is_trusted(agent.file),
        "hidden": agent.is_hidden,
        **({"url": mask_urls(settings.url)} if settings.url else {"command": settings.words, "program": found(agent)}),
        "description": settings.description,
        "cwd": settings.cwd,
        "env": sorted(settings.env),
        "mode": settings.mode,
        "config": settings.config,
        "allow": settings.allow,
    }


def _list_arguments(parser: argparse.ArgumentParser, default: object = argparse.SUPPRESS) -> None:
    parser.add_argument(
        "--json", action="store_true", default=default, help="print JSON; the values of variables are left out"
    )


def _trust(_options: argparse.Namespace) -> int:
    from accord.cli.trusting import described
    from accord.configuration.trust import trust

    if (file := known_agents().project) is None:
        raise WrongUsage("no project's file: no .accord/agents.toml in this folder or above it")
    trust(file)
    printing.say("\n".join([f"Trusted, as long as it does not change: {file.path}", *described(file)]))
    return ENDED_WELL


def _no_arguments(_parser: argparse.ArgumentParser) -> None: ...


COMMANDS = {
    "list": CliCommand("List the agents, and whether their programs are found.", _list_arguments, run),
    "add": CliCommand("Give an agent a name.", agents_changing.add_arguments, agents_changing.add),
    "remove": CliCommand("Remove an agent from its file.", agents_changing.name_arguments, agents_changing.remove),
    "default": CliCommand(
        "Print or set the default agent.", agents_changing.default_arguments, agents_changing.default
    ),
    "trust": CliCommand("Trust the project's file as it is now.", _no_arguments, _trust),
}
