"""Commits all writes of one event loop iteration together.

    write ─▶ waiting ── end of iteration ──▶ one transaction ─▶ every writer continues
                                                   └─ file locked, or many bytes: in the worker's thread

A commit is a handful of system calls and does not wait for the disk, so it runs in the event loop's thread: this takes
a third of the time of a thread and back. The worker does what has to wait: a commit while the file is locked, one with
many bytes, one that must survive a power loss, and moving the write-ahead log into the file.

While the worker is busy, more writes gather; they are committed together afterwards. So writes are committed in the
order in which they began, and the more there are at a time, the less each costs.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from accord._internal.light_event import LightEvent
from accord.errors import StoreError
from accord.store.base import NOTHING, Changes, Clock, StoredSession, microseconds
from accord.store.database import FAILURES, OpenedFile, trouble
from accord.store.queries import changed_columns, refusal
from accord.store.write_ahead import is_busy

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


@dataclass(slots=True)
class Write:
    """One write that waits for its commit."""

    session: StoredSession
    updates: Sequence[bytes]
    columns: dict[str, str | int | None] | None
    """The columns that change; None for updates alone."""
    done: asyncio.Future[None]

    @property
    def touches(self) -> bool:
        """Whether the time of the last activity must be exact."""
        return self.columns is not None

    @property
    def size(self) -> int:
        """Bytes of the updates."""
        return sum(map(len, self.updates))


class WriteJournal:
    """Gathers writes and commits them, in the event loop's thread if that is quick."""

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
        self._waiting: list[Write] = []
        self._committing = False
        self._since_checkpoint = 0
        self._idle = LightEvent()
        self._idle.set()

    async def write(self, session: StoredSession, updates: Sequence[bytes], changes: Changes) -> None:
        """Write with the next commit; returns or raises once it is done."""
        loop = asyncio.get_running_loop()
        write = Write(session, updates, None if changes is NOTHING else changed_columns(changes), loop.create_future())
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

    def _check_file(self, writes: list[Write]) -> None:
        """Raise StoreError if the file was deleted or replaced.

        A check costs a tenth of a commit, so the updates of a stream share one.
        """
        now = monotonic()
        if now < self._check_after:
            for write in writes:
                if write.columns is not None:
                    break
            else:
                return
        self._file.must_be_there()
        self._check_after = now + CHECK_AGAIN

    def _committed(self, writes: list[Write], future: Future[Outcomes]) -> None:
        error = future.exception()
        self._settle(writes, future.result() if error is None else self._failure(error, len(writes)))

    def _failure(self, error: BaseException, count: int) -> Outcomes:
        """The outcomes of a failed transaction: none of its writes was stored."""
        if isinstance(error, (*FAILURES, StoreError)):
            failure = trouble(error, self._path)
        else:
            failure = StoreError("failed", f"the store {self._path} failed: {error!r}")
        if failure is not error:
            failure.__cause__ = error
        return [failure] * count

    def _settle(self, writes: list[Write], outcomes: Outcomes) -> None:
        for write, error in zip(writes, outcomes, strict=True):
            if write.done.done():
                continue
            if error is None:
                write.done.set_result(None)
            else:
                write.done.set_exception(error)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._commit)
        else:
            self._committing = False
            self._idle.set()
        if self._since_checkpoint >= CHECKPOINT_AFTER:
            self._since_checkpoint = 0
            self._submit(checkpoint)


def commit(connection: sqlite3.Connection, writes: list[Write], at: int) -> Outcomes:
    """Store these writes in one transaction; returns for each why it was refused, or None."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        outcomes = [_write(connection, write, at) for write in writes]
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return outcomes


def checkpoint(connection: sqlite3.Connection) -> Outcomes:
    """Move the write-ahead log into the file, except for what readers still use."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    return []


def _write(connection: sqlite3.Connection, write: Write, at: int) -> StoreError | None:
    session = write.session
    # The cost of a commit is the number of pages that it changes. Most change only the page with the newest updates.
    row = connection.execute(_PLACE, (session.id, session.owner, session.hold)).fetchone()
    if row is None:
        return refusal(connection, session)
    number, updated, last = row
    if write.touches or at - updated >= MOMENT:
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
