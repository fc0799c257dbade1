"""`accord agents`: the agents that have names, those of the registry, and those that you publish."""

from __future__ import annotations

import argparse

from accord_tools.cli.command_table import Command, add_commands, option

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

Other agents are in two files: your own, and that of a project, which is
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
    list_arguments(parser, default=False)
    add_commands(parser, COMMANDS, "agents_command")


def list_arguments(parser: argparse.ArgumentParser, default: object = argparse.SUPPRESS) -> None:
    option(parser, "--json", "print JSON; the values of variables are left out", default=default)


def run(options: argparse.Namespace) -> None:
    """List the agents."""
    from accord_tools.cli.agents.named_agents import list_agents  # the help of this command needs none of it

    list_agents(options)


_COMMANDS = (
    ("add", "named", "Give an agent a name."),
    ("remove", "named", "Remove an agent from its file, or an installed one."),
    ("default", "named", "Print or set the default agent."),
    ("trust", "named", "Trust the project's file as it is now."),
    ("search", "installable", "Search the registry of agents."),
    ("info", "installable", "Show an agent's entry in the registry."),
    ("install", "installable", "Install agents of the registry."),
    ("update", "installable", "Install newer versions of installed agents."),
    ("which", "installable", "Print the command that a name means."),
    ("lock", "installable", "Write installed versions into the lock file."),
    ("forget", "installable", "Forget the checksums of an agent."),
    ("export", "named", "Print an agent as a setting of another client."),
    ("import", "named", "Add the agents of another client's settings."),
    ("check", "published", "For authors: check entries by the registry's rules."),
    ("build", "published", "For authors: build a registry's files."),
    ("verify", "published", "For authors: install an agent, ask it as the registry does, and check it."),
    ("new", "published", "For authors: write an entry, an icon and a job."),
)

COMMANDS = {"list": Command("List the agents, and whether their programs are found.", list_arguments, run)} | {
    name: Command.of_module(f"accord_tools.cli.agents.{kind}_agents", summary, name)
    for name, kind, summary in _COMMANDS
}
