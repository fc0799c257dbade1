"""`accord login`: lists an agent's login methods and runs one of them."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from accord.cli import printing, target, tokens
from accord.cli.endings import ENDED_WELL, WrongUsage
from accord.printable import label

if TYPE_CHECKING:
    from accord.schema import v1

SUMMARY = "Log in to an agent with one of the methods that it offers."
EPILOG = """\
examples:
  accord login -- gemini --acp                list the methods and choose one
  accord login --list -- my-agent             only list the methods
  accord login --method api-key -- my-agent   use this method

A method may need variables. Those that are not set in the environment are asked
for, and used for this login only: Accord stores none. To start the agent with
them later, set them in its environment."""

LISTED = 50
"""Methods and variables that a terminal shows; agents offer a few."""
COLUMNS = 160
"""Columns of each name or description of an agent at a terminal."""
LONGEST_LINK = 2_000


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.usage = "accord login [options] [-- AGENT...]"
    parser.add_argument("--list", action="store_true", help="list the login methods and exit")
    parser.add_argument("--method", metavar="ID", help="use this login method")
    parser.add_argument("agent", nargs="*", default=[], metavar="AGENT", help=target.HELP)


def run(options: argparse.Namespace) -> int:
    from accord.running import run as run_loop

    return run_loop(_login(options))


async def _login(options: argparse.Namespace) -> int:
    from accord.client import login
    from accord.connecting import connect
    from accord.schema import v1

    async with connect(target.agent_of(options), token=tokens.token(None)) as remote:
        methods = [method for method in remote.auth_methods if not isinstance(method, _unknown())]
        if options.list or not methods:
            _list(methods, remote.name)
            return ENDED_WELL
        method = login.method_of(methods, options.method or _chosen(methods))
        variables = _asked(method) if isinstance(method, v1.AuthMethodEnvVar) else {}
        await remote.login(_id(method), env=variables)
        printing.say(f"Logged in to {label(remote.name, COLUMNS)}.")
    return ENDED_WELL


def _unknown() -> type:
    from accord.schema.base import Unknown

    return Unknown


def _list(methods: Sequence[v1.AuthMethod], agent: str) -> None:
    if not methods:
        printing.say(f"{label(agent, COLUMNS)} offers no login method; it may not need one.")
    elif sys.stdout is not None and sys.stdout.isatty():
        for method in methods[:LISTED]:
            printing.say(_cut(method))
        _count(methods)
    else:
        printing.say("\n".join(map(_described, methods)))


def _count(methods: Sequence[v1.AuthMethod]) -> None:
    if len(methods) > LISTED:
        printing.say(f"… and {len(methods) - LISTED:,} more")


def _described(method: v1.AuthMethod) -> str:
    return _line(*_words(method))


def _cut(method: v1.AuthMethod) -> str:
    """The same for a terminal."""
    return _line(*(label(words, COLUMNS) for words in _words(method)))


def _line(method_id: str, name: str, description: str) -> str:
    return f"{method_id}  {name}" + (f": {description}" if description else "")


def _words(method: v1.AuthMethod) -> tuple[str, str, str]:
    return _id(method), str(getattr(method, "name", "")), str(getattr(method, "description", None) or "")


def _id(method: v1.AuthMethod) -> str:
    return str(getattr(method, "id", ""))


def _chosen(methods: Sequence[v1.AuthMethod]) -> str:
    """The only method, or the one that the user chooses at the terminal."""
    if len(methods) == 1:
        return _id(methods[0])
    if not sys.stdin.isatty():
        raise WrongUsage(f"--method must be one of {', '.join(map(_id, methods[:LISTED]))}")
    for number, method in enumerate(methods[:LISTED], 1):
        printing.say(f"{number}. {_cut(method)}")
    _count(methods)
    answer = input("Which method? ").strip()
    return _id(methods[int(answer) - 1]) if answer.isdecimal() and 0 < int(answer) <= len(methods) else answer


def _asked(method: v1.AuthMethodEnvVar) -> dict[str, str]:
    """The method's variables: from our environment, otherwise asked for at the terminal."""
    from accord.client.login import missing_variables

    missing = missing_variables(method, {})
    if missing and not sys.stdin.isatty():
        raise WrongUsage(f"set {', '.join(wanted.name for wanted in missing[:LISTED])} in the environment")
    if missing and method.link:
        printing.say(f"See {label(method.link, LONGEST_LINK)}")
    given = {wanted.name: os.environ[wanted.name] for wanted in method.vars if wanted.name in os.environ}
    return given | {wanted.name: _typed(wanted) for wanted in missing}


def _typed(wanted: v1.AuthEnvVar) -> str:
    question = f"{label(wanted.label or wanted.name, COLUMNS)}: "
    return getpass.getpass(question) if wanted.secret else input(question)
