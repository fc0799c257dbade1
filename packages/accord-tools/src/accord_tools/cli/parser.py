"""The parser of the command line: how a command is declared, and what its parser does better than argparse.

Commands of other distributions use `accord_tools.cli.command`, which offers what they need of this and other modules.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from accord.mistakes import nearest
from accord_tools.cli import printing
from accord_tools.cli.endings import WrongUsage

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class Command(NamedTuple):
    """A command of `accord`."""

    summary: str
    """What it does, as one sentence for `accord --help`."""
    arguments: Callable[[argparse.ArgumentParser], None]
    """Adds the options to the command's parser, and the examples as `parser.epilog`."""
    run: Callable[[argparse.Namespace], int]
    """Runs the command with the options that were given, and returns its exit code."""

    @classmethod
    def of_module(cls, module: str, summary: str) -> Command:
        """The command whose functions `arguments` and `run` are in this module.

        The module is imported when the command is used: `accord --help` needs only the summary.
        """

        def arguments(parser: argparse.ArgumentParser) -> None:
            importlib.import_module(module).arguments(parser)

        def run(options: argparse.Namespace) -> int:
            code: int = importlib.import_module(module).run(options)
            return code

        return cls(summary, arguments, run)


def add_commands(
    parser: argparse.ArgumentParser,
    commands: Mapping[str, Command],
    dest: str,
    filled: Collection[str] | None = None,
) -> None:
    """Give a command commands of its own; `dest` is the attribute of the options that names the chosen one.

    `options.used` is then the parser of the one that is used, and `options.run_command` the function to run it. Only
    the commands in `filled` get their arguments; by default all.
    """
    place = parser.add_subparsers(dest=dest, metavar="COMMAND", title="commands", parser_class=Parser)
    for name, command in commands.items():
        added = place.add_parser(name, help=command.summary, description=command.summary)
        added.set_defaults(run_command=command.run, used=added)
        if filled is None or name in filled:
            command.arguments(added)


def tell_json(parser: argparse.ArgumentParser) -> None:
    """Print wrong usage of this parser and of its commands as JSON, too."""
    if isinstance(parser, Parser):
        parser.tells_json = True
    for command in commands_of(parser).values():
        tell_json(command)


def commands_of(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The parsers of a parser's commands, by their names."""
    for action in actions_of(parser):
        if action.nargs == argparse.PARSER:
            return cast("Mapping[str, argparse.ArgumentParser]", action.choices)
    return {}


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options and arguments of a parser, for which argparse has no public name."""
    return parser._actions  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class Parser(argparse.ArgumentParser):
    """Suggests what is meant by an unknown word, and reports help that could not be written."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"formatter_class": Formatter, **options})

    tells_json = False
    """Whether wrong usage is printed as JSON, too, because the user asked for JSON."""

    def error(self, message: str) -> NoReturn:
        """End the program because of wrong usage."""
        if self.tells_json:
            from accord_tools.cli.events import report

            report(WrongUsage(message))
        super().error(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        if action.nargs == argparse.PARSER:
            self.error(f"unknown command {value!r}{nearest(value, known) or f'; {self.prog} --help lists all'}")
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}{nearest(str(value), known)}")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if file is sys.stdout:  # where argparse would be silent
            printing.write_out(message)
        else:
            super()._print_message(message, file)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of examples, and lists commands without a heading line that says only COMMAND."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # argparse forgets that commands are indented, and would break the line after the longest name.
        self._action_max_length = 14

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        return text.partition("\n")[2] if action.nargs == argparse.PARSER else text
