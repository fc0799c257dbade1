"""Opening a session as the user wants it: the agent, its own options, a login before, and which session.

`accord run` and every other command that talks to an agent in a session share this:

    arguments(parser)                     the options
    prepare(options)                      before the event loop: chooses the agent, and takes over its settings
    await log_in(options, remote, within) before the session
    await session_id(options, remote)     the session to open again, or None for a new one
    opened(options, session)              remembers it for --continue
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from accord_tools.cli import target
from accord_tools.cli.endings import WrongUsage

if TYPE_CHECKING:
    from accord import RemoteAgent, RemoteSession


def arguments(parser: argparse.ArgumentParser, *, is_argument: bool = False) -> None:
    parser.add_argument(
        "--continue", action="store_true", dest="continues", help="continue the latest session of this folder"
    )
    parser.add_argument("--login", metavar="METHOD", help="log in by this method first; `accord login --list` has them")
    target.arguments(parser, is_argument=is_argument)


def prepare(options: argparse.Namespace) -> None:
    """Choose the agent. Its settings are the defaults of the options that the user did not give."""
    if options.continues and options.session is not None:
        raise WrongUsage("--continue and --session ID exclude each other: --continue chooses the latest session")
    settings = target.chosen(options).settings
    options.mode = settings.mode if options.mode is None else options.mode
    options.allow = settings.allow if options.allow is None else options.allow
    given = {setting.partition("=")[0] for setting in options.settings}
    ours = {key: str(value).lower() if isinstance(value, bool) else value for key, value in settings.config.items()}
    options.settings = [f"{key}={value}" for key, value in ours.items() if key not in given] + options.settings


async def log_in(options: argparse.Namespace, remote: RemoteAgent, within: float | None = None) -> None:
    """Log in by the method of `--login`, if it was given; raises Timeout after `within` seconds."""
    if options.login is None:
        return
    from accord import Timeout
    from accord_tools.cli.login import by_method

    try:
        async with asyncio.timeout(within):
            await by_method(remote, options.login)
    except Timeout:
        raise
    except TimeoutError:
        raise Timeout(f"the login did not end within {within:.3g} seconds") from None


async def session_id(options: argparse.Namespace, remote: RemoteAgent) -> str | None:
    """The session that `--session` or `--continue` means; None for a new one."""
    from accord_tools.cli import session_ids

    if options.continues:
        return await session_ids.latest(remote, _program(options), absolute(options.cwd))
    if options.session is not None:
        found = await session_ids.find(remote, _program(options), options.session)
        given: str = options.session  # the agent may know a session that it does not list
        return given if found is None else found.id
    return None


def opened(options: argparse.Namespace, session: RemoteSession) -> None:
    """Remember the session for `--continue`."""
    from accord_tools.configuration import last_sessions

    last_sessions.remember(_program(options), session.cwd, session.id)


def _program(options: argparse.Namespace) -> str:
    return target.chosen(options).target().program


def absolute(folder: str) -> str:
    return str(Path(folder).absolute())
