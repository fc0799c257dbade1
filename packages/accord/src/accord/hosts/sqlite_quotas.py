"""The tables of quotas in the SQLite file of a directory. Times are those of the machine's monotonic clock."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from accord.hosts.quota_table import QuotaTable
from accord.http.server.owner_counts import Use
from accord.http.server.quotas import Bucket, Withdrawal

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


class SqliteQuotas(QuotaTable):
    """The tables `quota_uses` and `quota_buckets`. `transact` runs work in one transaction of the directory."""

    def __init__(self, transact: Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]) -> None:
        self._transact = transact

    async def admit(self, use: Use, most: int, host: str) -> bool:
        values = {**use._asdict(), "most": most, "host": host}
        changed: int = await self._transact(lambda connection: connection.execute(_ADMIT, values).rowcount)
        return changed > 0

    async def release(self, uses: Sequence[str]) -> None:
        ids = [(use,) for use in uses]
        await self._transact(lambda connection: connection.executemany("DELETE FROM quota_uses WHERE id = ?", ids))

    async def withdraw(self, owner: str, bucket: Bucket, most: int) -> Withdrawal:
        def work(connection: sqlite3.Connection) -> Withdrawal:
            now = time.monotonic()
            row = connection.execute("SELECT full_at FROM quota_buckets WHERE owner = ?", (owner,)).fetchone()
            withdrawal = bucket.take(row[0] - now if row else 0.0, most)
            connection.execute(_FILL, (owner, now + withdrawal.full_in))
            return withdrawal

        taken: Withdrawal = await self._transact(work)
        return taken

    async def claim(self, owner: str, host: str) -> str:
        def work(connection: sqlite3.Connection) -> str:
            connection.execute(_LEAVE, (owner,))
            connection.execute("INSERT OR IGNORE INTO owner_hosts VALUES (?, ?)", (owner, host))
            holder: str = connection.execute("SELECT host FROM owner_hosts WHERE owner = ?", (owner,)).fetchone()[0]
            return holder

        claimed: str = await self._transact(work)
        return claimed

    async def sweep(self) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(f"DELETE FROM quota_uses WHERE host NOT IN ({_LIVING})")
            connection.execute("DELETE FROM quota_buckets WHERE full_at < ?", (time.monotonic(),))

        await self._transact(work)

    def close(self) -> None:
        """The connection is the directory's."""
