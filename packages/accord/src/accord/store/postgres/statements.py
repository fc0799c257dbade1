"""The SQL of a store in PostgreSQL. Every statement names the schema, so a connection keeps no state of its own. PURE.

Positions of updates count from 0. `holds.length` is the number of a session's updates.
"""

from __future__ import annotations

from collections.abc import Sequence

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

A write names the hold and the length that its writer knows. A statement that waited for another looks at the row again,
so a writer whose session was taken meanwhile is refused, and a statement that is sent twice is accepted once.
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
        """A page of sessions. Its values: key, owner, and the folder, the place after which it begins, and the size."""
        where = "folder_key = $1 AND owner = $2 AND cwd = $3" if of_folder else "owner_key = $1 AND owner = $2"
        place = 4 if of_folder else 3
        if archived is not None:
            where += " AND archived" if archived else " AND NOT archived"
        if after:
            where += f" AND (updated, number) < (${place}, ${place + 1})"
            place += 2
        return f"{self._page}{where} ORDER BY updated DESC, number DESC LIMIT ${place}"
