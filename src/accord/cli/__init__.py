"""The command line, `accord COMMAND`: one file for each command."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Collection, Sequence

from accord import __version__
from accord.cli import misplaced, printing, target
from accord.cli.command import CliCommand, Parser, add_commands, tell_json
from accord.cli.endings import ENDED_WELL, FAILED, INTERRUPTED, WRONG_USAGE, OutputLost, exit_code, one_line
from accord.errors import AccordError

COMPLETE = "__complete"
"""What the scripts of `accord completion` call; it is not meant for people."""

COMMANDS: dict[str, CliCommand] = {
    "agent": CliCommand.of_module(
        "accord.cli.agent", "Run a coding agent with a real model, over standard input and output."
    ),
    "agents": CliCommand.of_module(
        "accord.cli.agents", "List agents, give them names, find and install those of the registry."
    ),
    "bridge": CliCommand.of_module(
        "accord.cli.bridge", "Make an agent behind a URL a local agent that speaks over standard input and output."
    ),
    "check": CliCommand.of_module(
        "accord.cli.check", "Judge an agent, or a recorded trace, by the clauses of the protocol."
    ),
    "chat": CliCommand.of_module("accord.cli.chat", "Talk to agents in a terminal client."),
    "completion": CliCommand.of_module(
        "accord.cli.complete", "Print the script that lets a shell complete accord's commands and options."
    ),
    "conduct": CliCommand.of_module(
        "accord.cli.conduct", "Join proxies and an agent to a chain that an editor starts like one agent."
    ),
    "demo": CliCommand.of_module(
        "accord.cli.demo", "Run the built-in agent, which shows every feature without a model or a network."
    ),
    "doctor": CliCommand.of_module(
        "accord.cli.doctor", "Check the installation, the configuration and the agents, and say what to do."
    ),
    "help": CliCommand.of_module("accord.cli.help_command", "Print the help of a command."),
    "hosts": CliCommand.of_module("accord.cli.hosts", "List the hosts of a service that runs on several."),
    "info": CliCommand.of_module("accord.cli.info", "Show what an agent is and what it offers."),
    "inspect": CliCommand.of_module(
        "accord.cli.inspect", "Show traces in a browser: what was said, and how long it took."
    ),
    "login": CliCommand.of_module("accord.cli.login", "Log in to an agent with one of the methods that it offers."),
    "new": CliCommand.of_module("accord.cli.new", "Write a new project."),
    "replay": CliCommand.of_module("accord.cli.replay", "Play the agent or the client of a recorded conversation."),
    "run": CliCommand.of_module("accord.cli.run", "Send one prompt to an agent and print its answer."),
    "schema": CliCommand.of_module(
        "accord.cli.schema", "Print the JSON Schema of the protocol's types, with their official names."
    ),
    "serve": CliCommand.of_module(
        "accord.cli.serve", "Host an agent over HTTP and WebSocket, with a process for each connection."
    ),
    "sessions": CliCommand.of_module(
        "accord.cli.sessions", "List, show, export and delete the sessions that an agent keeps."
    ),
    "trace": CliCommand.of_module(
        "accord.cli.trace", "Record what an editor and an agent say to each other, and look at recordings."
    ),
}
"""Every command and its summary. The module of a command is imported when the command is used."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the process's exit code."""
    printing.clean_last_resort()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(given)
        printing.write_out()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        printing.silence()
        return ENDED_WELL
    except OutputLost as error:  # of the parser, or at the end
        printing.silence()
        printing.complain(f"accord: {one_line(error)}")
        return exit_code(error)
    except Exception:  # a bug of ours; its text may quote an agent
        printing.complain(traceback.format_exc().rstrip())
        return FAILED
    return code


def _run(arguments: Sequence[str]) -> int:
    if arguments[:1] == [COMPLETE]:
        from accord.cli import complete

        return complete.answer(parser_of(COMMANDS), arguments[1:])
    options = _options(arguments)
    if options.command is None:
        options.parser.print_help()
        return WRONG_USAGE
    try:
        code: int = options.run_command(options)
    except OutputLost as error:
        printing.silence()
        printing.complain(f"accord {options.command}: {one_line(error)}")
        return exit_code(error)
    except AccordError as error:
        if options.debug:
            raise
        printing.complain(f"accord {options.command}: {one_line(error)}")
        return exit_code(error)
    return code


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """The options that these arguments give; wrong usage ends the program."""
    before, agent = target.split(arguments)
    # Only the command that is used needs its arguments; the help command shows those of all.
    named = next((word for word in before if not word.startswith("-")), None)
    parser = parser_of(COMMANDS if named == "help" else [name for name in COMMANDS if name == named])
    if "--json" in before:
        tell_json(parser)
    options, unknown = parser.parse_known_args(before)
    used: argparse.ArgumentParser = getattr(options, "used", parser)
    if unknown:
        used.error(misplaced.explained(used, before, unknown, options))
    if agent and not getattr(options, "takes_agent", False):
        used.error(f"{used.prog} takes no agent; remove -- and what follows it")
    options.agent = agent
    options.parser = parser
    return options


def parser_of(filled: Collection[str]) -> argparse.ArgumentParser:
    """The parser of every command; those in `filled` have their arguments."""
    parser = Parser(
        prog="accord",
        description="Use and serve agents of the Agent Client Protocol (ACP).",
        epilog="Run accord COMMAND --help, or accord help COMMAND, for the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"accord {__version__}", help="print the version")
    parser.add_argument("--debug", action="store_true", help="show a traceback when a command fails")
    add_commands(parser, COMMANDS, "command", filled)
    return parser
