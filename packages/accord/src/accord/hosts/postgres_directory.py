"""The directory in PostgreSQL, beside the sessions. All times are those of the database."""

from __future__ import annotations

from collections.abc import Sequence

from accord.hosts.directory import REMEMBERED, Beat, Directory
from accord.hosts.postgres_quotas import TABLES, PostgresQuotas
from accord.hosts.view import HostRow
from accord.store.postgres.connection import Connection, Row
from accord.store.postgres.line import Line
from accord.store.postgres.statements import quoted
from accord.store.postgres.tables import MAKING
from accord.store.postgres.url import check_url

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
"""For the table of an earlier release. Its hosts do not count: they are judged by the database's clock alone."""

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
    """The table `hosts` in a schema of a PostgreSQL database."""

    def __init__(self, url: str, schema: str) -> None:
        check_url(url)
        # A beat that a dying database server forgets is made again within a second.
        self._url = url
        self._line = Line(url, {"synchronous_commit": "off", "application_name": "accord hosts"})
        named = quoted(schema)
        self._schema = named
        self._table = _TABLE.format(schema=named)
        self._renew = _RENEW.format(schema=named)
        self._judge = _JUDGE.format(schema=named)
        self._sweep = _SWEEP.format(schema=named)
        self._read = _READ.format(schema=named)

    async def open(self) -> None:
        await self._line.run(self._prepare, PATIENCE)

    async def _prepare(self, connection: Connection) -> None:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", MAKING)
            if await connection.fetchval("SELECT to_regnamespace($1)", self._schema) is None:
                await connection.execute(f"CREATE SCHEMA {self._schema}")
            await connection.execute(self._table)
            await connection.execute(_ADD_BEATS.format(schema=self._schema))
            await connection.execute(TABLES.format(schema=self._schema))

    async def close(self) -> None:
        self._line.drop()

    def quotas(self) -> PostgresQuotas:
        return PostgresQuotas(self._url, self._schema)

    async def beat(self, beat: Beat) -> list[HostRow] | None:
        async def work(connection: Connection) -> list[HostRow] | None:
            host = beat.host
            values = (host.id, host.name, host.address, host.speaks, host.state, host.load, host.connections)
            if await connection.fetchrow(self._renew, *values, beat.lease) is None:
                return None
            if beat.suspects:
                await connection.execute(self._judge, host.id, beat.fresh, list(beat.suspects))
                await connection.execute(self._sweep, REMEMBERED)
            return _hosts(await connection.fetch(self._read))

        return await self._line.run(work, beat.lease / 2)

    async def hosts(self) -> list[HostRow]:
        async def work(connection: Connection) -> list[HostRow]:
            return _hosts(await connection.fetch(self._read))

        return await self._line.run(work, PATIENCE)


def _hosts(rows: Sequence[Row]) -> list[HostRow]:
    return [HostRow(**dict(row)) for row in rows]
