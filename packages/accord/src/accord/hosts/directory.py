"""The directory: the table in which each host of a service keeps a row, as an interface for its two databases.

A beat is one round: it renews the row of this host, declares hosts dead whose rows have expired if this host may, and
reads all rows. A host may, if it has itself beaten without a gap (`membership` knows), and if its own row is as fresh
as a beat makes it when the database looks: a database that was away for a while must not end hosts that could not beat.
The clock of a database server may be set forward, which ends all leases at once. So only suspects are declared dead:
hosts whose count of beats has not changed for half a lease, by the clock of this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from accord.hosts.quota_table import QuotaTable
from accord.hosts.view import HostRow
from accord.store.postgres.url import is_postgres

REMEMBERED = 24 * 3600.0
"""Seconds for which the row of a dead or gone host is kept, so that its clients can be told."""

BEATS = 5
"""How many beats a lease has."""


class Beat(NamedTuple):
    """What one round writes: the row of this host, and what it may do with others."""

    host: HostRow
    lease: float
    """Seconds until the row expires."""
    suspects: Sequence[str] = ()
    """The hosts that are declared dead if their rows have expired."""

    @property
    def fresh(self) -> float:
        """Seconds that the own row has left at least, if it was renewed within two beats."""
        return self.lease * (BEATS - 2) / BEATS


class Directory(ABC):
    """The table of the hosts of a service. Its errors are StoreError."""

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make the table if it does not exist."""

    @abstractmethod
    async def close(self) -> None:
        """Disconnect."""

    @abstractmethod
    async def beat(self, beat: Beat) -> list[HostRow] | None:
        """Renew the row of this host and read all rows; None if this host was declared dead."""

    @abstractmethod
    async def hosts(self) -> list[HostRow]:
        """All rows, the oldest host first."""

    async def key(self) -> bytes | None:
        """The key with which the hosts of this directory sign, if the directory keeps one."""
        return None

    @abstractmethod
    def quotas(self) -> QuotaTable:
        """The tables in which the hosts of this directory count what owners use."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def directory_of(where: str | Path, schema: str) -> Directory:
    """The directory in a PostgreSQL database, by its URL, or in a SQLite file, by its path."""
    if is_postgres(where):
        from accord.hosts.postgres_directory import PostgresDirectory

        return PostgresDirectory(str(where), schema)
    from accord.hosts.sqlite_directory import SqliteDirectory

    return SqliteDirectory(Path(where))


async def listed_hosts(where: str | Path, schema: str) -> list[HostRow]:
    """The hosts in a directory that is only read, the oldest first; raises StoreError."""
    if is_postgres(where):
        directory = directory_of(where, schema)
    else:
        from accord.hosts.sqlite_directory import SqliteDirectory

        directory = SqliteDirectory(Path(where), is_read_only=True)
    try:
        return await directory.hosts()
    finally:
        await directory.close()
