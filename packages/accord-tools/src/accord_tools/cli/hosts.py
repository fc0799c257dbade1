"""`accord hosts`: lists the hosts of a service: which are alive, which drain, and what each has to do."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord_tools.cli.console import print_line, print_table
from accord_tools.cli.exit_codes import ENDED_WELL, WrongUsage

if TYPE_CHECKING:
    from accord.hosts import HostRow

EPILOG = """\
examples:
  accord hosts postgresql://accord@db/accord     the hosts of `accord serve --hosts` with this database
  accord hosts hosts.sqlite3                     those with this file
  accord hosts hosts.sqlite3 --json

states:
  live      opens connections
  draining  ends, and opens no more connections
  silent    has missed its time to report, and will be declared dead
  dead      was declared dead by another host
  gone      has ended in order

Dead and gone hosts are listed for a day. A load of 1 is all that a host can do."""

HEADING = ("NAME", "ID", "ADDRESS", "STATE", "CONNECTIONS", "LOAD")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "directory", metavar="URL|FILE", help="the PostgreSQL database or the SQLite file that --hosts names"
    )
    parser.add_argument("--schema", default="accord", help="the schema in PostgreSQL (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print the hosts, the oldest first."""
    from accord.hosts import is_postgres, listed_hosts

    where: str = options.directory
    if not is_postgres(where) and not Path(where).is_file():
        raise WrongUsage(f"{where} is neither the URL of a PostgreSQL database nor a file; accord hosts --help")
    hosts = asyncio.run(listed_hosts(where, options.schema))
    if options.json:
        import json

        print_line(json.dumps([_plain(host) for host in hosts], indent=2, ensure_ascii=False))
        return ENDED_WELL
    if not hosts:
        print_line("No hosts. Start one with: accord serve --hosts ...")
        return ENDED_WELL
    print_table(HEADING, [_row(host) for host in hosts])
    return ENDED_WELL


def _state(host: HostRow) -> str:
    return "silent" if not host.is_over and host.expires_in < 0 else host.state


def _row(host: HostRow) -> tuple[str, ...]:
    connections, load = ("", "") if host.is_over else (f"{host.connections:,}", _load(host))
    return host.name, host.id, host.address, _state(host), connections, load


def _load(host: HostRow) -> str:
    return "forwards only" if host.load == float("inf") else f"{host.load:.3f}"


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
