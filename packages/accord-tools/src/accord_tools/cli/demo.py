"""`accord demo`: the built-in agent over standard input and output."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--login", action="store_true", help="require a login before a session can be opened")
    parser.add_argument("--store", metavar="FILE", help="store the sessions in this SQLite file")
    parser.add_argument(
        "--pace", type=float, metavar="SECONDS", default=0.03, help="the pause between two words (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    from accord_tools.demo import demo_agent

    demo_agent(login=options.login, pace=options.pace, store=options.store).run()
    return 0
