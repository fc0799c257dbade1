"""The database queries of a store. They run in the worker's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from accord.errors import StoreError
from accord.schema import codec
from accord.store.base import PAGE_BYTES, PAGE_OF_UPDATES, Changes, Cursor, Page, StoredSession, microseconds, moment
from accord.store.database import as_json, damaged, whole

T = TypeVar("T")

_COLUMNS = "id, cwd, owner, roots, title, created, updated, settings, state, format, hold, info, archived"

_VALUES = 500
"""Ids in one statement; older versions of SQLite take at most 999 values."""

_LENGTHS = """
SELECT id, number, (
    SELECT position FROM updates
    WHERE position >= number << 32 AND position < number + 1 << 32
    ORDER BY position DESC LIMIT 1
) FROM sessions WHERE owner = ? AND id IN ({ids})
"""
"""The position of the last update of each of these sessions."""


def in_transaction(connection: sqlite3.Connection, do: Callable[[], T]) -> T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = do()
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return result


def find(connection: sqlite3.Connection, session_id: str, owner: str) -> StoredSession | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE id = ? AND owner = ?", (_key(session_id), owner)
    ).fetchone()
    return None if row is None else _session(row)


def take(connection: sqlite3.Connection, session_id: str, owner: str, roots: Sequence[str]) -> StoredSession | None:
    connection.execute(
        "UPDATE sessions SET hold = hold + 1, roots = ? WHERE id = ? AND owner = ?",
        (as_json(roots), _key(session_id), owner),
    )
    return find(connection, session_id, owner)


def insert(connection: sqlite3.Connection, session: StoredSession, source: str | None) -> None:
    copied = None if source is None else _number(connection, source, session.owner)
    if source is not None and copied is None:
        raise StoreError("gone", f"session {source} does not exist")
    try:
        number = connection.execute(
            f"INSERT INTO sessions ({_COLUMNS}) VALUES ({', '.join('?' * 13)})", _row(session)
        ).lastrowid
    except sqlite3.IntegrityError:
        raise StoreError("exists", f"session {session.id} already exists") from None
    if copied is not None and number is not None:
        first, end = copied << 32, copied + 1 << 32
        connection.execute(
            "INSERT INTO updates SELECT position + ?, update_json FROM updates WHERE position >= ? AND position < ?",
            ((number << 32) - first, first, end),
        )


def amend(connection: sqlite3.Connection, session_id: str, owner: str, changes: Changes) -> None:
    columns = changed_columns(changes)
    names = ", ".join(f"{name} = ?" for name in columns) or "hold = hold"
    found = connection.execute(
        f"UPDATE sessions SET {names} WHERE id = ? AND owner = ?", (*columns.values(), _key(session_id), owner)
    )
    if found.rowcount == 0:
        raise StoreError("gone", f"session {session_id} does not exist")


def changed_columns(changes: Changes) -> dict[str, str | int | None]:
    """The changed columns, as the database stores them."""
    columns: dict[str, str | int | None] = {}
    if changes.title is not UNSET:
        columns["title"] = None if changes.title is None else whole(changes.title)
    if changes.archived is not UNSET:
        columns["archived"] = int(changes.archived)
    for name in ("roots", "settings", "state", "info"):
        if (value := getattr(changes, name)) is not UNSET:
            columns[name] = as_json(value)
    return columns


def cut(connection: sqlite3.Connection, session: StoredSession, length: int) -> None:
    row = connection.execute(
        "SELECT number FROM sessions WHERE id = ? AND owner = ? AND hold = ?",
        (_key(session.id), session.owner, session.hold),
    ).fetchone()
    if row is None:
        raise refusal(connection, session)
    number = row[0]
    connection.execute(
        "DELETE FROM updates WHERE position >= ? AND position < ?", ((number << 32) + length, number + 1 << 32)
    )


def refusal(connection: sqlite3.Connection, session: StoredSession) -> StoreError:
    """Why a session with this hold cannot be written."""
    there = connection.execute("SELECT 1 FROM sessions WHERE id = ? AND owner = ?", (_key(session.id), session.owner))
    if there.fetchone() is None:
        return StoreError("gone", f"session {session.id} was deleted")
    return StoreError("taken", f"session {session.id} was opened elsewhere; load it again to continue here")


def delete(connection: sqlite3.Connection, session_id: str, owner: str) -> None:
    number = _number(connection, session_id, owner)
    if number is not None:
        connection.execute("DELETE FROM updates WHERE position >= ? AND position < ?", (number << 32, number + 1 << 32))
        connection.execute("DELETE FROM sessions WHERE number = ?", (number,))


def updates(connection: sqlite3.Connection, session_id: str, owner: str, after: int) -> list[bytes]:
    number = _number(connection, session_id, owner)
    if number is None:
        return []
    rows = connection.execute(
        "SELECT update_json FROM updates WHERE position >= ? AND position < ? ORDER BY position LIMIT ?",
        ((number << 32) + after, number + 1 << 32, PAGE_OF_UPDATES),
    )
    page: list[bytes] = []
    size = 0
    for (update,) in rows:
        if update.__class__ is not bytes:
            raise damaged(None, f"an update of session {session_id} is not JSON")
        page.append(update)
        size += len(update)
        if size >= PAGE_BYTES:
            break
    rows.close()
    return page


def lengths(connection: sqlite3.Connection, session_ids: Sequence[str], owner: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for first in range(0, len(session_ids), _VALUES):
        some = [_key(session_id) for session_id in session_ids[first : first + _VALUES]]
        rows = connection.execute(_LENGTHS.format(ids=", ".join("?" * len(some))), (owner, *some))
        found.update(
            (session_id, 0 if last is None else last - (number << 32) + 1) for session_id, number, last in rows
        )
    return found


def page(
    connection: sqlite3.Connection,
    owner: str,
    cwd: str | None,
    archived: bool | None,
    start: Cursor | None,
    size: int,
) -> Page:
    where, values = "owner = ?", [owner]
    if cwd is not None:
        where += " AND cwd = ?"
        values.append(cwd)
    if archived is not None:
        where += f" AND archived = {archived:d}"
    place: list[int] = []
    if start is not None:
        where += " AND (updated, number) < (?, ?)"
        place = [start.updated, start.number]
    rows = connection.execute(
        f"SELECT {_COLUMNS}, updated, number FROM sessions WHERE {where} ORDER BY updated DESC, number DESC LIMIT ?",
        (*values, *place, size + 1),
    ).fetchall()
    sessions = [_session(row[:-2]) for row in rows[:size]]
    if len(rows) <= size:
        return Page(sessions)
    *_, updated, number = rows[size - 1]
    return Page(sessions, Cursor(updated, number, cwd, archived).written())


def _number(connection: sqlite3.Connection, session_id: str, owner: str) -> int | None:
    key = _key(session_id), owner
    row = connection.execute("SELECT number FROM sessions WHERE id = ? AND owner = ?", key).fetchone()
    return None if row is None else int(row[0])


def _key(session_id: str) -> str | bytes:
    """An id for a query. One with half a surrogate pair becomes bytes, which equal no text in the database."""
    try:
        session_id.encode()
    except UnicodeEncodeError:
        return session_id.encode("utf-8", "surrogatepass")
    return session_id


def _row(session: StoredSession) -> tuple[str | int | None, ...]:
    return (
        session.id,
        session.cwd,
        session.owner,
        as_json(session.roots),
        None if session.title is None else whole(session.title),
        microseconds(session.created),
        microseconds(session.updated),
        as_json(session.settings),
        as_json(session.state),
        session.format,
        session.hold,
        as_json(session.info),
        int(session.archived),
    )


def _session(row: tuple[Any, ...]) -> StoredSession:
    identifier, cwd, owner, roots, title, created, updated, settings, state, version, hold, info, archived = row
    try:
        fields = {
            "id": identifier,
            "cwd": cwd,
            "owner": owner,
            "roots": codec.loads(roots.encode()),
            "title": title,
            "created": moment(created),
            "updated": moment(updated),
            "settings": codec.loads(settings.encode()),
            "state": codec.loads(state.encode()),
            "format": version,
            "hold": hold,
            "info": codec.loads(info.encode()),
            "archived": bool(archived),
        }
        return msgspec.convert(fields, StoredSession)
    except _NONSENSE as error:
        raise damaged(None, f"invalid entry of session {ascii(identifier)[:100]} ({error})") from error


_NONSENSE = (ValueError, TypeError, AttributeError, OverflowError, OSError, msgspec.MsgspecError)
"""What invalid values in a damaged file raise."""

# Made at import: msgspec's first look at a class is not safe in two threads; `convert` then finds what it needs.
msgspec.json.Decoder(StoredSession)
