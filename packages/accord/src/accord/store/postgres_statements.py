"""The SQL and the tables of a store in PostgreSQL, and the store's interface to an asyncpg connection.

Every statement names the schema, so a connection keeps no state of its own. Positions of updates count from 0.
`holds.length` is the number of a session's updates.

Text in PostgreSQL can contain neither `\0` nor half a surrogate pair, so JSON is stored as bytes, and an id with either
is never found. An index entry has at most about 2,700 bytes and a folder's name may be longer, so indexes hold hashes;
the texts are compared as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from hashlib import blake2b
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import UNSET

from accord.errors import StoreError
from accord.schema import codec
from accord.store import Changes, Json, StoredSession, microseconds, moment

Row: TypeAlias = "Mapping[str, Any]"


class AsyncpgConnection(Protocol):
    """A connection to the database."""

    async def execute(self, statement: str, *values: Any) -> str:
        """Run a statement."""
        ...

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        """Return all rows of a statement."""
        ...

    async def fetchrow(self, statement: str, *values: Any) -> Row | None:
        """The first row of a statement."""
        ...

    async def fetchval(self, statement: str, *values: Any) -> Any:
        """The first value of the first row."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[object]:
        """Run the block in a transaction."""
        ...

    def is_closed(self) -> bool:
        """Whether it is of no use any more."""
        ...

    def terminate(self) -> None:
        """End it at once."""
        ...


_SESSION = "s.*, h.hold, h.length FROM {schema}.sessions s JOIN {schema}.holds h USING (number)"

_THIS = "id_key = $1 AND id = $2 AND owner = $3"
"""One session, by its id's key, its id and its owner."""

_APPEND = """
WITH written AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS t(number, hold, first, count)
), held AS (
    UPDATE {schema}.holds h SET length = w.first + w.count FROM written w
    WHERE h.number = w.number AND h.hold = w.hold AND h.length = w.first
    RETURNING h.number, h.hold
), added AS (
    INSERT INTO {schema}.updates (session, position, update_json)
    SELECT u.number, u.position, u.data
    FROM unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bytea[]) AS u(number, hold, position, data)
    WHERE (u.number, u.hold) IN (SELECT number, hold FROM held)
), changed AS (
    UPDATE {schema}.sessions s SET
        updated = greatest(s.updated, coalesce(c.updated, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)),
        title = CASE WHEN c.sets & 1 > 0 THEN c.title ELSE s.title END,
        roots = CASE WHEN c.sets & 2 > 0 THEN c.roots ELSE s.roots END,
        settings = CASE WHEN c.sets & 4 > 0 THEN c.settings ELSE s.settings END,
        state = CASE WHEN c.sets & 8 > 0 THEN c.state ELSE s.state END,
        info = CASE WHEN c.sets & 16 > 0 THEN c.info ELSE s.info END,
        archived = CASE WHEN c.sets & 32 > 0 THEN c.archived ELSE s.archived END
    FROM unnest($9::bigint[], $10::bigint[], $11::bigint[], $12::int[], $13::text[], $14::bytea[], $15::bytea[],
                $16::bytea[], $17::bytea[], $18::boolean[])
        AS c(number, hold, updated, sets, title, roots, settings, state, info, archived)
    WHERE s.number = c.number AND (c.number, c.hold) IN (SELECT number, hold FROM held)
)
SELECT number, hold FROM held
"""
"""Commits writes of several sessions at once; returns those that were accepted.

A write names the hold and the length that its writer knows. A statement that waited for another reads the row again, so
a writer whose session was taken meanwhile is refused, and a statement that is sent twice is accepted once.
"""

_INSERT = """
WITH new AS (
    INSERT INTO {schema}.sessions (id_key, owner_key, folder_key, id, owner, cwd, roots, title, created, updated,
        settings, state, info, archived, format)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    ON CONFLICT (id_key) DO NOTHING RETURNING number
)
INSERT INTO {schema}.holds (number, hold, length) SELECT number, $16, $17 FROM new RETURNING number
"""

_TAKE = """
WITH s AS (
    UPDATE {schema}.sessions SET roots = $4 WHERE id_key = $1 AND id = $2 AND owner = $3 RETURNING *
), h AS (
    UPDATE {schema}.holds SET hold = hold + 1 FROM s WHERE holds.number = s.number RETURNING holds.*
)
SELECT s.*, h.hold, h.length FROM s JOIN h USING (number)
"""

_UPDATES = """
SELECT update_json FROM (
    SELECT position, update_json,
           sum(octet_length(update_json)) OVER (ORDER BY position) - octet_length(update_json) AS before
    FROM (
        SELECT position, update_json FROM {schema}.updates
        WHERE session = (SELECT number FROM {schema}.sessions WHERE id_key = $1 AND id = $2 AND owner = $3)
            AND position >= $4
        ORDER BY position LIMIT $5
    ) counted
) page WHERE before < $6 ORDER BY position
"""
"""A page of updates, bounded in the database: 256 updates may be of 16 MiB each."""


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


class Statements:
    """The statements for one schema."""

    def __init__(self, schema: str) -> None:
        named = quoted(schema)
        self.append = _APPEND.format(schema=named)
        self.insert = _INSERT.format(schema=named)
        self.take = _TAKE.format(schema=named)
        self.find = f"SELECT {_SESSION} WHERE {_THIS}".format(schema=named)
        self.updates = _UPDATES.format(schema=named)
        self.lengths = (
            f"SELECT s.id, h.length FROM {named}.sessions s JOIN {named}.holds h USING (number) "
            f"WHERE s.id_key = ANY($1) AND s.id = ANY($2) AND s.owner = $3"
        )
        self.copied = f"SELECT number, length FROM {named}.holds WHERE number = $1 FOR SHARE"
        self.copy_updates = (
            f"INSERT INTO {named}.updates (session, position, update_json) "
            f"SELECT $1, position, update_json FROM {named}.updates WHERE session = $2 AND position < $3"
        )
        self.held = f"SELECT number, hold, length FROM {named}.holds WHERE number = ANY($1)"
        self.lock = f"SELECT hold FROM {named}.holds WHERE number = $1 FOR UPDATE"
        self.shorten = (
            f"UPDATE {named}.holds SET length = least(length, $3) WHERE number = $1 AND hold = $2 RETURNING length"
        )
        self.cut = f"DELETE FROM {named}.updates WHERE session = $1 AND position >= $2"
        self.delete = tuple(
            f"DELETE FROM {named}.{table} WHERE {column} = $1"
            for table, column in (("updates", "session"), ("holds", "number"), ("sessions", "number"))
        )
        self._page = f"SELECT {_SESSION} WHERE ".format(schema=named)
        self._amend = f"UPDATE {named}.sessions SET "

    def amend(self, columns: Sequence[str]) -> str:
        """Sets these columns of a session; its holder stays the same."""
        sets = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, 4)) or "format = format"
        return f"{self._amend}{sets} WHERE {_THIS} RETURNING number"

    def page(self, *, of_folder: bool, archived: bool | None, after: bool) -> str:
        """Select a page of sessions. The parameters: key, owner, the folder, the place after which it begins, and the
        size.
        """
        where = "folder_key = $1 AND owner = $2 AND cwd = $3" if of_folder else "owner_key = $1 AND owner = $2"
        place = 4 if of_folder else 3
        if archived is not None:
            where += " AND archived" if archived else " AND NOT archived"
        if after:
            where += f" AND (updated, number) < (${place}, ${place + 1})"
            place += 2
        return f"{self._page}{where} ORDER BY updated DESC, number DESC LIMIT ${place}"


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


async def prepare(connection: AsyncpgConnection, schema: str) -> None:
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


CHANGING = ("title", "roots", "settings", "state", "info", "archived")
"""The columns that `Changes` may set; the position of each is its bit in a statement."""


def key(*parts: str) -> bytes:
    """Return the hash of these texts, by which an index finds them."""
    return blake2b(b"\0".join(part.encode() for part in parts), digest_size=16).digest()


def storable(*texts: str) -> bool:
    """Whether PostgreSQL can hold these texts."""
    try:
        return all(b"\0" not in text.encode() for text in texts)
    except UnicodeEncodeError:
        return False


def whole(text: str | None) -> str | None:
    """Return text without the characters that PostgreSQL cannot store."""
    if text is None:
        return None
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def columns_of(session: StoredSession) -> tuple[Any, ...]:
    """The columns of a new session, in the order of the statement that inserts it."""
    return (
        key(session.id),
        key(session.owner),
        key(session.owner, session.cwd),
        session.id,
        session.owner,
        session.cwd,
        codec.encode(session.roots),
        whole(session.title),
        microseconds(session.created),
        microseconds(session.updated),
        codec.encode(session.settings),
        codec.encode(session.state),
        codec.encode(session.info),
        session.archived,
        session.format,
    )


def changed_columns(changes: Changes) -> dict[str, Any]:
    """The columns that these changes set."""
    columns: dict[str, Any] = {}
    for name in CHANGING:
        value: Json = getattr(changes, name)
        if value is UNSET:
            continue
        if name == "title":
            value = whole(value)
        elif name != "archived":
            value = codec.encode(value)
        columns[name] = value
    return columns


def bits(columns: Mapping[str, Any]) -> int:
    """Return which of the changing columns these are, as one number."""
    return sum(1 << place for place, name in enumerate(CHANGING) if name in columns)


def session_of(row: Mapping[str, Any]) -> StoredSession:
    """The session of a row; raises StoreError `damaged` if the row is nonsense."""
    try:
        fields: dict[str, Any] = {name: row[name] for name in ("id", "cwd", "owner", "title", "format", "hold")}
        for name in ("roots", "settings", "state", "info"):
            fields[name] = codec.loads(row[name])
        fields |= {"created": moment(row["created"]), "updated": moment(row["updated"]), "archived": row["archived"]}
        return msgspec.convert(fields, StoredSession)
    except _NONSENSE as error:
        raise StoreError(
            "damaged", f"the store is damaged: invalid entry of session {ascii(row['id'])[:100]} ({error})"
        ) from error


def transposed(rows: Sequence[tuple[Any, ...]], width: int) -> list[tuple[Any, ...]]:
    """Return rows as one array for each column, the form for `unnest`."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


_NONSENSE = (msgspec.DecodeError, msgspec.ValidationError, ValueError, OverflowError, OSError)
