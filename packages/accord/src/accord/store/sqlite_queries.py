"""The queries of a SQLite store, and the journal that commits all writes of one event loop iteration together.

    write ─▶ waiting ── end of iteration ──▶ one transaction ─▶ every writer continues
                                                   └─ file locked, or many bytes: in the worker's thread

A commit is a handful of system calls and does not wait for the disk, so it runs in the event loop's thread: this takes
a third of the time of a thread and back. The worker handles everything that has to wait: a commit while the file is
locked, one with many bytes, one that must survive a power loss, and moving the write-ahead log into the file.

While the worker is busy, more writes are collected; they are committed together afterwards. So writes are committed in
the order in which they began, and the more there are at a time, the less each costs.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET

from accord._internal.tasks import LightEvent
from accord.errors import StoreError
from accord.schema import codec
from accord.store import (
    NOTHING,
    PAGE_BYTES,
    PAGE_OF_UPDATES,
    Changes,
    Clock,
    Cursor,
    Page,
    PendingWrite,
    StoredSession,
    microseconds,
    moment,
)
from accord.store.sqlite_database import FAILURES, OpenedFile, as_json, damaged, is_busy, trouble, whole

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
    """Return why a session with this hold cannot be written."""
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
"""The errors for invalid values in a damaged file."""

# Made at import: msgspec's first use of a class is not safe in two threads; `convert` then finds its data.
msgspec.json.Decoder(StoredSession)


LONG = 256 * 1024
"""Bytes from which on the worker does a commit."""

CHECKPOINT_AFTER = 4 * 1024 * 1024
"""Bytes of updates after which the write-ahead log is moved into the file."""

CHECK_AGAIN = 0.1
"""Seconds between two checks, in a stream of updates, that the file still exists. Each prompt checks as well."""

MOMENT = 1_000_000
"""Microseconds by which the stored time of the last activity may be behind if only updates are written."""

_PLACE = """
SELECT number, updated, (
    SELECT position FROM updates
    WHERE position >= number << 32 AND position < number + 1 << 32
    ORDER BY position DESC LIMIT 1
) FROM sessions WHERE id = ? AND owner = ? AND hold = ?
"""
"""A session's number, its last activity, and the position of its last update; no row unless the hold is right."""

Work: TypeAlias = "Callable[[sqlite3.Connection], Outcomes]"
Submit: TypeAlias = "Callable[[Work], Future[Outcomes]]"
Outcomes: TypeAlias = "list[StoreError | None]"


class WriteJournal:
    """Collects writes and commits them, in the event loop's thread if that is fast."""

    def __init__(
        self, quick: sqlite3.Connection | None, submit: Submit, file: OpenedFile, path: Path, clock: Clock
    ) -> None:
        self._quick = quick
        """A connection that never waits for a lock; None if the worker does every commit."""
        self._submit = submit
        self._file = file
        self._check_after = 0.0
        self._path = path
        self._clock = clock
        self._waiting: list[PendingWrite] = []
        self._committing = False
        self._since_checkpoint = 0
        self._idle = LightEvent()
        self._idle.set()

    async def write(self, session: StoredSession, updates: Sequence[bytes], changes: Changes) -> None:
        """Write with the next commit; returns or raises once it is done."""
        loop = asyncio.get_running_loop()
        columns = None if changes is NOTHING else changed_columns(changes)
        write = PendingWrite(session, updates, columns, loop.create_future())
        self._waiting.append(write)
        if not self._committing:
            self._committing = True
            self._idle.clear()
            loop.call_soon(self._commit)
        await write.done

    async def finish(self) -> None:
        """Wait until all writes are done."""
        await self._idle.wait()

    def _commit(self) -> None:
        # A write that was cancelled while waiting is dropped.
        writes = [write for write in self._waiting if not write.done.done()]
        self._waiting = []
        size = sum(write.size for write in writes)
        self._since_checkpoint += size

        def work(connection: sqlite3.Connection) -> Outcomes:
            outcomes = commit(connection, writes, microseconds(self._clock()))
            self._check_file(writes)
            return outcomes

        if self._quick is not None and size < LONG:
            try:
                self._settle(writes, work(self._quick))
                return
            except Exception as error:
                if not is_busy(error):
                    self._settle(writes, self._failure(error, len(writes)))
                    return
        loop = asyncio.get_running_loop()
        self._submit(work).add_done_callback(lambda future: loop.call_soon_threadsafe(self._committed, writes, future))

    def _check_file(self, writes: list[PendingWrite]) -> None:
        """Raise StoreError if the file was deleted or replaced.

        A check costs a tenth of a commit, so the updates of a stream share one.
        """
        now = monotonic()
        if now < self._check_after and all(write.columns is None for write in writes):
            return
        self._file.must_be_there()
        self._check_after = now + CHECK_AGAIN

    def _committed(self, writes: list[PendingWrite], future: Future[Outcomes]) -> None:
        error = future.exception()
        self._settle(writes, future.result() if error is None else self._failure(error, len(writes)))

    def _failure(self, error: BaseException, count: int) -> Outcomes:
        """Return the outcomes of a failed transaction: none of its writes was stored."""
        if isinstance(error, (*FAILURES, StoreError)):
            failure = trouble(error, self._path)
        else:
            failure = StoreError("failed", f"the store {self._path} failed: {error!r}")
        if failure is not error:
            failure.__cause__ = error
        return [failure] * count

    def _settle(self, writes: list[PendingWrite], outcomes: Outcomes) -> None:
        for write, error in zip(writes, outcomes, strict=True):
            write.settle(error)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._commit)
        else:
            self._committing = False
            self._idle.set()
        if self._since_checkpoint >= CHECKPOINT_AFTER:
            self._since_checkpoint = 0
            self._submit(checkpoint)


def commit(connection: sqlite3.Connection, writes: list[PendingWrite], at: int) -> Outcomes:
    """Store these writes in one transaction; returns for each why it was refused, or None."""
    return in_transaction(connection, lambda: [_write(connection, write, at) for write in writes])


def checkpoint(connection: sqlite3.Connection) -> Outcomes:
    """Move the write-ahead log into the file, except for the part that readers still use."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    return []


def _write(connection: sqlite3.Connection, write: PendingWrite, at: int) -> StoreError | None:
    session = write.session
    # The cost of a commit is the number of pages that it changes. Most change only the page with the newest updates.
    row = connection.execute(_PLACE, (session.id, session.owner, session.hold)).fetchone()
    if row is None:
        return refusal(connection, session)
    number, updated, last = row
    if write.columns is not None or at - updated >= MOMENT:
        columns = "".join(f", {name} = ?" for name in write.columns or ())
        values = (write.columns or {}).values()
        connection.execute(
            f"UPDATE sessions SET updated = max(updated, ?){columns} WHERE number = ?", (at, *values, number)
        )
    first = (number << 32) if last is None else last + 1
    connection.executemany(
        "INSERT INTO updates VALUES (?, ?)", [(first + index, update) for index, update in enumerate(write.updates)]
    )
    return None
