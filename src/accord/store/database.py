"""The SQLite file: its tables, its format, and the connections to it.

The file is in WAL mode, so readers never wait. A writer waits while another one commits, which takes well under a
millisecond; only copying and deleting a long session takes longer.

Numbers of updates and of sessions share one integer key, so that a session's updates stand side by side in one table
in the order in which they are read.
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
"""Raised when an older Accord could no longer read the file."""

APPLICATION = 0x41434F52
"""In the file's header: says that the file is Accord's."""

PATIENCE = 30.0
"""Seconds to wait for other processes that write."""

Safety = Literal["process", "power"]
"""What a committed update survives: the death of the process, or the loss of power as well."""

_SYNCHRONOUS: dict[Safety, str] = {"process": "NORMAL", "power": "FULL"}

_HEADER = """
SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id),
       (SELECT count(*) FROM sqlite_master)
"""
"""In one statement, as another process may make the tables between two."""

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
    """Make the file if it is not there, see that it is ours, and connect to it."""
    try:
        _make_file(path)
        connection = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise StoreError("failed", f"the store {path} cannot be opened: {error}") from error
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
    """A second connection to a file that is ready; it waits while it is made, and never afterwards."""
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
    """The file that was opened, to notice when its path no longer leads to it.

    What is written to a file that was deleted, or that another file has replaced, is lost once the process ends, and
    SQLite does not say so.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
        self._identity = self._look()

    def must_be_there(self) -> None:
        if self._look() != self._identity:
            raise StoreError(
                "replaced",
                f"the store {self._path} was deleted or replaced while it was open; what was written since is lost, "
                "so put the file back or restart the program",
            )

    def _look(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116  (the quickest, as commits wait for it)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


def _safe(connection: sqlite3.Connection, safety: Safety) -> sqlite3.Connection:
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[safety]}")
    return connection


FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite's functions raise; a damaged file may break the text of an error too."""

NO_ROOM = 1024 * 1024
"""Free bytes on a disk below which an error of input or output is taken for a full disk: SQLite tells only some."""

_REASONS: dict[int, StoreTrouble] = {
    sqlite3.SQLITE_NOTADB: "not_a_store",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_FULL: "full",
}


def trouble(error: Exception, path: Path) -> StoreError:
    """What went wrong, in the words of a store."""
    if isinstance(error, StoreError):
        return error
    if is_busy(error):
        return StoreError("busy", f"the store {path} was locked by others for too long")
    if isinstance(error, UnicodeDecodeError):
        return damaged(path, "it has bytes that are not text")
    code = _primary_code(error)
    reason = _REASONS.get(code, "failed")
    if code == sqlite3.SQLITE_IOERR and _is_full(path):
        reason = "full"
    return StoreError(reason, f"the store {path} cannot be used: {error}")


def damaged(path: Path | None, why: str) -> StoreError:
    return StoreError("damaged", f"the store {'' if path is None else f'{path} '}is damaged: {why}")


def _is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < NO_ROOM
    except OSError:
        return False


def is_busy(error: Exception) -> bool:
    return _primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def as_json(value: object) -> str:
    return codec.encode(value).decode()


def whole(text: str) -> str:
    """This text without halves of emoji, for which UTF-8 has no bytes."""
    return text.encode("utf-8", "replace").decode()


def _primary_code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest says more than we want to know


def _make_file(path: Path) -> None:
    """Conversations are private: folder and file are made for their user only.

    A file that exists is not opened. Closing it would drop every lock that this process has on it (POSIX advisory
    locks), also those of another store of this process, and SQLite would then let others write and delete its log.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _making, suppress(FileExistsError):  # one at a time: another store's locks could go with a new file as well
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _make_ready(connection: sqlite3.Connection, path: Path, patience: float) -> None:
    _check(connection, path)  # before anything is written to a file that may not be ours
    _use_write_ahead_log(connection, patience)
    connection.execute("BEGIN IMMEDIATE")  # one process makes the tables, and the others find them
    try:
        if _check(connection, path) == 0:
            for statement in _TABLES.split(";\n"):
                connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check(connection: sqlite3.Connection, path: Path) -> int:
    """The file's format, 0 for an empty file."""
    written, application, tables = connection.execute(_HEADER).fetchone()
    if application != APPLICATION and (application or written or tables):
        raise StoreError("not_a_store", f"{path} is a database, but not a store of Accord's sessions")
    if written > FORMAT:
        raise StoreError(
            "newer_format",
            f"the store {path} was written by a newer Accord: it has format {written}, "
            f"and this one knows formats up to {FORMAT}",
        )
    if written < 0 or (tables and not written):
        raise damaged(path, f"it has tables of format {written}, and formats begin with 1")
    return int(written)


def _use_write_ahead_log(connection: sqlite3.Connection, patience: float) -> None:
    """SQLite does not wait for others here, however patient the connection is."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
