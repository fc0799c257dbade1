"""`accord hosts`: lists the hosts of a service and their sessions, drains hosts, and ends connections."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.mistakes import meant, nearest
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_error, print_json, print_line, print_table
from accord_tools.cli.exit_codes import WrongUsage
from accord_tools.cli.serve_options import operator_arguments, operator_settings

if TYPE_CHECKING:
    from accord.hosts import HostRow, OpenSession, Operator

EPILOG = """\
examples:
  accord hosts postgresql://accord@db/accord     the hosts of `accord serve --hosts` with this database
  accord hosts hosts.sqlite3                     those with this file
  accord hosts hosts.sqlite3 --json
  accord hosts hosts.sqlite3 drain web-1         stop a host from opening connections; --undo reverses it
  accord hosts hosts.sqlite3 sessions            the open sessions of all hosts; or of one: sessions web-1
  accord hosts hosts.sqlite3 end SESSION         end the connections that have this session
  accord hosts hosts.sqlite3 revoke ada          end all connections of an owner

states:
  live      opens connections
  draining  opens no more connections
  silent    is late with its report, and will be declared dead
  dead      was declared dead by another host
  gone      has ended in order

Dead and gone hosts are listed for a day. A load of 1 is a host's full capacity.

A draining host keeps its connections: end it with SIGTERM. The commands need the key of the hosts, which a file of
hosts keeps, and reach the peer port of each host. With --shared, the agent of an ended connection continues."""

ACTIONS = ("drain", "sessions", "end", "revoke")

SUBJECTS = {"drain": "the name or the id of a host", "end": "the id of a session", "revoke": "the name of an owner"}

HEADING = ("NAME", "ID", "ADDRESS", "STATE", "CONNECTIONS", "LOAD")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "directory", metavar="URL|FILE", help="the PostgreSQL database or the SQLite file that --hosts names"
    )
    parser.add_argument(
        "action", nargs="?", metavar="ACTION", help="drain, sessions, end or revoke; without it, list the hosts"
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a host, by name or id; a session; or an owner")
    option(parser, "--undo", "with drain: let the host open connections again")
    operator_arguments(parser)
    option(parser, "--schema SCHEMA", "the schema in PostgreSQL (default: %(default)s)", default="accord")
    option(parser, "--json", "print JSON")


def run(options: argparse.Namespace) -> None:
    """Print the hosts, the oldest first."""
    from accord.hosts import is_postgres, listed_hosts

    where: str = options.directory
    if where in ACTIONS:
        raise WrongUsage(f"name the hosts first: accord hosts URL|FILE {where}")
    if not is_postgres(where) and not Path(where).is_file():
        raise WrongUsage(f"{where} is neither the URL of a PostgreSQL database nor a file; accord hosts --help")
    if options.undo and options.action != "drain":
        raise WrongUsage("--undo goes with drain: accord hosts URL|FILE drain HOST --undo")
    if options.action is not None:
        if options.action not in ACTIONS:
            raise WrongUsage(f"unknown action {options.action!r}{nearest(options.action, ACTIONS)}")
        if options.name is None and options.action != "sessions":
            raise WrongUsage(
                f"{options.action} takes {SUBJECTS[options.action]}; see them with: accord hosts {where} sessions"
            )
        asyncio.run(_operate(options))
        return
    hosts = asyncio.run(listed_hosts(where, options.schema))
    if options.json:
        print_json([_plain(host) for host in hosts])
        return
    if not hosts:
        print_line("No hosts. Start one with: accord serve --hosts ...")
        return
    print_table(HEADING, [_row(host) for host in hosts])


async def _operate(options: argparse.Namespace) -> None:
    from accord.hosts import is_postgres, operator

    given = operator_settings(options)
    if is_postgres(options.directory) and given["key"] is None:
        raise WrongUsage("--hosts-key-file is required with PostgreSQL: the file that the hosts have")
    async with operator(options.directory, options.schema, **given) as service:
        match options.action:
            case "drain":
                host = _named(options.name, service.hosts)
                count = await service.drain(host, undo=options.undo)
                state = "live" if options.undo else "draining"
                does = "opens connections again" if options.undo else "opens no more connections"
                _print(
                    {"host": host.id, "state": state, "connections": count},
                    options,
                    f"{host.name} ({host.id}) {does}; open: {count:,}",
                )
            case "sessions":
                hosts = service.hosts if options.name is None else [_named(options.name, service.hosts)]
                _print_sessions(await _sessions(service, hosts), options)
            case "end":
                await _end(service, options)
            case _:
                await _revoke(service, options)


async def _sessions(service: Operator, hosts: Sequence[HostRow]) -> list[tuple[HostRow, OpenSession]]:
    found = await asyncio.gather(*(service.sessions(host) for host in hosts))
    return [(host, session) for host, sessions in zip(hosts, found, strict=True) for session in sessions]


async def _end(service: Operator, options: argparse.Namespace) -> None:
    found = await _sessions(service, service.hosts)
    holders = {host.id: host for host, session in found if session.id == options.name}
    if not holders:
        raise WrongUsage(
            f"no open session has the id {options.name!r}{meant(options.name, {session.id for _, session in found})}"
        )
    count = sum(await asyncio.gather(*(service.end(host, options.name) for host in holders.values())))
    _print({"session": options.name, "ended": count}, options, f"connections ended: {count:,}")


async def _revoke(service: Operator, options: argparse.Namespace) -> None:
    known = {session.owner for _, session in await _sessions(service, service.hosts)}
    count = sum(await asyncio.gather(*(service.revoke(host, options.name) for host in service.hosts)))
    hint = "" if count else meant(options.name, known)
    _print({"owner": options.name, "ended": count}, options, f"connections ended: {count:,}{hint}")
    print_error(
        f"The tokens of {options.name} still work: remove them from the file of --token-file, and restart the hosts."
    )


def _named(name: str, hosts: Sequence[HostRow]) -> HostRow:
    found = [host for host in hosts if name in (host.id, host.name)]
    if not found:
        raise WrongUsage(
            f"no live host has the name or id {name!r}{nearest(name, dict.fromkeys(h.name for h in hosts))}"
        )
    if len(found) > 1:
        raise WrongUsage(f"{len(found)} hosts have the name {name!r}: give an id of {', '.join(h.id for h in found)}")
    return found[0]


def _print(report: dict[str, Any], options: argparse.Namespace, text: str) -> None:
    if options.json:
        import json

        text = json.dumps(report, ensure_ascii=False)
    print_line(text)


def _print_sessions(found: list[tuple[HostRow, OpenSession]], options: argparse.Namespace) -> None:
    if options.json:
        objects = [{"host": host.id, **session._asdict()} for host, session in found]
        print_json(objects)
    elif not found:
        print_line("No open sessions.")
    else:
        rows = [
            (it.id, it.owner or "-", host.name, host.id, "running" if it.is_running else "idle") for host, it in found
        ]
        print_table(("SESSION", "OWNER", "HOST", "HOST ID", "STATE"), rows)


def _state(host: HostRow) -> str:
    return "silent" if not host.is_over and host.expires_in < 0 else host.state


def _row(host: HostRow) -> tuple[str, ...]:
    load = "forwards only" if host.load == float("inf") else f"{host.load:.3f}"
    connections, load = ("", "") if host.is_over else (f"{host.connections:,}", load)
    return host.name, host.id, host.address, _state(host), connections, load


def _plain(host: HostRow) -> dict[str, Any]:
    return {
        "id": host.id,
        "name": host.name,
        "address": host.address,
        "state": _state(host),
        "connections": host.connections,
        "load": None if host.load == float("inf") else round(host.load, 6),
        "expires_in": round(host.expires_in, 3),
    }
