"""`accord demo`: the built-in agent over standard input and output."""

from __future__ import annotations

import argparse
import sys

SUMMARY = "Serve the built-in agent, which shows every feature without a model or a network."
NOBODY_THERE = """\
This is an agent: it speaks the Agent Client Protocol on its standard input and output, and waits for a client.
Name it in an editor's settings as the command `accord demo`.
Press Ctrl-D to end it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--login", action="store_true", help="want an authentication before anything else")
    parser.add_argument("--store", metavar="FILE", help="keep the sessions in this SQLite file")
    parser.add_argument(
        "--pace", type=float, metavar="SECONDS", default=0.03, help="time between two words (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    from accord.demo import demo_agent

    if sys.stdin.isatty():
        print(NOBODY_THERE, file=sys.stderr)
    demo_agent(login=options.login, pace=options.pace, store=options.store).run()
    return 0
