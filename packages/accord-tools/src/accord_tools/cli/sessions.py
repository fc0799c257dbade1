"""`accord sessions`: lists, shows, exports, forks and deletes an agent's sessions."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

from accord import AccordError, RemoteAgent, RemoteSession, connect, run as run_loop
from accord.printable import label
from accord_tools.cli.agent_options import agent_arguments, chosen_agent, protocol_versions
from accord_tools.cli.command_table import Command, add_commands, option
from accord_tools.cli.console import print_error, print_json, print_line, print_table, user_agrees
from accord_tools.cli.events import WireUpdates
from accord_tools.cli.exit_codes import WrongUsage
from accord_tools.cli.login import log_in
from accord_tools.cli.session_options import absolute, find_session, login_argument
from accord_tools.configuration import last_sessions
from accord_tools.configuration.last_sessions import KnownSession, known_sessions
from accord_tools.presentation.quantities import minute_of

EPILOG = """\
examples:
  accord sessions list -a gemini               the sessions of this folder
  accord sessions list --all --json -- my-agent
  accord sessions show 3f2a -a gemini          a conversation as Markdown; the start of an id is enough
  accord sessions export 3f2a -o talk.jsonl    each update as the agent sends it, one JSON object on a line
  accord sessions fork 3f2a -a gemini          a copy, whose id is printed
  accord sessions fork 3f2a --at               the places at which it can be rewound, for --at PLACE
  accord sessions delete 3f2a 77b1 -a gemini

An agent must support what a command needs: listing, loading, forking or deleting sessions; `accord info` shows what
it offers. For an agent that cannot list its sessions, the list has those that accord run has opened here."""

LISTED = 200
"""Rows that a terminal shows."""
COLUMNS = 160


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.set_defaults(takes_agent=True)
    add_commands(parser, COMMANDS, "sessions_command")


def run(options: argparse.Namespace) -> None:
    """List the sessions of this folder with the default agent, or the agent after `--`."""
    parser: argparse.ArgumentParser = options.parser
    as_list = parser.parse_args(["sessions", "list"])
    as_list.agent = options.agent
    as_list.run_command(as_list)


def _with_agent(
    command: Callable[[argparse.Namespace, RemoteAgent, str], Coroutine[Any, Any, None]],
    *,
    unstable: bool = False,
) -> Callable[[argparse.Namespace], None]:
    """Run this command with a connection to the agent that the options choose, and the agent's program."""

    def run_it(options: argparse.Namespace) -> None:
        chosen = chosen_agent(options)

        async def connected() -> None:
            where = chosen.target()
            async with connect(where, versions=protocol_versions(options), unstable=unstable) as remote:
                await log_in(options, remote)
                await command(options, remote, where.program)

        run_loop(connected())

    return run_it


def _agent_arguments(parser: argparse.ArgumentParser) -> None:
    login_argument(parser)
    agent_arguments(parser)


# Listing


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    option(parser, "--cwd DIR", "the folder (default: the current one)", default=".")
    option(parser, "--all", "the sessions of all folders")
    option(parser, "--json", "print JSON")
    _agent_arguments(parser)


async def _list(options: argparse.Namespace, remote: RemoteAgent, program: str) -> None:
    folder = None if options.all else absolute(options.cwd)
    if not remote.capabilities.sessions.list:
        print_error("accord sessions: the agent cannot list sessions; these are those that accord run has opened")
    known = await known_sessions(remote, program, folder)
    if options.json:
        rows = [{"sessionId": it.id, "updatedAt": it.updated, "title": it.title, "cwd": it.folder} for it in known]
        print_json(rows)
    elif not known:
        where = "" if folder is None else f" of {folder}; --all lists those of all folders"
        print_line(f"{label(remote.name, COLUMNS)} has no session{where}")
    else:
        size = 4 if options.all else 3
        cells = [(it.id, minute_of(it.updated), it.title or "", it.folder)[:size] for it in known]
        print_table(("SESSION", "UPDATED", "TITLE", "FOLDER")[:size], cells, limit=LISTED)


# One session


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="ID", help="the session's id, or the start of it")
    _agent_arguments(parser)


async def _show(options: argparse.Namespace, remote: RemoteAgent, program: str) -> None:
    session = await _loaded(remote, program, options.session)
    print_line(session.markdown().rstrip("\n"))


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="ID", help="the session's id, or the start of it")
    option(parser, "--format", "the form (default: %(default)s)", choices=["jsonl", "markdown"], default="jsonl")
    option(parser, "-o --output FILE", "write to this new file instead of standard output")
    _agent_arguments(parser)


async def _export(options: argparse.Namespace, remote: RemoteAgent, program: str) -> None:
    past = WireUpdates(sys.maxsize)
    remote.peer.connection.observe(past)
    session = await _loaded(remote, program, options.session)
    is_markdown = options.format == "markdown"
    text = session.markdown().rstrip("\n") if is_markdown else "\n".join(_lines(session, past.take(session.id)))
    if options.output is None:
        print_line(text)
        return
    _write_new(options.output, text)


def _write_new(path: str, text: str) -> None:
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        raise WrongUsage(f"--output {path}: {error.strerror}") from error


def _lines(session: RemoteSession, updates: Iterable[bytes]) -> Iterator[str]:
    """The session as JSON lines, in the form of `accord run --json`."""
    about = {"type": "session", "sessionId": session.id, "cwd": str(session.cwd)}
    yield json.dumps(about, ensure_ascii=False, separators=(",", ":"))
    for update in updates:
        yield f'{{"type":"update","update":{update.decode("utf-8", "replace").strip()}}}'


async def _loaded(remote: RemoteAgent, program: str, given: str) -> RemoteSession:
    """Return the session with its past; raises AccordError if the agent cannot do that."""
    if not remote.capabilities.sessions.load:
        raise AccordError("the agent cannot load sessions, so their past is not known here (loadSession)")
    found = await _found(remote, program, given)
    return await remote.load(found.id, found.folder)


async def _found(remote: RemoteAgent, program: str, given: str) -> KnownSession:
    """The session that is meant. One that is not known is refused only if the agent lists its sessions."""
    found = await find_session(remote, program, given)
    if found is None and remote.capabilities.sessions.list:
        raise WrongUsage(f"no session has an id that starts with {given!r}; accord sessions list --all shows them")
    return found or KnownSession(given, absolute("."))


# Forking


def _fork_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="ID", help="the session's id, or the start of it")
    parser.add_argument(
        "--at",
        metavar="PLACE",
        nargs="?",
        const="",
        help="copy only the conversation up to this place; without PLACE, show the places that the agent offers",
    )
    _agent_arguments(parser)


async def _fork(options: argparse.Namespace, remote: RemoteAgent, program: str) -> None:
    session = await _loaded(remote, program, options.session)
    if options.at == "":
        _show_places(session)
        return
    try:
        fork = await session.fork(at=options.at)
    except ValueError as error:
        raise WrongUsage(f"--at: {error}") from error
    print_line(label(fork.id, COLUMNS))


def _show_places(session: RemoteSession) -> None:
    texts = {it.id: it.text for it in session.state.messages}
    places = [it for it in session.state.cursors.values() if it.can_fork]
    if not places:
        raise AccordError("the agent offers no places to rewind to; leave --at out to copy the whole session")
    rows = [
        (it.anchor_id or it.id, f"{getattr(it.anchor, 'position', 'at')} {_first_line(texts, it.anchor_id)}")
        for it in places
    ]
    print_table(("PLACE", "WHERE"), rows, limit=LISTED)


def _first_line(texts: dict[Any, str], anchor: str | None) -> str:
    text = texts.get(anchor)
    return repr(text.strip().partition("\n")[0][:60]) if text else str(anchor)


# Deleting


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sessions", metavar="ID", nargs="+", help="the ids of sessions, or the starts of them")
    option(parser, "--yes", "do not ask")
    _agent_arguments(parser)


async def _delete(options: argparse.Namespace, remote: RemoteAgent, program: str) -> None:
    if not remote.capabilities.sessions.delete:
        raise AccordError("the agent cannot delete sessions")
    found = [(await _found(remote, program, given)).id for given in options.sessions]
    if not options.yes and not _may_delete(found):
        return
    for session_id in dict.fromkeys(found):
        await remote.delete(session_id)
        last_sessions.forget(program, session_id)
        print_line(f"Deleted {label(session_id, COLUMNS)}.")


def _may_delete(found: list[str]) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise WrongUsage("deleting cannot be undone: confirm with --yes where no terminal can ask")
    return user_agrees(f"Delete for good: {', '.join(label(it, COLUMNS) for it in found)}?")


COMMANDS = {
    "list": Command("List the sessions of a folder.", _list_arguments, _with_agent(_list)),
    "show": Command("Print a session as Markdown.", _show_arguments, _with_agent(_show)),
    "export": Command("Write a session as JSON lines or Markdown.", _export_arguments, _with_agent(_export)),
    "fork": Command("Copy a session, or a part of it.", _fork_arguments, _with_agent(_fork, unstable=True)),
    "delete": Command("Delete sessions for good.", _delete_arguments, _with_agent(_delete)),
}
