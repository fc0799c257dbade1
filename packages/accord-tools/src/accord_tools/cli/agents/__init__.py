"""`accord agents`: the agents that have names, those of the registry, and those that you publish."""

from __future__ import annotations

import argparse

from accord_tools.cli.agents import installable_agents, named_agents, published_agents
from accord_tools.cli.command_table import Command, add_commands

EPILOG = """\
examples:
  accord agents                            list them
  accord agents search review              search the registry
  accord agents install gemini             install an agent of the registry
  accord agents update                     install newer versions
  accord agents add mine -- my-agent --acp
  accord agents add team --url https://agents.example/acp --token-file ~/.token
  accord agents add careful --mode plan --allow edit --registry gemini
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
  allow = "edit"
  token_file, headers, ca, proxy  for a URL

The value keyring:NAME of a variable is a secret of the system's keyring. Store
it there with: keyring set accord NAME

The variable ACCORD_CONFIG names another file as your own. A project's file
names programs that run as you: before its first use, and after each change of
it, you are asked whether you trust it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    named_agents.list_arguments(parser, default=False)
    add_commands(parser, COMMANDS, "agents_command")


def run(options: argparse.Namespace) -> int:
    """List the agents."""
    return named_agents.list_agents(options)


def _no_arguments(_parser: argparse.ArgumentParser) -> None: ...


COMMANDS = {
    "list": Command(
        "List the agents, and whether their programs are found.", named_agents.list_arguments, named_agents.list_agents
    ),
    "add": Command("Give an agent a name.", named_agents.add_arguments, named_agents.add),
    "remove": Command(
        "Remove an agent from its file, or an installed one.", named_agents.name_arguments, named_agents.remove
    ),
    "default": Command("Print or set the default agent.", named_agents.default_arguments, named_agents.default),
    "trust": Command("Trust the project's file as it is now.", _no_arguments, named_agents.trust),
    "search": Command("Search the registry of agents.", installable_agents.search_arguments, installable_agents.search),
    "info": Command(
        "Show what the registry says of an agent.", installable_agents.info_arguments, installable_agents.info
    ),
    "install": Command(
        "Install agents of the registry.", installable_agents.install_arguments, installable_agents.install
    ),
    "update": Command(
        "Install newer versions of installed agents.", installable_agents.update_arguments, installable_agents.update
    ),
    "which": Command(
        "Print the command that a name means.", installable_agents.which_arguments, installable_agents.which
    ),
    "lock": Command(
        "Write installed versions into the lock file.", installable_agents.lock_arguments, installable_agents.lock
    ),
    "forget": Command(
        "Forget the checksums of an agent.", installable_agents.forget_arguments, installable_agents.forget
    ),
    "export": Command(
        "Print an agent as a setting of another client.",
        named_agents.export_arguments,
        named_agents.export,
    ),
    "import": Command(
        "Add the agents of another client's settings.",
        named_agents.import_arguments,
        named_agents.import_agents,
    ),
    "check": Command(
        "For authors: check entries by the registry's rules.",
        published_agents.check_arguments,
        published_agents.check,
    ),
    "build": Command(
        "For authors: build a registry's files.", published_agents.build_arguments, published_agents.build
    ),
    "verify": Command(
        "For authors: install an agent, ask it as the registry does, and check it.",
        published_agents.verify_arguments,
        published_agents.verify,
    ),
    "new": Command(
        "For authors: write an entry, an icon and a job.", published_agents.new_arguments, published_agents.new
    ),
}
