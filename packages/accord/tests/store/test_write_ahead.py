"""Switching a SQLite file to the write-ahead log while another connection holds its lock."""

import sqlite3

import pytest

from accord.store.sqlite_database import is_busy, use_write_ahead_log


@pytest.fixture
def holder(tmp_path):
    """A connection that holds the lock of a new file."""
    connection = sqlite3.connect(tmp_path / "file.sqlite3", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def test_it_tries_again_until_the_lock_is_free(tmp_path, holder):
    refused = []

    class Connection(sqlite3.Connection):
        def execute(self, statement):
            try:
                return super().execute(statement)
            except sqlite3.OperationalError as error:
                refused.append(error)
                if len(refused) == 3:
                    holder.execute("ROLLBACK")
                raise

    connection = sqlite3.connect(tmp_path / "file.sqlite3", factory=Connection, isolation_level=None)
    use_write_ahead_log(connection, 60.0)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert len(refused) == 3
    connection.close()


def test_it_gives_up_in_the_end(tmp_path, holder):
    connection = sqlite3.connect(tmp_path / "file.sqlite3", isolation_level=None)
    with pytest.raises(sqlite3.OperationalError) as error:
        use_write_ahead_log(connection, 0.0)
    assert is_busy(error.value)
    connection.close()
