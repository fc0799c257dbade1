"""The table of hosts and the quotas of owners in PostgreSQL, beside the sessions. All times are those of the database.

A statement that takes a lock and counts would count the rows from before it had the lock: its snapshot is older. So the
lock is a statement of its own, and the next one counts. A host that freezes between the two would keep the others
waiting; the database ends such a transaction after `IDLE` seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.hosts.host_table import REMEMBERED, Beat, Directory, HostRow
from accord.http.server.owner_quotas import Use
from accord.http.server.server_limits import Bucket, Withdrawal
from accord.store.postgres_connection import PostgresConnection, check_url
from accord.store.postgres_statements import MAKING, AsyncpgConnection, Row, quoted

ADMISSION_PATIENCE = 5.0
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

_RELEASE = "DELETE FROM {schema}.quota_uses WHERE id = ANY($1::text[])"
_FORGET = "DELETE FROM {schema}.quota_buckets WHERE full_at < clock_timestamp()"

_SWEEP_USES = """
DELETE FROM {schema}.quota_uses u
WHERE NOT EXISTS (SELECT FROM {schema}.hosts h WHERE h.id = u.host AND h.state NOT IN ('dead', 'gone'))
"""


PATIENCE = 10.0
"""Seconds to connect and make the table. Beats have deadlines of their own."""

_TABLE = """
CREATE TABLE IF NOT EXISTS {schema}.hosts (
    id text PRIMARY KEY,
    name text NOT NULL,
    address text NOT NULL,
    speaks int NOT NULL,
    state text NOT NULL,
    load double precision NOT NULL,
    connections int NOT NULL,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires timestamptz NOT NULL,
    beats bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50)
"""

_ADD_BEATS = "ALTER TABLE {schema}.hosts ADD COLUMN IF NOT EXISTS beats bigint NOT NULL DEFAULT 0"
"""For the table of an earlier release, whose hosts do not count beats: only the database's clock judges them."""

_RENEW = """
INSERT INTO {schema}.hosts (id, name, address, speaks, state, load, connections, expires)
VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8 * interval '1 second')
ON CONFLICT (id) DO UPDATE SET state = excluded.state, load = excluded.load, connections = excluded.connections,
    expires = excluded.expires, beats = hosts.beats + 1
WHERE hosts.state <> 'dead' RETURNING id
"""

_JUDGE = """
UPDATE {schema}.hosts SET state = 'dead'
WHERE state NOT IN ('dead', 'gone') AND expires < clock_timestamp() AND id = ANY($3::text[]) AND EXISTS (
    SELECT FROM {schema}.hosts AS me
    WHERE me.id = $1 AND me.state <> 'dead' AND me.expires > clock_timestamp() + $2 * interval '1 second')
"""

_SWEEP = """
DELETE FROM {schema}.hosts
WHERE state IN ('dead', 'gone') AND expires < clock_timestamp() - $1 * interval '1 second'
"""

_READ = """
SELECT id, address, name, state, load, connections, speaks, beats,
    extract(epoch FROM expires - clock_timestamp())::float8 AS expires_in
FROM {schema}.hosts ORDER BY started, id
"""


class PostgresDirectory(Directory):
    """The tables in a schema of a PostgreSQL database."""

    def __init__(self, url: str, schema: str) -> None:
        check_url(url)
        self._schema = quoted(schema)
        # A beat that a dying database server forgets is made again within a second.
        self._line = PostgresConnection(url, {"synchronous_commit": "off", "application_name": "accord hosts"})
        self._quotas = PostgresConnection(
            url,
            {
                "synchronous_commit": "off",
                "application_name": "accord quotas",
                "default_transaction_isolation": "read committed",
                "idle_in_transaction_session_timeout": f"{IDLE * 1000:.0f}",
            },
        )
        """A separate connection, so that beats need not wait."""

    def _sql(self, statement: str) -> str:
        return statement.format(schema=self._schema)

    async def open(self) -> None:
        await self._line.run(self._prepare, PATIENCE)

    async def _prepare(self, connection: AsyncpgConnection) -> None:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", MAKING)
            if await connection.fetchval("SELECT to_regnamespace($1)", self._schema) is None:
                await connection.execute(f"CREATE SCHEMA {self._schema}")
            await connection.execute(self._sql(_TABLE))
            await connection.execute(self._sql(_ADD_BEATS))
            await connection.execute(self._sql(TABLES))

    async def close(self) -> None:
        self._line.drop()
        self._quotas.drop()

    async def beat(self, beat: Beat) -> list[HostRow] | None:
        async def work(connection: AsyncpgConnection) -> list[HostRow] | None:
            host = beat.host
            values = (host.id, host.name, host.address, host.speaks, host.state, host.load, host.connections)
            if await connection.fetchrow(self._sql(_RENEW), *values, beat.lease) is None:
                return None
            if beat.suspects:
                await connection.execute(self._sql(_JUDGE), host.id, beat.fresh, list(beat.suspects))
                await connection.execute(self._sql(_SWEEP), REMEMBERED)
            return _hosts(await connection.fetch(self._sql(_READ)))

        return await self._line.run(work, beat.lease / 2)

    async def hosts(self) -> list[HostRow]:
        async def work(connection: AsyncpgConnection) -> list[HostRow]:
            return _hosts(await connection.fetch(self._sql(_READ)))

        return await self._line.run(work, PATIENCE)

    # Owners' usage

    async def admit(self, use: Use, most: int, host: str) -> bool:
        async def work(connection: AsyncpgConnection) -> bool:
            async with connection.transaction():
                await connection.execute(_LOCK, use.kind + use.owner)
                values = (use.id, use.kind, use.owner, host, most)
                return await connection.fetchval(self._sql(_ADMIT), *values) is not None

        return await self._quotas.run(work, ADMISSION_PATIENCE)

    async def release(self, uses: Sequence[str]) -> None:
        await self._quotas.run(
            lambda connection: connection.execute(self._sql(_RELEASE), list(uses)), ADMISSION_PATIENCE
        )

    async def withdraw(self, owner: str, bucket: Bucket, most: int) -> Withdrawal:
        async def work(connection: AsyncpgConnection) -> Withdrawal:
            async with connection.transaction():
                await connection.execute(_LOCK, owner)
                full_in = await connection.fetchval(self._sql(_FULL_IN), owner)
                withdrawal = bucket.take(full_in or 0.0, most)
                await connection.execute(self._sql(_FILL), owner, withdrawal.full_in)
                return withdrawal

        return await self._quotas.run(work, ADMISSION_PATIENCE)

    async def claim(self, owner: str, host: str) -> str:
        holder: str = await self._quotas.run(
            lambda line: line.fetchval(self._sql(_CLAIM), owner, host), ADMISSION_PATIENCE
        )
        return holder

    async def sweep(self) -> None:
        async def work(connection: AsyncpgConnection) -> None:
            await connection.execute(self._sql(_SWEEP_USES))
            await connection.execute(self._sql(_FORGET))

        await self._quotas.run(work, ADMISSION_PATIENCE)


def _hosts(rows: Sequence[Row]) -> list[HostRow]:
    return [HostRow(**dict(row)) for row in rows]
