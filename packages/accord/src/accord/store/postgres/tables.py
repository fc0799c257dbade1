"""The tables of a store in PostgreSQL, and their format."""

from __future__ import annotations

from accord.errors import StoreError
from accord.store.postgres.connection import Connection
from accord.store.postgres.statements import quoted

FORMAT = 1
"""The version of the tables; it rises when older versions of Accord can no longer read them."""

MAKING = 4702398291837
"""The advisory lock under which tables are made, so that hosts that start at once make them once.
The hosts' directory makes its table under it as well."""

_TABLES = """
CREATE TABLE {schema}.format (format int NOT NULL);
INSERT INTO {schema}.format VALUES ({format});
CREATE TABLE {schema}.sessions (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id_key bytea NOT NULL UNIQUE,
    owner_key bytea NOT NULL,
    folder_key bytea NOT NULL,
    id text NOT NULL,
    owner text NOT NULL,
    cwd text NOT NULL,
    roots bytea NOT NULL,
    title text,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    settings bytea NOT NULL,
    state bytea NOT NULL,
    info bytea NOT NULL,
    archived boolean NOT NULL,
    format int NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX sessions_by_activity ON {schema}.sessions (owner_key, updated, number);
CREATE INDEX sessions_by_folder ON {schema}.sessions (folder_key, updated, number);
-- Each commit changes this row, so it is narrow and its page has room for the next version of it.
CREATE TABLE {schema}.holds (
    number bigint PRIMARY KEY,
    hold bigint NOT NULL,
    length bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE {schema}.updates (
    session bigint,
    position bigint,
    update_json bytea NOT NULL,
    PRIMARY KEY (session, position)
);
-- Never compressed: the size of an update is then known without reading it.
ALTER TABLE {schema}.updates ALTER COLUMN update_json SET STORAGE EXTERNAL;
"""


async def prepare(connection: Connection, schema: str) -> None:
    """Make the schema and its tables if they do not exist; raises StoreError `newer_format` if they are newer."""
    named = quoted(schema)
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", MAKING)
        if await connection.fetchval("SELECT to_regclass($1)", f"{named}.format") is None:
            if await connection.fetchval("SELECT to_regnamespace($1)", named) is None:
                await connection.execute(f"CREATE SCHEMA {named}")
            await connection.execute(_TABLES.format(schema=named, format=FORMAT))
        written = await connection.fetchval(f"SELECT format FROM {named}.format")
    if written is None or written > FORMAT:
        raise StoreError(
            "newer_format",
            f"the schema {schema!r} was written by a newer Accord (format {written}, this one reads {FORMAT}); "
            "update Accord, or name another schema",
        )
