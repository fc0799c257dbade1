"""The tables of quotas in PostgreSQL, beside the directory.

A statement that takes a lock and counts would count what was there before it had the lock: its snapshot is older. So
the lock is a statement of its own, and the next one counts. A host that freezes between the two would keep the others
waiting; the database ends such a transaction after `IDLE` seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.hosts.quota_table import QuotaTable
from accord.http.server.owner_counts import Use
from accord.http.server.quotas import Bucket, Withdrawal
from accord.store.postgres.connection import Connection
from accord.store.postgres.line import Line

PATIENCE = 5.0
"""Seconds for one admission."""

IDLE = 2.0
"""Seconds that a transaction may wait for its host."""

TABLES = """
CREATE TABLE IF NOT EXISTS {schema}.quota_uses (
    id text PRIMARY KEY,
    kind text NOT NULL,
    owner text NOT NULL,
    host text NOT NULL
);
CREATE INDEX IF NOT EXISTS quota_uses_by_owner ON {schema}.quota_uses (owner, kind);
CREATE TABLE IF NOT EXISTS {schema}.quota_buckets (owner text PRIMARY KEY, full_at timestamptz NOT NULL)
WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS {schema}.owner_hosts (owner text PRIMARY KEY, host text NOT NULL);
"""

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 7))"

_ADMIT = """
INSERT INTO {schema}.quota_uses (id, kind, owner, host) SELECT $1, $2, $3, $4
WHERE (
    SELECT count(*) FROM {schema}.quota_uses u JOIN {schema}.hosts h ON h.id = u.host
    WHERE u.owner = $3 AND u.kind = $2 AND h.state NOT IN ('dead', 'gone')
) < $5
RETURNING id
"""

_FULL_IN = """
SELECT extract(epoch FROM full_at - clock_timestamp())::float8 FROM {schema}.quota_buckets WHERE owner = $1
"""

_FILL = """
INSERT INTO {schema}.quota_buckets (owner, full_at) VALUES ($1, clock_timestamp() + $2 * interval '1 second')
ON CONFLICT (owner) DO UPDATE SET full_at = excluded.full_at
"""

_CLAIM = """
INSERT INTO {schema}.owner_hosts AS o (owner, host) VALUES ($1, $2)
ON CONFLICT (owner) DO UPDATE SET host = CASE
    WHEN EXISTS (SELECT FROM {schema}.hosts h WHERE h.id = o.host AND h.state = 'live') THEN o.host
    ELSE excluded.host END
RETURNING host
"""

_SWEEP = """
DELETE FROM {schema}.quota_uses u
WHERE NOT EXISTS (SELECT FROM {schema}.hosts h WHERE h.id = u.host AND h.state NOT IN ('dead', 'gone'))
"""


class PostgresQuotas(QuotaTable):
    """The tables `quota_uses` and `quota_buckets` in a schema, whose name is quoted."""

    def __init__(self, url: str, schema: str) -> None:
        settings = {
            "synchronous_commit": "off",
            "application_name": "accord quotas",
            "default_transaction_isolation": "read committed",
            "idle_in_transaction_session_timeout": f"{IDLE * 1000:.0f}",
        }
        self._line = Line(url, settings)
        self._admit = _ADMIT.format(schema=schema)
        self._full_in = _FULL_IN.format(schema=schema)
        self._fill = _FILL.format(schema=schema)
        self._claim = _CLAIM.format(schema=schema)
        self._sweep = _SWEEP.format(schema=schema)
        self._release = f"DELETE FROM {schema}.quota_uses WHERE id = ANY($1::text[])"
        self._forget = f"DELETE FROM {schema}.quota_buckets WHERE full_at < clock_timestamp()"

    async def admit(self, use: Use, most: int, host: str) -> bool:
        async def work(connection: Connection) -> bool:
            async with connection.transaction():
                await connection.execute(_LOCK, use.kind + use.owner)
                values = (use.id, use.kind, use.owner, host, most)
                return await connection.fetchval(self._admit, *values) is not None

        return await self._line.run(work, PATIENCE)

    async def release(self, uses: Sequence[str]) -> None:
        await self._line.run(lambda connection: connection.execute(self._release, list(uses)), PATIENCE)

    async def withdraw(self, owner: str, bucket: Bucket, most: int) -> Withdrawal:
        async def work(connection: Connection) -> Withdrawal:
            async with connection.transaction():
                await connection.execute(_LOCK, owner)
                full_in = await connection.fetchval(self._full_in, owner)
                withdrawal = bucket.take(full_in or 0.0, most)
                await connection.execute(self._fill, owner, withdrawal.full_in)
                return withdrawal

        return await self._line.run(work, PATIENCE)

    async def claim(self, owner: str, host: str) -> str:
        holder: str = await self._line.run(lambda line: line.fetchval(self._claim, owner, host), PATIENCE)
        return holder

    async def sweep(self) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(self._sweep)
            await connection.execute(self._forget)

        await self._line.run(work, PATIENCE)

    def close(self) -> None:
        self._line.drop()
