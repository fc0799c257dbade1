"""Sessions in a SQLite file, which any number of processes may share.

There are two connections. The journal's commits updates in the event loop's thread and never waits. The worker's
handles everything else in its own thread, so the event loop never waits for a disk or for another process.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, get_args

from accord.errors import StoreError
from accord.mistakes import check_path, check_word
from accord.paths import data_folder
from accord.store import (
    IN_MEMORY,
    NOTHING,
    PAGE_OF_SESSIONS,
    Changes,
    Clock,
    Cursor,
    Page,
    Store,
    StoredSession,
    now,
    sqlite_database,
    sqlite_queries,
)
from accord.store.sqlite_database import Safety
from accord.store.sqlite_queries import WriteJournal

T = TypeVar("T")


class SqliteStore(Store):
    """Keeps sessions in a file.

        agent = accord.Agent("greeter", store=accord.SqliteStore("sessions.sqlite3"))

    Without `path`, the file is in the user's data folder and named after `name`. Commits survive the death of the
    process at any moment. With `survives="power"`, every commit waits for the disk and also survives a power loss;
    otherwise a power loss may undo the last few commits. While another process locks the file, writes wait (the event
    loop does not); after `patience` seconds they fail. `clock` returns the time of activity.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        name: str = "sessions",
        survives: Safety = "process",
        patience: float = sqlite_database.PATIENCE,
        clock: Clock = now,
    ) -> None:
        if path == IN_MEMORY:
            raise ValueError(
                "SqliteStore(path) takes the path of a file, got ':memory:'; use accord.MemoryStore(), or pass "
                "store=':memory:' to the Agent"
            )
        if path is not None:
            check_path("SqliteStore(path)", path)
        check_word("survives", survives, get_args(Safety))
        self.path = data_folder() / f"{name}.sqlite3" if path is None else Path(path)
        """The file of the store."""
        self._survives: Safety = survives
        self._patience = patience
        self._clock = clock
        self._opening = asyncio.Lock()
        self._open: _OpenFile | None = None

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"

    async def open(self) -> None:
        async with self._opening:
            if self._open is None:
                self._open = await _OpenFile.at(self.path, self._survives, self._patience, self._clock)

    async def close(self) -> None:
        async with self._opening:
            if (held := self._open) is not None:
                self._open = None
                await held.close()

    async def create(self, session: StoredSession) -> StoredSession:
        await self._change(lambda connection: sqlite_queries.insert(connection, session, None))
        return session

    async def find(self, session_id: str, *, owner: str = "") -> StoredSession | None:
        return await self._work(lambda connection: sqlite_queries.find(connection, session_id, owner))

    async def take(self, session_id: str, *, owner: str = "", roots: Sequence[str] = ()) -> StoredSession:
        found = await self._change(lambda connection: sqlite_queries.take(connection, session_id, owner, roots))
        if found is None:
            raise StoreError("gone", f"session {session_id} does not exist")
        return found

    async def write(self, session: StoredSession, updates: Sequence[bytes] = (), changes: Changes = NOTHING) -> None:
        held = self._open or await self._ready()
        await held.journal.write(session, updates, changes)

    async def amend(self, session_id: str, changes: Changes, *, owner: str = "") -> None:
        await self._change(lambda connection: sqlite_queries.amend(connection, session_id, owner, changes))

    async def updates(self, session_id: str, *, owner: str = "", after: int = 0) -> AsyncIterator[list[bytes]]:
        while True:
            start = after
            page = await self._work(lambda connection: sqlite_queries.updates(connection, session_id, owner, start))  # noqa: B023
            if not page:
                return
            after += len(page)
            yield page

    async def lengths(self, known: Mapping[str, int], *, owner: str = "") -> dict[str, int]:
        return await self._work(lambda connection: sqlite_queries.lengths(connection, list(known), owner))

    async def page(
        self,
        *,
        owner: str = "",
        cwd: str | None = None,
        archived: bool | None = None,
        cursor: str | None = None,
        size: int = PAGE_OF_SESSIONS,
    ) -> Page:
        position = None if cursor is None else Cursor.read(cursor, cwd, archived)
        return await self._work(
            lambda connection: sqlite_queries.page(connection, owner, cwd, archived, position, size)
        )

    async def copy(self, source: str, session: StoredSession) -> StoredSession:
        await self._change(lambda connection: sqlite_queries.insert(connection, session, source))
        return session

    async def cut(self, session: StoredSession, length: int) -> None:
        await self._change(lambda connection: sqlite_queries.cut(connection, session, length))

    async def delete(self, session_id: str, *, owner: str = "") -> None:
        await self._change(lambda connection: sqlite_queries.delete(connection, session_id, owner))

    async def _change(self, do: Callable[[sqlite3.Connection], T]) -> T:
        return await self._work(lambda connection: sqlite_queries.in_transaction(connection, lambda: do(connection)))

    async def _work(self, do: Callable[[sqlite3.Connection], T]) -> T:
        held = self._open or await self._ready()

        def work(connection: sqlite3.Connection) -> T:
            held.file.must_be_there()
            return do(connection)

        try:
            return await asyncio.wrap_future(held.submit(work))
        except sqlite_database.FAILURES as error:
            raise sqlite_database.trouble(error, self.path) from error

    async def _ready(self) -> _OpenFile:
        await self.open()
        if self._open is None:
            raise StoreError("failed", f"the store {self.path} was closed while it was being opened")
        return self._open


class _OpenFile:
    """The resources of an open store: its thread, its connections and its journal."""

    def __init__(
        self,
        worker: ThreadPoolExecutor,
        patient: sqlite3.Connection,
        quick: sqlite3.Connection | None,
        path: Path,
        clock: Clock,
    ) -> None:
        self.worker = worker
        self.patient = patient
        self.quick = quick
        self.file = sqlite_database.OpenedFile(path)
        self.journal = WriteJournal(quick, self.submit, self.file, path, clock)

    @classmethod
    async def at(cls, path: Path, survives: Safety, patience: float, clock: Clock) -> _OpenFile:
        worker = ThreadPoolExecutor(1, "accord-store")
        preparing = worker.submit(_prepare, path, survives, patience)
        try:
            patient, quick = await asyncio.wrap_future(preparing)
        except BaseException:
            preparing.add_done_callback(_drop)  # the caller may have been cancelled
            worker.shutdown(wait=False)
            raise
        return cls(worker, patient, quick, path, clock)

    def submit(self, do: Callable[[sqlite3.Connection], T]) -> Future[T]:
        return self.worker.submit(do, self.patient)

    async def close(self) -> None:
        try:
            await self.journal.finish()
        finally:
            if self.quick is not None:
                self.quick.close()
            closing = self.worker.submit(self.patient.close)
            self.worker.shutdown(wait=False)
            await asyncio.shield(asyncio.wrap_future(closing))


def _prepare(path: Path, survives: Safety, patience: float) -> tuple[sqlite3.Connection, sqlite3.Connection | None]:
    """Open the worker's connection and the journal's. Both may wait, because another store may lock the file."""
    patient = sqlite_database.prepare(path, survives, patience)
    if survives != "process":
        return patient, None
    try:
        quick = sqlite_database.connect(path, survives, patience)
        quick.execute("PRAGMA wal_autocheckpoint = 0")  # a checkpoint waits for the disk, so the worker does it
    except BaseException:
        patient.close()
        raise
    return patient, quick


def _drop(preparing: Future[tuple[sqlite3.Connection, sqlite3.Connection | None]]) -> None:
    if not preparing.cancelled() and preparing.exception() is None:
        for connection in filter(None, preparing.result()):
            connection.close()
