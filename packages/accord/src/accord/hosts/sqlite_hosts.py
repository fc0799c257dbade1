"""The table of hosts and the quotas of owners in a SQLite file, for several processes of one machine without a server.

Times are those of the machine's monotonic clock, which all of its processes share and which is never set. It restarts
with the machine, so each row has the `boot_id` of the run of the machine in which it was written, and rows of an
earlier run are deleted. The boot time would not do: it is computed from the wall clock, which can be set. So the id is
a counter or a random value of the platform that changes at each boot; it is empty if there is none.

The file also stores the key with which the processes sign, so only its owner may read it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from accord.errors import StoreError
from accord.hosts.host_table import REMEMBERED, Beat, Directory, HostRow
from accord.hosts.signed_forward import LEAST_KEY
from accord.http.server.owner_quotas import Use
from accord.http.server.server_limits import Bucket, Withdrawal
from accord.store.sqlite_database import use_write_ahead_log

if sys.platform == "win32":

    def boot_id() -> str:
        """Return the number of boots in the registry of Windows; empty if there is none."""
        import winreg

        folder = r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"
        with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, folder) as key:
            return f"windows-{winreg.QueryValueEx(key, 'BootId')[0]}"
        return ""

elif sys.platform == "darwin":

    def boot_id() -> str:
        """Return the UUID that the kernel of macOS chooses at boot; empty if there is none."""
        import ctypes

        room, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        with suppress(AttributeError):
            if not ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", room, ctypes.byref(size), None, 0):
                return room.value.decode("ascii", "replace")
        return ""

else:

    def boot_id() -> str:
        """Return the UUID that the kernel chooses at boot; empty if there is none."""
        with suppress(OSError):
            return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return ""


TABLES = """
CREATE TABLE IF NOT EXISTS quota_uses (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    host TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS quota_uses_by_owner ON quota_uses (owner, kind);
CREATE TABLE IF NOT EXISTS quota_buckets (owner TEXT PRIMARY KEY, full_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS owner_hosts (owner TEXT PRIMARY KEY, host TEXT NOT NULL);
"""

_LIVING = "SELECT id FROM hosts WHERE state NOT IN ('dead', 'gone')"

_ADMIT = f"""
INSERT INTO quota_uses (id, kind, owner, host) SELECT :id, :kind, :owner, :host
WHERE (SELECT count(*) FROM quota_uses WHERE owner = :owner AND kind = :kind AND host IN ({_LIVING})) < :most
"""

_LEAVE = "DELETE FROM owner_hosts WHERE owner = ? AND host NOT IN (SELECT id FROM hosts WHERE state = 'live')"

_FILL = """
INSERT INTO quota_buckets (owner, full_at) VALUES (?, ?) ON CONFLICT (owner) DO UPDATE SET full_at = excluded.full_at
"""


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
    """The tables in a SQLite file, used in a thread of their own."""

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

    async def admit(self, use: Use, most: int, host: str) -> bool:
        values = {**use._asdict(), "most": most, "host": host}
        return await self.transact(lambda connection: connection.execute(_ADMIT, values).rowcount) > 0

    async def release(self, uses: Sequence[str]) -> None:
        ids = [(use,) for use in uses]
        await self.transact(lambda connection: connection.executemany("DELETE FROM quota_uses WHERE id = ?", ids))

    async def withdraw(self, owner: str, bucket: Bucket, most: int) -> Withdrawal:
        def work(connection: sqlite3.Connection) -> Withdrawal:
            now = time.monotonic()
            row = connection.execute("SELECT full_at FROM quota_buckets WHERE owner = ?", (owner,)).fetchone()
            withdrawal = bucket.take(row[0] - now if row else 0.0, most)
            connection.execute(_FILL, (owner, now + withdrawal.full_in))
            return withdrawal

        return await self.transact(work)

    async def claim(self, owner: str, host: str) -> str:
        def work(connection: sqlite3.Connection) -> str:
            connection.execute(_LEAVE, (owner,))
            connection.execute("INSERT OR IGNORE INTO owner_hosts VALUES (?, ?)", (owner, host))
            holder: str = connection.execute("SELECT host FROM owner_hosts WHERE owner = ?", (owner,)).fetchone()[0]
            return holder

        return await self.transact(work)

    async def sweep(self) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(f"DELETE FROM quota_uses WHERE host NOT IN ({_LIVING})")
            connection.execute("DELETE FROM quota_buckets WHERE full_at < ?", (time.monotonic(),))

        await self.transact(work)

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
