"""The command line, `accord COMMAND`: one file for each command."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

from accord import __version__
from accord.cli import (
    agents,
    bridge,
    complete,
    demo,
    doctor,
    help_command,
    info,
    login,
    misplaced,
    new,
    printing,
    run,
    schema,
    serve,
    sessions,
    target,
)
from accord.cli.command import CliCommand, Parser, add_commands, commands_of
from accord.cli.endings import ENDED_WELL, FAILED, INTERRUPTED, WRONG_USAGE, OutputLost, exit_code, one_line
from accord.errors import AccordError

COMMANDS: dict[str, CliCommand] = {
    "agents": CliCommand(agents.SUMMARY, agents.arguments, agents.run),
    "bridge": CliCommand(bridge.SUMMARY, bridge.arguments, bridge.run),
    "completion": CliCommand(complete.SUMMARY, complete.arguments, complete.run),
    "demo": CliCommand(demo.SUMMARY, demo.arguments, demo.run),
    "doctor": CliCommand(doctor.SUMMARY, doctor.arguments, doctor.run),
    "help": CliCommand(help_command.SUMMARY, help_command.arguments, help_command.run),
    "info": CliCommand(info.SUMMARY, info.arguments, info.run),
    "login": CliCommand(login.SUMMARY, login.arguments, login.run),
    "new": CliCommand(new.SUMMARY, new.arguments, new.run),
    "run": CliCommand(run.SUMMARY, run.arguments, run.run),
    "schema": CliCommand(schema.SUMMARY, schema.arguments, schema.run),
    "serve": CliCommand(serve.SUMMARY, serve.arguments, serve.run),
    "sessions": CliCommand(sessions.SUMMARY, sessions.arguments, sessions.run),
}


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
    if arguments[:1] == [complete.HIDDEN]:
        return complete.answer(parser_of_all(), arguments[1:])
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
    parser = parser_of_all()
    before, agent = target.split(arguments)
    options, unknown = parser.parse_known_args(before)
    chosen = commands_of(parser).get(options.command, parser)
    if unknown:
        chosen.error(misplaced.explained(chosen, before, unknown, options))
    if agent and not getattr(options, "takes_agent", False):
        chosen.error(f"accord {options.command or 'COMMAND'} takes no agent; remove -- and what follows it")
    options.agent = agent
    options.parser = parser
    return options


def parser_of_all() -> argparse.ArgumentParser:
    """The parser of every command."""
    parser = Parser(
        prog="accord",
        description="Use and serve agents of the Agent Client Protocol (ACP).",
        epilog="Run accord COMMAND --help, or accord help COMMAND, for the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"accord {__version__}", help="print the version")
    parser.add_argument("--debug", action="store_true", help="show a traceback when a command fails")
    add_commands(parser, COMMANDS, "command")
    return parser
