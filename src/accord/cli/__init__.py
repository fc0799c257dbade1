"""The command line, `accord COMMAND`: one file for each command."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from accord import __version__
from accord.cli import bridge, demo, login, printing, run, schema, serve, target
from accord.cli.endings import ENDED_WELL, FAILED, INTERRUPTED, WRONG_USAGE, OutputLost, exit_code, one_line
from accord.errors import AccordError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class CliCommand(NamedTuple):
    """A command: its summary, its arguments and the function that runs it."""

    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS: dict[str, CliCommand] = {
    "bridge": CliCommand(bridge.SUMMARY, bridge.arguments, bridge.run),
    "demo": CliCommand(demo.SUMMARY, demo.arguments, demo.run),
    "login": CliCommand(login.SUMMARY, login.arguments, login.run),
    "run": CliCommand(run.SUMMARY, run.arguments, run.run),
    "schema": CliCommand(schema.SUMMARY, schema.arguments, schema.run),
    "serve": CliCommand(serve.SUMMARY, serve.arguments, serve.run),
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
    parser = _parser()
    before, agent = target.split(arguments)
    options = parser.parse_args(before)
    if agent and not hasattr(options, "agent"):
        parser.error(f"accord {options.command or 'COMMAND'} takes no agent; remove -- and what follows it")
    if getattr(options, "agent", None):
        parser.error(f"unexpected arguments: {' '.join(options.agent)}; put -- before the agent's command")
    options.agent = agent
    if options.command is None:
        parser.print_help()
        return WRONG_USAGE
    try:
        return COMMANDS[options.command].run(options)
    except OutputLost as error:
        printing.silence()
        printing.complain(f"accord {options.command}: {one_line(error)}")
        return exit_code(error)
    except AccordError as error:
        if options.debug:
            raise
        printing.complain(f"accord {options.command}: {one_line(error)}")
        return exit_code(error)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="accord",
        description="Use and serve agents of the Agent Client Protocol (ACP).",
        epilog="Run accord COMMAND --help for the options of a command.",
        formatter_class=_Formatter,
    )
    parser.add_argument("--version", action="version", version=f"accord {__version__}", help="print the version")
    parser.add_argument("--debug", action="store_true", help="show a traceback when a command fails")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(name, help=command.summary, description=command.summary)
        command.arguments(subparser)
    return parser


class _Parser(argparse.ArgumentParser):
    """Reports help that could not be written, where argparse would be silent."""

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if file is sys.stdout:
            printing.write_out(message)
        else:
            super()._print_message(message, file)


class _Formatter(argparse.HelpFormatter):
    """Lists the commands without a heading line that says only COMMAND."""

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        return text.partition("\n")[2] if action.nargs == argparse.PARSER else text
