"""The public module for plug-ins of `accord`: everything that a command of another distribution needs.

A plug-in is a `Command` that the distribution names in its entry points. `accord weather` then exists, in `accord
--help` and in the shell's completion, like a command of Accord itself:

    [project.entry-points."accord.commands"]
    weather = "weather.command:COMMAND"

    # weather/command.py
    import argparse

    from accord_tools.cli.command import Command, agent_arguments, chosen_agent, print_line, run_async

    def arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("place", metavar="PLACE", help="the place to ask about")
        agent_arguments(parser)

    def run(options: argparse.Namespace) -> None:
        print_line(run_async(forecast(chosen_agent(options), options.place)))

    COMMAND = Command("Ask an agent about the weather.", arguments, run)

A command that ends well returns nothing. An `AccordError` that `run` raises becomes one line on standard error. Its
exit code is that of the table in the guide: 2 for `WrongUsage` and for a file that is wrong
(`accord.ConfigurationError`), 3 for `accord.Timeout`, 5 for `OutputLost`, otherwise 1. Any other exception is a bug of
the command, and prints a traceback.

Completion follows from the parser: it completes options, choices, the agents' names for the metavar `AGENT`, and files
for the metavar `FILE`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from accord_tools.cli.agent_options import (
    ChosenAgent,
    agent_arguments,
    chosen_agent,
    protocol_argument,
    protocol_versions,
)
from accord_tools.cli.command_table import Command, add_commands, option
from accord_tools.cli.console import print_error, print_json, print_line, print_table, streams, width, write_out
from accord_tools.cli.exit_codes import ENDED_WELL, FAILED, WRONG_USAGE, OutputLost, WrongUsage
from accord_tools.presentation.appearance import Style

__all__ = [
    "ENDED_WELL",
    "FAILED",
    "WRONG_USAGE",
    "ChosenAgent",
    "Command",
    "OutputLost",
    "Style",
    "WrongUsage",
    "add_commands",
    "agent_arguments",
    "chosen_agent",
    "option",
    "paint",
    "print_error",
    "print_json",
    "print_line",
    "print_progress",
    "print_table",
    "protocol_argument",
    "protocol_versions",
    "run_async",
    "terminal_width",
    "write_out",
]


T = TypeVar("T")


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as `accord.run` does, and return its result. Signals end its agents in order."""
    from accord import run  # `accord --help` loads this module, and runs nothing

    return run(main)


def paint(style: Style, text: str) -> str:
    """The text in this style, if standard output shows colours: not in a pipe, and not with `NO_COLOR`."""
    return streams().answer.painted(style, text)


def terminal_width() -> int | None:
    """Return the columns of the terminal that standard output is; None if it is a pipe or a file."""
    return width(1) if streams().answer.is_terminal else None


def print_progress(text: str) -> None:
    """Print a line on standard error if that is a terminal, where a person reads it."""
    if streams().aside.is_terminal:
        print_error(text)
