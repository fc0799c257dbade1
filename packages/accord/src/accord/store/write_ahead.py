"""SQLite's write-ahead log, switched on in a file that other processes may be opening at the same moment."""

import sqlite3
import time


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
    """SQLite's number for the error; 0 if it is not SQLite's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the higher bits are SQLite's extended code
