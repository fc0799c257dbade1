"""Writes of one turn of the event loop, committed together.

    write ─▶ waiting ── end of the turn ──▶ one transaction ─▶ every writer goes on
                                                  └─ locked by another process, or long: in the worker's thread

A commit is a handful of system calls and waits for no disk, so it runs in the loop's thread: measured, that takes a
third of the time of handing it to a thread and back. What does wait is done by the worker: a commit that finds the file
locked, one of many bytes, one that must survive a loss of power, and moving the write-ahead log into the file.

Meanwhile more writes gather, and go together once the worker is done. So writes are committed in the order in which
they were begun, and the more there are at once, the less each costs.
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

from msgspec import UNSET

from accord.errors import StoreError
from accord.store.base import NOTHING, Changes, Clock, StoredSession, microseconds
from accord.store.database import FAILURES, OpenedFile, as_json, is_busy, trouble, whole
from accord.store.queries import refusal

LONG = 256 * 1024
"""Bytes past which a commit goes to the worker."""

CHECKPOINT_AFTER = 4 * 1024 * 1024
"""Bytes of updates after which the write-ahead log is moved into the file."""

LOOK_AGAIN = 0.1
"""Seconds in which a stream of updates does not look again whether the file is still there; each prompt does."""

MOMENT = 1_000_000
"""Microseconds to which the time of the last activity is exact, where updates alone are written."""

_PLACE = """
SELECT number, updated, (
    SELECT position FROM updates
    WHERE position >= number << 32 AND position < number + 1 << 32
    ORDER BY position DESC LIMIT 1
) FROM sessions WHERE id = ? AND owner = ? AND hold = ?
"""
"""A session's number, its last activity, and the place of its last update; nothing unless it is held."""

Work: TypeAlias = "Callable[[sqlite3.Connection], Outcomes]"
Submit: TypeAlias = "Callable[[Work], Future[Outcomes]]"
Outcomes: TypeAlias = "list[StoreError | None]"


@dataclass(slots=True)
class Write:
    """Updates of a session, and what changes beside them."""

    session: StoredSession
    updates: Sequence[bytes]
    columns: dict[str, str | None] | None
    """What changes beside the updates; None for updates alone."""
    done: asyncio.Future[None]

    @property
    def touches(self) -> bool:
        """Whether the time of the last activity has to be exact."""
        return self.columns is not None

    @property
    def size(self) -> int:
        return sum(map(len, self.updates))


class WriteJournal:
    """Gathers writes and commits them, in the loop's thread where that is quick."""

    def __init__(
        self, quick: sqlite3.Connection | None, submit: Submit, file: OpenedFile, path: Path, clock: Clock
    ) -> None:
        self._quick = quick
        """Waits for nobody; None if every commit is to go to the worker."""
        self._submit = submit
        self._file = file
        self._look_after = 0.0
        self._path = path
        self._clock = clock
        self._waiting: list[Write] = []
        self._under_way = False
        self._since_checkpoint = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def write(self, session: StoredSession, updates: Sequence[bytes], changes: Changes) -> None:
        loop = asyncio.get_running_loop()
        write = Write(session, updates, None if changes is NOTHING else _columns(changes), loop.create_future())
        self._waiting.append(write)
        if not self._under_way:
            self._under_way = True
            self._idle.clear()
            loop.call_soon(self._commit)
        await write.done

    async def finish(self) -> None:
        """Wait until nothing is under way."""
        await self._idle.wait()

    def _commit(self) -> None:
        # Whoever was cancelled while waiting has written nothing.
        writes = [write for write in self._waiting if not write.done.done()]
        self._waiting = []
        size = sum(write.size for write in writes)
        self._since_checkpoint += size

        def work(connection: sqlite3.Connection) -> Outcomes:
            outcomes = commit(connection, writes, microseconds(self._clock()))
            self._look(writes)
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

    def _look(self, writes: list[Write]) -> None:
        """Raise StoreError if the file is gone.

        A look costs a tenth of a commit, so the updates of a stream share one.
        """
        now = monotonic()
        if now < self._look_after:
            for write in writes:
                if write.columns is not None:
                    break
            else:
                return
        self._file.must_be_there()
        self._look_after = now + LOOK_AGAIN

    def _committed(self, writes: list[Write], future: Future[Outcomes]) -> None:
        error = future.exception()
        self._settle(writes, future.result() if error is None else self._failure(error, len(writes)))

    def _failure(self, error: BaseException, count: int) -> Outcomes:
        """Nobody's write was kept."""
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
            self._under_way = False
            self._idle.set()
        if self._since_checkpoint >= CHECKPOINT_AFTER:
            self._since_checkpoint = 0
            self._submit(checkpoint)


def commit(connection: sqlite3.Connection, writes: list[Write], at: int) -> Outcomes:
    """Keep these writes in one transaction; which of them were refused, and why."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        outcomes = [_write(connection, write, at) for write in writes]
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return outcomes


def checkpoint(connection: sqlite3.Connection) -> Outcomes:
    """Move what the write-ahead log holds into the file, as far as no reader needs it."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    return []


def _write(connection: sqlite3.Connection, write: Write, at: int) -> StoreError | None:
    session = write.session
    # A commit costs what it changes, in pages: most change the page with the newest updates and no other.
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


def _columns(changes: Changes) -> dict[str, str | None]:
    """What changes, as the database keeps it."""
    columns: dict[str, str | None] = {}
    if changes.title is not UNSET:
        columns["title"] = None if changes.title is None else whole(changes.title)
    for name in ("roots", "settings", "state"):
        if (value := getattr(changes, name)) is not UNSET:
            columns[name] = as_json(value)
    return columns
