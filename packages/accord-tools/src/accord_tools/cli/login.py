"""`accord login`: lists an agent's login methods and runs one of them."""

from __future__ import annotations

import argparse
import getpass
import os
import shlex
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from accord.errors import AUTH_REQUIRED
from accord.printable import label
from accord_tools.cli.agent_options import ChosenAgent, agent_arguments, chosen_agent, protocol_versions
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_line
from accord_tools.cli.exit_codes import WrongUsage, one_line

if TYPE_CHECKING:
    from accord import RemoteAgent, v1
EPILOG = """\
examples:
  accord login gemini                         an agent that `accord agents` lists
  accord login -- gemini --acp                list the methods and choose one
  accord login --list -- my-agent             only list the methods
  accord login --method api-key -- my-agent   use this method

Afterwards a second process of the agent shows whether the login lasts. If it does not, let `accord run --login METHOD`
log in before its prompt.

A method may need variables. You are asked for those that the environment does not set.
They are used for this login only, and never stored: to start the agent with them later,
set them in its environment."""

LISTED = 50
"""Methods and variables that a terminal shows; agents offer a few."""
COLUMNS = 160
"""Columns of each name or description of an agent at a terminal."""
LONGEST_LINK = 2_000


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.usage = "accord login [options] [AGENT | -- COMMAND...]"
    option(parser, "--list", "list the login methods and exit")
    option(parser, "--method ID", "use this login method")
    option(parser, "--no-check", "do not start the agent again to see whether the login lasts")
    agent_arguments(parser, is_argument=True)


def run(options: argparse.Namespace) -> None:
    from accord import run as run_loop

    run_loop(_login(options, chosen_agent(options)))


async def _login(options: argparse.Namespace, agent: ChosenAgent) -> None:
    from accord import Unknown, connect

    spoken = protocol_versions(options)
    async with connect(agent.target(), versions=spoken) as remote:
        methods = [method for method in remote.auth_methods if not isinstance(method, Unknown)]
        if options.list or not methods:
            _list(methods, remote.name)
            return
        method = remote.login_method(options.method or _chosen(methods))
        await by_method(remote, _id(method))
        print_line(f"Logged in to {label(remote.name, COLUMNS)}.")
    if not options.no_check:
        print_line(await _how_long(agent, _id(method), spoken))


async def log_in(options: argparse.Namespace, remote: RemoteAgent, within: float | None = None) -> None:
    """Log in by the method of `--login`, if it was given; raises Timeout after `within` seconds."""
    if options.login is None:
        return
    import asyncio

    from accord import Timeout

    try:
        async with asyncio.timeout(within):
            await by_method(remote, options.login)
    except Timeout:
        raise
    except TimeoutError:
        raise Timeout(f"the login did not end within {within:.3g} seconds") from None


async def by_method(remote: RemoteAgent, method_id: str) -> None:
    """Log in by this method; the user is asked at the terminal for its missing variables."""
    from accord import v1

    method = remote.login_method(method_id)
    variables = _asked(method) if isinstance(method, v1.AuthMethodEnvVar) else {}
    await remote.login(method_id, env=variables)


async def _how_long(agent: ChosenAgent, method_id: str, spoken: Sequence[int]) -> str:
    """Whether a second process of the agent needs a login, in words."""
    from accord import AccordError, PeerError, connect
    from accord_tools.cli.session_options import trial_session

    try:
        async with connect(agent.target(), versions=spoken) as again, trial_session(again):
            return "The login lasts: the agent opens a session without another one."
    except PeerError as error:
        if error.code == AUTH_REQUIRED:
            return (
                "The login does not last: it ended with the agent's process. "
                f"To log in before a prompt, use: accord run --login {shlex.quote(method_id)} PROMPT ..."
            )
        why: AccordError = error
    except AccordError as error:
        why = error
    return f"Whether the login lasts is unknown, because a second process of the agent failed: {one_line(why)}"


def _list(methods: Sequence[v1.AuthMethod], agent: str) -> None:
    if not methods:
        print_line(f"{label(agent, COLUMNS)} offers no login method; it may not need one.")
    elif sys.stdout is not None and sys.stdout.isatty():
        for method in methods[:LISTED]:
            print_line(_described(method, cut=True))
        _count(methods)
    else:
        print_line("\n".join(_described(method, cut=False) for method in methods))


def _count(methods: Sequence[v1.AuthMethod]) -> None:
    if len(methods) > LISTED:
        print_line(f"… and {len(methods) - LISTED:,} more")


def _described(method: v1.AuthMethod, *, cut: bool) -> str:
    """Describe a method in one line, cut for a terminal, or unchanged for a pipe."""
    said = [str(getattr(method, name, None) or "") for name in ("id", "name", "description")]
    method_id, name, about = [label(words, COLUMNS) for words in said] if cut else said
    return f"{method_id}  {name}" + (f": {about}" if about else "")


def _id(method: v1.AuthMethod) -> str:
    return str(getattr(method, "id", ""))


def _chosen(methods: Sequence[v1.AuthMethod]) -> str:
    """The only method, or the one that the user chooses at the terminal."""
    if len(methods) == 1:
        return _id(methods[0])
    if not sys.stdin.isatty():
        raise WrongUsage(f"--method must be one of {', '.join(map(_id, methods[:LISTED]))}")
    for number, method in enumerate(methods[:LISTED], 1):
        print_line(f"{number}. {_described(method, cut=True)}")
    _count(methods)
    answer = input("Which method? ").strip()
    return _id(methods[int(answer) - 1]) if answer.isdecimal() and 0 < int(answer) <= len(methods) else answer


def _asked(method: v1.AuthMethodEnvVar) -> dict[str, str]:
    """Return the method's variables: from our environment, otherwise from the user at the terminal."""
    missing = method.missing(os.environ)
    if missing and not sys.stdin.isatty():
        raise WrongUsage(f"set {', '.join(wanted.name for wanted in missing[:LISTED])} in the environment")
    if missing and method.link:
        print_line(f"See {label(method.link, LONGEST_LINK)}")
    given = {wanted.name: os.environ[wanted.name] for wanted in method.vars if wanted.name in os.environ}
    with _interruptible():
        return given | {wanted.name: _typed(wanted) for wanted in missing}


@contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C end a question, which blocks the event loop and so every handler of it."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _typed(wanted: v1.AuthEnvVar) -> str:
    question = f"{label(wanted.label or wanted.name, COLUMNS)}: "
    return getpass.getpass(question) if wanted.secret else input(question)
