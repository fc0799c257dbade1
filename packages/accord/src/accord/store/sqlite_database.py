"""The SQLite file of a store: its tables, its format, and the connections to it.

The file is in WAL mode, so readers never wait. A writer waits while another one commits, which takes well under a
millisecond; only copying and deleting a long session takes longer.

The numbers of a session and of an update form one integer key, so that the updates of a session are adjacent in the
table and in the order in which they are read.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

from accord.errors import StoreError, StoreTrouble
from accord.schema import codec

FORMAT = 1
"""The version of the tables; it rises when older versions of Accord can no longer read the file."""

APPLICATION = 0x41434F52
"""The number in the file's header that identifies Accord's files."""

PATIENCE = 30.0
"""Seconds to wait for other processes that hold the file's lock."""

Safety = Literal["process", "power"]
"""What a committed update survives: the death of the process, or the loss of power as well."""

_SYNCHRONOUS: dict[Safety, str] = {"process": "NORMAL", "power": "FULL"}

_HEADER = """
SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id),
       (SELECT count(*) FROM sqlite_master)
"""
"""One statement, because another process may create the tables between two."""

_ADDED_COLUMNS = {
    "info": "TEXT NOT NULL DEFAULT 'null'",
    "archived": "INTEGER NOT NULL DEFAULT 0",
}
"""Columns of sessions that the first files of format 1 do not have; older versions of Accord ignore them."""

_making = threading.Lock()

_TABLES = f"""
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    cwd TEXT NOT NULL,
    roots TEXT NOT NULL,
    title TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    settings TEXT NOT NULL,
    state TEXT NOT NULL,
    format INTEGER NOT NULL,
    hold INTEGER NOT NULL
);
CREATE INDEX sessions_by_activity ON sessions (owner, updated, number);
CREATE INDEX sessions_by_folder ON sessions (owner, cwd, updated, number);
CREATE TABLE updates (
    position INTEGER PRIMARY KEY,  -- the session's number * 2^32 + the update's
    update_json BLOB NOT NULL
);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
"""


def prepare(path: Path, safety: Safety, patience: float) -> sqlite3.Connection:
    """Create the file if it does not exist, check that it is a store, and connect to it."""
    try:
        _make_file(path)
        connection = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise StoreError("failed", f"cannot open the store {path}: {error}") from error
    try:
        _make_ready(connection, path, patience)
        return _safe(connection, safety)
    except FAILURES as error:
        connection.close()
        raise trouble(error, path) from error
    except BaseException:
        connection.close()
        raise


def connect(path: Path, safety: Safety, patience: float) -> sqlite3.Connection:
    """Connect to a file that is ready. Connecting may wait for the lock; using the connection never does."""
    try:
        made = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    except FAILURES as error:
        raise trouble(error, path) from error
    try:
        _safe(made, safety).execute("PRAGMA busy_timeout = 0")
    except FAILURES as error:
        made.close()
        raise trouble(error, path) from error
    return made


class OpenedFile:
    """The identity of the opened file, to notice when the file at its path is no longer the same.

    If the file was deleted or replaced, everything written to it is lost when the process ends, and SQLite does not
    report that.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
        self._identity = self._look()

    def must_be_there(self) -> None:
        """Raise StoreError `replaced` if the file was deleted or replaced."""
        if self._look() != self._identity:
            raise StoreError(
                "replaced",
                f"the store {self._path} was deleted or replaced while it was open; what was written since is lost, "
                "so put the file back or restart the program",
            )

    def _look(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116  (faster than pathlib; commits wait for it)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


def _safe(connection: sqlite3.Connection, safety: Safety) -> sqlite3.Connection:
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[safety]}")
    return connection


FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""The errors of the functions of `sqlite3`; in a damaged file, even the text of an error may be invalid UTF-8."""

NO_ROOM = 1024 * 1024
"""Free bytes below which an I/O error means a full disk: SQLite does not always report a full disk as such."""

_REASONS: dict[int, StoreTrouble] = {
    sqlite3.SQLITE_NOTADB: "not_a_store",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_FULL: "full",
}


def trouble(error: Exception, path: Path) -> StoreError:
    """The StoreError for an exception of SQLite."""
    if isinstance(error, StoreError):
        return error
    if is_busy(error):
        return StoreError("busy", f"the store {path} was locked by other processes for too long; try again")
    if isinstance(error, UnicodeDecodeError):
        return damaged(path, "it contains invalid UTF-8")
    code = primary_code(error)
    reason = _REASONS.get(code, "failed")
    if code == sqlite3.SQLITE_IOERR and _is_full(path):
        reason = "full"
    return StoreError(reason, f"cannot use the store {path}: {error}")


def damaged(path: Path | None, why: str) -> StoreError:
    """The error for a damaged file; `why` is a clause."""
    return StoreError("damaged", f"the store {'' if path is None else f'{path} '}is damaged: {why}")


def _is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < NO_ROOM
    except OSError:
        return False


def as_json(value: object) -> str:
    """A value as JSON text for a column."""
    return codec.encode(value).decode()


def whole(text: str) -> str:
    """The text with halves of surrogate pairs replaced, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _make_file(path: Path) -> None:
    """Create the folder and the file, readable for their user only: conversations are private.

    An existing file is not opened. Closing it would release every lock of this process on it (POSIX advisory locks),
    including those of another store in this process, and other processes could then delete SQLite's log.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (
        _making,
        suppress(FileExistsError),
    ):  # one at a time: closing a new file, too, would release another store's locks
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _make_ready(connection: sqlite3.Connection, path: Path, patience: float) -> None:
    _check(connection, path)  # before writing to a file that may not be a store
    use_write_ahead_log(connection, patience)
    connection.execute("BEGIN IMMEDIATE")  # one process creates the tables, and the others find them
    try:
        if _check(connection, path) == 0:
            for statement in _TABLES.split(";\n"):
                connection.execute(statement)
        _add_columns(connection)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _add_columns(connection: sqlite3.Connection) -> None:
    there = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info('sessions')")}
    for name, declaration in _ADDED_COLUMNS.items():
        if name not in there:
            connection.execute(f"ALTER TABLE sessions ADD COLUMN {name} {declaration}")


def _check(connection: sqlite3.Connection, path: Path) -> int:
    """The file's format; 0 for an empty file."""
    written, application, tables = connection.execute(_HEADER).fetchone()
    if application != APPLICATION and (application or written or tables):
        raise StoreError(
            "not_a_store", f"{path} is a database, but not one of Accord's session stores; choose another path"
        )
    if written > FORMAT:
        raise StoreError(
            "newer_format",
            f"the store {path} was written by a newer Accord: it has format {written}, "
            f"and this one knows formats up to {FORMAT}",
        )
    if written < 0 or (tables and not written):
        raise damaged(path, f"its format number is {written}, but must be 1 or more")
    return int(written)


def use_write_ahead_log(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to WAL mode. SQLite does not wait for the lock here, whatever the connection's timeout is."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def is_busy(error: Exception) -> bool:
    """Whether another connection holds the lock."""
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def primary_code(error: Exception) -> int:
    """Return SQLite's number for the error; 0 if it is not SQLite's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the higher bits are SQLite's extended code
