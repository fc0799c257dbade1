"""The command line, `accord COMMAND`: one file for each command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from accord import AccordError
from accord_tools.cli.agent_options import split_agent
from accord_tools.cli.command_table import parser_for, unknown_arguments_error
from accord_tools.cli.console import clean_last_resort, drop_output, print_error, write_out
from accord_tools.cli.exit_codes import ENDED_WELL, FAILED, INTERRUPTED, WRONG_USAGE, OutputLost, exit_code, one_line

COMPLETE = "__complete"
"""The command for the scripts of `accord completion`; it is not meant for people."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the process's exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(given)
        write_out()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        drop_output()
        return ENDED_WELL
    except OutputLost as error:  # of the parser, or at the end
        drop_output()
        print_error(f"accord: {one_line(error)}")
        return exit_code(error)
    except Exception:  # our bug; its text may quote an agent
        import traceback

        print_error(traceback.format_exc().rstrip())
        return FAILED
    return code


def _run(arguments: Sequence[str]) -> int:
    if arguments[:1] == [COMPLETE]:
        from accord_tools.cli import completion

        completion.answer(arguments[1:])
        return ENDED_WELL
    command = "accord"
    try:
        if not arguments:
            from accord_tools.cli.home import show_home

            clean_last_resort()
            show_home()
            return ENDED_WELL
        options = _options(arguments)
        if options.command is None:
            options.parser.print_help()
            return WRONG_USAGE
        command = f"accord {options.command}"
        clean_last_resort()
        code: int = options.run_command(options) or ENDED_WELL
    except OutputLost as error:
        drop_output()
        print_error(f"{command}: {one_line(error)}")
        return exit_code(error)
    except AccordError as error:
        if "--debug" in split_agent(arguments)[0]:
            raise
        print_error(f"{command}: {one_line(error)}")
        return exit_code(error)
    return code


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options in these arguments; wrong usage ends the program."""
    before, agent = split_agent(arguments)
    parser = parser_for(before)
    options: argparse.Namespace
    options, unknown = parser.parse_known_args(before)
    used: argparse.ArgumentParser = getattr(options, "used", parser)
    if unknown:
        used.error(unknown_arguments_error(used, before, unknown, options))
    if agent and not getattr(options, "takes_agent", False):
        used.error(f"{used.prog} takes no agent; remove -- and what follows it")
    options.agent = agent
    options.parser = parser
    return options
