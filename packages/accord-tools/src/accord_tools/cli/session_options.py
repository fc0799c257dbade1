"""Opening a session with the user's options: the agent, its own options, a login, and the choice of the session.

`accord run` and every other command that talks to an agent in a session share this:

    session_arguments(parser)               the options
    prepare_session(options)                before the event loop: chooses the agent, and takes over its settings
    await log_in(options, remote, within)   before the session, in `login.py`
    await open_session(options, remote, servers)   the session, new or opened again, as the options set it up
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from accord.printable import label
from accord_tools.cli.agent_options import chosen_agent
from accord_tools.cli.command_table import option
from accord_tools.cli.exit_codes import WrongUsage

if TYPE_CHECKING:
    from accord import Budget, Outcome, RemoteAgent, RemoteSession, v1
    from accord_tools.configuration.last_sessions import KnownSession

LISTED = 5
COLUMNS = 60


async def find_session(remote: RemoteAgent, program: str, given: str) -> KnownSession | None:
    """Return the session whose id is `given`, or starts with it; None if there is none, WrongUsage if there are
    several.
    """
    from accord_tools.configuration.last_sessions import known_sessions

    known = await known_sessions(remote, program)
    for session in known:
        if session.id == given:
            return session
    found = [session for session in known if session.id.startswith(given)]
    if len(found) > 1:
        shown = ", ".join(label(session.id, COLUMNS) for session in found[:LISTED])
        more = f" and {len(found) - LISTED:,} more" if len(found) > LISTED else ""
        raise WrongUsage(f"several sessions have an id that starts with {given!r}: {shown}{more}")
    return found[0] if found else None


async def latest_session(remote: RemoteAgent, program: str, folder: str) -> str:
    """The id of the latest session of this folder; raises WrongUsage if it has no session."""
    from accord_tools.configuration.last_sessions import known_sessions, last_sessions

    known = await known_sessions(remote, program, folder)
    if not known:
        raise WrongUsage(f"the agent has no session of the folder {folder} to continue; leave out --continue")
    if known[0].updated is None:  # an agent that sends no times may list its sessions in any order
        there = {session.id for session in known}
        ours = [it.id for it in last_sessions(program, folder) if it.id in there]
        return next(iter(ours), known[0].id)
    return known[0].id


def read_mcp_file(path: str, cwd: str = ".") -> Sequence[v1.McpServer]:
    """The servers in this file: `{"mcpServers": {"name": {...}}}`, or a list as the protocol writes them."""
    import json

    from accord import ConfigurationError, DecodeError, load_mcp_servers, v1
    from accord.schema import codec

    try:
        said = json.loads(Path(path).read_bytes())
    except (OSError, ValueError):
        said = None  # it may have comments; the reader below reports problems
    try:
        return codec.convert(said, list[v1.McpServer]) if isinstance(said, list) else load_mcp_servers(path, cwd=cwd)
    except DecodeError as error:
        raise WrongUsage(f"--mcp {path}: {error}") from None
    except ConfigurationError as error:
        raise WrongUsage(f"--mcp {error}") from None


OPEN_WITHIN = 60.0
"""Seconds that the agent has to open the session."""


@asynccontextmanager
async def trial_session(remote: RemoteAgent, folder: str | None = None) -> AsyncGenerator[RemoteSession]:
    """Open a session in this folder, and delete it, or close it if the agent cannot delete sessions."""
    import asyncio

    from accord import AccordError, Timeout

    try:
        async with asyncio.timeout(OPEN_WITHIN):
            session = await remote.new_session(folder)
    except Timeout:
        raise
    except TimeoutError:
        raise Timeout(f"the agent did not open a session within {OPEN_WITHIN:g} seconds") from None
    try:
        yield session
    finally:
        with suppress(AccordError):
            offers = remote.capabilities.sessions
            if offers.delete:
                await remote.delete(session.id)
            else:
                await session.close()


def folder_argument(group: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    option(group, "-C --cwd DIR", "the session's folder (default: the current folder)", default=".")


def session_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:  # pyright: ignore[reportPrivateUsage]
    """Add the options that choose and set up a session; returns their group."""
    group = parser.add_argument_group("the session")
    folder_argument(group)
    option(group, "--session ID", "continue this session; the start of its id is enough")
    option(group, "--continue", "continue the latest session of this folder", dest="continues")
    option(group, "--mode MODE", "set the session's mode")
    option(group, "--model MODEL", "set the session's model; accord info lists the models")
    option(group, "--set KEY=VALUE...", "set a config option of the session; may be repeated", dest="settings")
    option(group, "--mcp FILE", "a JSON file with MCP servers for the session")
    login_argument(group)
    return group


def budget_arguments(group: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    """Add the limits of a turn, past which the agent is stopped."""
    option(
        group,
        "--max-cost COST",
        "stop the agent past this cost of a turn, in the currency that it reports",
        type=_positive,
    )
    option(group, "--max-turns N", "stop the agent when it begins to use tools after N rounds of them", type=_rounds)
    option(group, "--max-time S", "stop the agent this many seconds after a prompt", type=_positive)


def _positive(text: str) -> float:
    with suppress(ValueError):
        if 0 < (number := float(text)) < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")


def _rounds(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, got {text!r}")


def budget_of(options: argparse.Namespace) -> Budget | None:
    """Return the budget of each turn; None if no limit is set."""
    limits = {name: getattr(options, name) for name in ("max_cost", "max_turns", "max_time")}
    if all(most is None for most in limits.values()):
        return None
    from accord import Budget

    return Budget(**limits)


def stopped_by(outcome: Outcome, budget: Budget | None) -> str | None:
    """Return the option that stopped the turn, with its value; None if none did."""
    if outcome.exceeded is None or budget is None:
        return None
    return f"--{outcome.exceeded.replace('_', '-')} {budget.limits[outcome.exceeded]:g}"


def login_argument(group: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    option(group, "--login METHOD", "log in by this method first; `accord login --list` has them")


def check_folder(options: argparse.Namespace) -> None:
    """Raise WrongUsage unless `--cwd` is a folder."""
    with suppress(OSError):
        if Path(options.cwd).absolute().is_dir():  # absolute, because a deleted current folder still is one as "."
            return
    raise WrongUsage(f"--cwd {options.cwd}: no such folder")


def prepare_session(options: argparse.Namespace) -> None:
    """Choose the agent. Its settings are the defaults of the options that the user did not give."""
    if options.continues and options.session is not None:
        raise WrongUsage("--continue and --session ID exclude each other: --continue chooses the latest session")
    check_folder(options)
    for setting in options.settings:
        if "=" not in setting:
            raise WrongUsage(f"--set must be KEY=VALUE, got {setting!r}")
    from accord_tools.configuration.permission_rules import default_level

    settings = chosen_agent(options).settings
    options.mode = settings.mode if options.mode is None else options.mode
    options.default_level = default_level(options.cwd, settings)
    given = {setting.partition("=")[0] for setting in options.settings}
    ours = {key: str(value).lower() if isinstance(value, bool) else value for key, value in settings.config.items()}
    options.settings = [f"{key}={value}" for key, value in ours.items() if key not in given] + options.settings


async def open_session(
    options: argparse.Namespace, remote: RemoteAgent, servers: Sequence[v1.McpServer], *, replay: bool = False
) -> RemoteSession:
    """Open the session that the options mean, with its past if `replay`, remember it, and apply their settings."""
    from accord_tools.configuration import last_sessions

    session_id = await _chosen_session(options, remote)
    if session_id is None:
        session = await remote.new_session(options.cwd, mcp_servers=servers)
    else:
        reopen = remote.resume if remote.capabilities.sessions.resume and not replay else remote.load
        session = await reopen(session_id, options.cwd, mcp_servers=servers)
    last_sessions.remember(_program(options), session.cwd, session.id)
    if (mode := options.mode) is not None:
        with _names_option(f"--mode {mode}"):
            await session.set_mode(mode)
    if (model := options.model) is not None:
        with _names_option(f"--model {model}"):
            await session.set_model(model)
    for setting in options.settings:
        key, _, value = setting.partition("=")
        with _names_option(f"--set {setting}"):
            await session.set_config(key, _value(session, key, value))
    return session


@contextmanager
def _names_option(option: str) -> Generator[None]:
    """Report a value that the agent does not offer as wrong usage of this option."""
    try:
        yield
    except ValueError as error:
        raise WrongUsage(f"{option}: {error}") from None


def _value(session: RemoteSession, key: str, text: str) -> str | bool:
    """A text of the command line as a value of this option."""
    from accord import updates

    is_boolean = isinstance(session.state.option(key), updates.SessionConfigBoolean)
    return {"true": True, "false": False}.get(text, text) if is_boolean else text


async def _chosen_session(options: argparse.Namespace, remote: RemoteAgent) -> str | None:
    """Return the session that `--session` or `--continue` means; None for a new one."""
    if options.continues:
        return await latest_session(remote, _program(options), absolute(options.cwd))
    if options.session is not None:
        found = await find_session(remote, _program(options), options.session)
        given: str = options.session  # the agent may know a session that it does not list
        return given if found is None else found.id
    return None


def _program(options: argparse.Namespace) -> str:
    return chosen_agent(options).target().program


def absolute(folder: str) -> str:
    return str(Path(folder).absolute())
