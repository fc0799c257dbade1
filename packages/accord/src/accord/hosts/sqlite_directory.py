"""The directory in a SQLite file, for several processes of one machine. No server is needed.

Times are those of the machine's monotonic clock, which all of its processes share and which is never set. It starts
again when the machine does, so each row says in which run of the machine it was written; rows of an earlier run are
deleted. The file also keeps the key with which the processes sign, so only its owner may read it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from accord.errors import StoreError
from accord.hosts.boots import boot_id
from accord.hosts.directory import REMEMBERED, Beat, Directory
from accord.hosts.signed_forward import LEAST_KEY
from accord.hosts.sqlite_quotas import TABLES, SqliteQuotas
from accord.hosts.view import HostRow
from accord.store.write_ahead import use_write_ahead_log

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds to wait for another process that holds the file's lock."""

_TABLES = """
CREATE TABLE IF NOT EXISTS hosts (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    speaks INTEGER NOT NULL,
    state TEXT NOT NULL,
    load REAL NOT NULL,
    connections INTEGER NOT NULL,
    boot TEXT NOT NULL,
    started REAL NOT NULL,
    expires REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS hosts_key (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL);
"""

_RENEW = """
INSERT INTO hosts (id, name, address, speaks, state, load, connections, boot, started, expires)
VALUES (:id, :name, :address, :speaks, :state, :load, :connections, :boot, :now, :now + :lease)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, load = excluded.load, connections = excluded.connections,
    expires = excluded.expires
WHERE hosts.state <> 'dead'
"""

_JUDGE = """
UPDATE hosts SET state = 'dead'
WHERE state NOT IN ('dead', 'gone') AND expires < :now AND id IN (SELECT value FROM json_each(:suspects)) AND EXISTS (
    SELECT 1 FROM hosts AS me WHERE me.id = :id AND me.state <> 'dead' AND me.expires > :now + :fresh)
"""

_SWEEP = "DELETE FROM hosts WHERE boot <> :boot OR (state IN ('dead', 'gone') AND expires < :now - :remembered)"

_READ = """
SELECT id, address, name, state, load, connections, expires - :now AS expires_in, speaks
FROM hosts WHERE boot = :boot ORDER BY started, id
"""


class SqliteDirectory(Directory):
    """The table `hosts` in a SQLite file, used in a thread of its own."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self._path = path
        self._is_read_only = is_read_only
        self._boot = boot_id()
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(1, "accord hosts")

    async def open(self) -> None:
        await self.transact(lambda _: None)

    async def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await asyncio.get_running_loop().run_in_executor(self._thread, connection.close)
        self._thread.shutdown(wait=False)

    def quotas(self) -> SqliteQuotas:
        return SqliteQuotas(self.transact)

    async def beat(self, beat: Beat) -> list[HostRow] | None:
        host = beat.host
        values = {**host._asdict(), "boot": self._boot, "lease": beat.lease}
        del values["expires_in"], values["beats"]  # the clock of a machine's processes cannot be set

        def work(connection: sqlite3.Connection) -> list[HostRow] | None:
            now = time.monotonic()
            if connection.execute(_RENEW, {**values, "now": now}).rowcount == 0:
                return None
            if beat.suspects:
                suspects = json.dumps(list(beat.suspects))
                connection.execute(_JUDGE, {"now": now, "id": host.id, "fresh": beat.fresh, "suspects": suspects})
                connection.execute(_SWEEP, {"now": now, "boot": self._boot, "remembered": REMEMBERED})
            return self._read(connection, now)

        return await self.transact(work)

    async def hosts(self) -> list[HostRow]:
        return await self.transact(lambda connection: self._read(connection, time.monotonic()))

    async def key(self) -> bytes:
        def work(connection: sqlite3.Connection) -> bytes:
            connection.execute("INSERT OR IGNORE INTO hosts_key VALUES (1, ?)", (secrets.token_bytes(LEAST_KEY),))
            key: bytes = connection.execute("SELECT key FROM hosts_key").fetchone()[0]
            return key

        return await self.transact(work)

    def _read(self, connection: sqlite3.Connection, now: float) -> list[HostRow]:
        rows = connection.execute(_READ, {"now": now, "boot": self._boot}).fetchall()
        return [HostRow(**dict(row)) for row in rows]

    async def transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of this work, in one transaction in the directory's thread; raises StoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._in_one_transaction, work)

    def _in_one_transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = self._open()
            with self._connection:
                self._connection.execute("BEGIN" if self._is_read_only else "BEGIN IMMEDIATE")
                return work(self._connection)
        except (sqlite3.Error, OSError) as error:
            raise StoreError("failed", f"cannot use the directory of hosts {self._path}: {error}") from error

    def _open(self) -> sqlite3.Connection:
        if self._is_read_only:
            return self._open_to_read()
        self._path.touch(mode=0o600)
        connection = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            connection.row_factory = sqlite3.Row
            use_write_ahead_log(connection, PATIENCE)
            # A beat that a loss of power forgets does not matter: its process has ended as well.
            connection.executescript(f"PRAGMA synchronous = OFF; BEGIN IMMEDIATE;{_TABLES}{TABLES}COMMIT;")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        where = f"{self._path.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(where, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
        connection.row_factory = sqlite3.Row
        return connection
