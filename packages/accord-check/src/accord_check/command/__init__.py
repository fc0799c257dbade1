"""`accord check`: judges agents, clients and recorded traces by the clauses of the protocol.

The entry point `check` of the group `accord.commands` names `COMMAND`. `accord --help` imports this module, as does
completion; the others only the commands of `accord check` do.
"""

from __future__ import annotations

import argparse

from accord_tools.cli.command import WRONG_USAGE, Command, add_commands

EPILOG = """\
examples:
  accord check agent -- my-agent --acp           start an agent, and judge what it does
  accord check agent --profile smoke my-agent    without a prompt, in a few seconds
  accord check client -- my-client {agent}       start a client with our agent, and judge what it does
  accord check trace wire.jsonl                  judge both sides of a recorded trace
  accord check list                              the checks, with their clauses
  accord check explain tool.id-unique            one check in full
  accord check pages requirements                a page for each requirement and check

Exit codes: 0 conformant, 1 not conformant, 2 wrong usage, 3 could not be judged (it did not start, it asks for a login,
or the checks themselves failed), 130 interrupted."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_commands(parser, COMMANDS, "check_command")


def run(options: argparse.Namespace) -> int:
    """Print the help: a command is needed."""
    options.used.print_help()
    return WRONG_USAGE


_SUMMARIES = {
    "agent": "Judge an agent: start it, and drive it through scenarios.",
    "client": "Judge a client: be the agent that it starts, in each scenario.",
    "trace": "Judge a recorded trace, both sides at once.",
    "list": "List the checks.",
    "pages": "Write a page for each requirement and check.",
    "explain": "Explain a check: its clause, its page, and what to do.",
}
COMMANDS = {
    name: Command.of_module("accord_check.command.subcommands", summary, name) for name, summary in _SUMMARIES.items()
}
COMMAND = Command("Judge an agent or a trace by the clauses of the protocol.", arguments, run)
