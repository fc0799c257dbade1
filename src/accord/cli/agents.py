"""`accord agents`: named and installed agents: lists, adds and removes them, and chooses the default."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from accord.cli import (
    agents_changing,
    agents_exchanging,
    agents_installing,
    agents_publishing,
    agents_registry,
    agents_verifying,
    printing,
)
from accord.cli.endings import ENDED_WELL, WrongUsage
from accord.cli.naming import known_agents
from accord.cli.parser import Command, add_commands
from accord.cli.table import print_table
from accord.errors import ConfigurationError
from accord.masking import mask_urls
from accord.transports.programs import program_file

if TYPE_CHECKING:
    from accord.configuration.known_agents import KnownAgent
    from accord.registry.installed import InstalledAgent

EPILOG = """\
examples:
  accord agents                            list them
  accord agents search review              search the registry
  accord agents install gemini             install an agent of the registry
  accord agents update                     install newer versions
  accord agents add mine -- my-agent --acp
  accord agents add team --url https://agents.example/acp --token-file ~/.token
  accord agents add careful --mode plan --allow reads --registry gemini
  accord agents default gemini             the agent of commands that name none
  accord run "Say hello" -a gemini

Agents of the registry are named by their ids once they are installed.
ACCORD_REGISTRY names another registry: an address, a file or a folder.

Other agents stand in two files: your own, and that of a project, which is
.accord/agents.toml in the project's folder and comes first. `accord agents
list` prints their paths. You may edit both:

  default = "gemini"

  [agents.gemini]
  command = ["gemini", "--acp"]   or url = "https://...", or registry = "gemini"
  description = "Gemini CLI"
  cwd = "..."                     the folder that the program is started in
  env = { GEMINI_MODEL = "flash", GEMINI_API_KEY = "keyring:gemini" }
  env_file = "gemini.env"         more variables, NAME=VALUE on each line
  clean_env = true                it sees few of your variables; see accord run
  mode = "plan"                   defaults of accord run
  config = { fast = true }
  allow = "reads"
  token_file, headers, ca, proxy  for a URL

The value keyring:NAME of a variable is a secret of the system's keyring. Store
it there with: keyring set accord NAME

The variable ACCORD_CONFIG names another file as your own. A project's file
names programs that run as you: before its first use, and after each change of
it, you are asked whether you trust it."""


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

        named = [_plain(agent) for agent in known]
        printing.say(json.dumps([*named, *map(_plain_installed, _installed())], indent=2, ensure_ascii=False))
        return ENDED_WELL
    rows = [_row(agent) for agent in known]
    rows += [_installed_row(agent, _listed()) for agent in _installed()]
    if not rows:
        printing.say("No agent has a name yet. Add one: accord agents add NAME -- COMMAND")
        printing.say("Or install one of the registry: accord agents search, then accord agents install ID")
    else:
        print_table(("NAME", "FROM", "STATE", "AGENT"), rows)
    for file in known.files:
        trusted = "" if is_trusted(file) else " (not trusted: read it, then run: accord agents trust)"
        printing.say(f"{file.owner}'s file: {file.path}{trusted}")
    return ENDED_WELL


def _row(agent: KnownAgent) -> tuple[str, str, str, str]:
    name = agent.name + (" (default)" if agent.is_default else "")
    return name, agent.file.owner, _state(agent), agent.settings.description or mask_urls(agent.settings.where)


def _installed() -> list[InstalledAgent]:
    from accord.registry.installed import all_installed

    return list(all_installed())


def _listed() -> dict[str, str]:
    """The versions that the registry lists, as far as its list is kept on this machine."""
    from accord.registry.errors import RegistryError
    from accord.registry.index import load_index

    try:
        return {entry.id: entry.version for entry in load_index(offline=True)}
    except (ConfigurationError, RegistryError):
        return {}


def _installed_row(agent: InstalledAgent, listed: dict[str, str]) -> tuple[str, str, str, str]:
    from accord.registry.packages import in_words
    from accord.registry.versions import is_newer

    new = listed.get(agent.id, agent.version)
    more = f"; {new} is available" if is_newer(new, agent.listed or agent.version) else ""
    state = "installed" if agent.is_whole else "not found"
    return agent.id, "registry", state, f"{agent.name} {agent.version} from {in_words(agent.kind)}{more}"


def _plain_installed(agent: InstalledAgent) -> dict[str, Any]:
    return {
        "name": agent.id,
        "default": False,
        "from": "registry",
        "version": agent.version,
        "kind": agent.kind,
        "command": agent.argv,
        "program": agent.argv[0] if agent.is_whole else None,
        "description": agent.name,
        "env": sorted(agent.env),
        "integrity": agent.integrity,
        "at": agent.at,
        "size": agent.size,
    }


def _state(agent: KnownAgent) -> str:
    from accord.configuration.trust import is_trusted

    if agent.is_hidden:
        return "hidden"
    if not is_trusted(agent.file):
        return "not trusted"
    if agent.settings.registry is not None:
        from accord.registry.installed import current

        return "installed" if current(agent.settings.registry) is not None else "not installed"
    return "url" if agent.settings.url else "found" if found(agent) else "not found"


def found(agent: KnownAgent) -> str | None:
    """The path of the agent's program; None if it is not found, or the agent has a URL."""
    from accord.configuration.resolving import python_file, started_by_us

    if agent.settings.url is not None or agent.settings.registry is not None:
        return None
    settings = started_by_us(agent.settings)
    if (file := python_file(settings)) is not None:
        return str(file) if file.is_file() else None
    return program_file(settings.words[0], path=settings.env.get("PATH"))


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
    "list": Command("List the agents, and whether their programs are found.", _list_arguments, run),
    "add": Command("Give an agent a name.", agents_changing.add_arguments, agents_changing.add),
    "remove": Command(
        "Remove an agent from its file, or an installed one.", agents_changing.name_arguments, agents_changing.remove
    ),
    "default": Command("Print or set the default agent.", agents_changing.default_arguments, agents_changing.default),
    "trust": Command("Trust the project's file as it is now.", _no_arguments, _trust),
    "search": Command("Search the registry of agents.", agents_registry.search_arguments, agents_registry.search),
    "info": Command("Show what the registry says of an agent.", agents_registry.info_arguments, agents_registry.info),
    "install": Command(
        "Install agents of the registry.", agents_installing.install_arguments, agents_installing.install
    ),
    "update": Command(
        "Install newer versions of installed agents.", agents_installing.update_arguments, agents_installing.update
    ),
    "which": Command(
        "Print the command that a name means.", agents_installing.which_arguments, agents_installing.which
    ),
    "lock": Command(
        "Write installed versions into the lock file.", agents_installing.lock_arguments, agents_installing.lock
    ),
    "forget": Command(
        "Forget the checksums of an agent.", agents_installing.forget_arguments, agents_installing.forget
    ),
    "export": Command(
        "Print an agent as a setting of another client.",
        agents_exchanging.export_arguments,
        agents_exchanging.export,
    ),
    "import": Command(
        "Add the agents of another client's settings.",
        agents_exchanging.import_arguments,
        agents_exchanging.import_agents,
    ),
    "check": Command(
        "For authors: check entries by the registry's rules.",
        agents_publishing.check_arguments,
        agents_publishing.check,
    ),
    "build": Command(
        "For authors: build a registry's files.", agents_publishing.build_arguments, agents_publishing.build
    ),
    "verify": Command(
        "For authors: install an agent, ask it as the registry does, and check it.",
        agents_verifying.verify_arguments,
        agents_verifying.verify,
    ),
    "new": Command(
        "For authors: write an entry, an icon and a job.", agents_publishing.new_arguments, agents_publishing.new
    ),
}
