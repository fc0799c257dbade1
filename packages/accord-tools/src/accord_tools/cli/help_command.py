"""`accord help`: prints the help of a command, as its option --help does."""

from __future__ import annotations

import argparse

from accord.mistakes import nearest
from accord_tools.cli.endings import ENDED_WELL, WrongUsage
from accord_tools.cli.parser import commands_of


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="the command, such as run, or agents add")


def run(options: argparse.Namespace) -> int:
    parser: argparse.ArgumentParser = options.parser
    for word in options.words:
        known = commands_of(parser)
        if word not in known:
            raise WrongUsage(f"{parser.prog} has no command {word!r}{nearest(word, known)}")
        parser = known[word]
    parser.print_help()
    return ENDED_WELL
