"""Sessions in PostgreSQL, which the processes of several machines share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar, get_args

from accord.errors import StoreError
from accord.mistakes import check_text, check_word
from accord.redaction import mask_urls
from accord.store import (
    NOTHING,
    PAGE_BYTES,
    PAGE_OF_SESSIONS,
    PAGE_OF_UPDATES,
    Changes,
    Clock,
    Cursor,
    Page,
    Store,
    StoredSession,
    postgres_statements,
)
from accord.store.postgres_commits import Commits
from accord.store.postgres_connection import Deadline, PostgresConnection, Work, check_url
from accord.store.postgres_statements import (
    AsyncpgConnection,
    Row,
    Statements,
    changed_columns,
    columns_of,
    key,
    session_of,
    storable,
)
from accord.store.sqlite_database import PATIENCE, Safety

T = TypeVar("T")

READERS = 4
"""Connections for everything but commits."""

_SYNCHRONOUS: dict[Safety, str] = {"process": "off", "power": "on"}


class PostgresStore(Store):
    """Keeps sessions in a PostgreSQL database, which any number of processes on any number of machines may share.

        agent = accord.Agent("greeter", store=accord.PostgresStore("postgresql://db/accord"))

    The tables are made in `schema` when the store is first used. A stored update survives the death of the agent, and
    with `survives="power"` that of the database server as well; with `"process"` a server that dies may lose the last
    0.2 s. While the database is unreachable, calls wait and are repeated; after `patience` seconds they fail. The first
    connection is not repeated, so a wrong URL is an error at once. `clock` returns the time of activity instead of the
    database. Needs the extra `postgres`.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "accord",
        survives: Safety = "power",
        patience: float = PATIENCE,
        clock: Clock | None = None,
    ) -> None:
        check_url(url)
        check_text("PostgresStore(schema=...)", schema)
        check_word("survives", survives, get_args(Safety))
        self._url = url
        self._schema = schema
        self._patience = patience
        settings = {
            "synchronous_commit": _SYNCHRONOUS[survives],
            "default_transaction_isolation": "read committed",
            "application_name": "accord",
        }
        self._statements = Statements(schema)
        self._writer = PostgresConnection(url, settings)
        self._readers = [PostgresConnection(url, settings) for _ in range(READERS)]
        self._turns = count()
        self._commits = Commits(self._writer, self._statements, self._find, patience, clock)
        self._opening = asyncio.Lock()
        self._is_open = False

    def __repr__(self) -> str:
        return f"PostgresStore({mask_urls(self._url)!r}, schema={self._schema!r})"

    async def open(self) -> None:
        async with self._opening:
            if not self._is_open:
                try:
                    await self._prepare()
                except BaseException:
                    self._writer.drop()
                    raise
                self._is_open = True

    async def _prepare(self) -> None:
        deadline = Deadline(self._patience)
        while True:
            try:
                return await self._writer.run(
                    lambda line: postgres_statements.prepare(line, self._schema), deadline.left
                )
            except StoreError as error:
                if not self._writer.was_connected:
                    raise
                await deadline.wait(error)

    async def close(self) -> None:
        async with self._opening:
            await self._commits.finish()
            for line in (self._writer, *self._readers):
                line.drop()
            self._is_open = False

    async def create(self, session: StoredSession) -> StoredSession:
        return await self._insert(session, None)

    async def find(self, session_id: str, *, owner: str = "") -> StoredSession | None:
        row = await self._find(session_id, owner)
        return None if row is None else session_of(row)

    async def take(self, session_id: str, *, owner: str = "", roots: Sequence[str] = ()) -> StoredSession:
        taking = changed_columns(Changes(roots=tuple(roots)))["roots"]
        row = await self._row(session_id, owner, self._statements.take, taking)
        if row is None:
            raise _gone(session_id)
        session = session_of(row)
        self._commits.place(session, row["number"], row["length"])
        return session

    def release(self, session: StoredSession) -> None:
        self._commits.forget(session)

    async def write(self, session: StoredSession, updates: Sequence[bytes] = (), changes: Changes = NOTHING) -> None:
        if not self._is_open:
            await self.open()
        await self._commits.write(session, updates, changes)

    async def amend(self, session_id: str, changes: Changes, *, owner: str = "") -> None:
        columns = changed_columns(changes)
        statement = self._statements.amend(list(columns))
        if await self._row(session_id, owner, statement, *columns.values()) is None:
            raise _gone(session_id)

    async def updates(self, session_id: str, *, owner: str = "", after: int = 0) -> AsyncIterator[list[bytes]]:
        if not storable(session_id, owner):
            return
        place = after
        while page := await self._updates(session_id, owner, place):
            place += len(page)
            yield page

    async def _updates(self, session_id: str, owner: str, after: int) -> list[bytes]:
        values = (*_this(session_id, owner), after, PAGE_OF_UPDATES, PAGE_BYTES)
        return [
            row["update_json"] for row in await self._call(lambda line: line.fetch(self._statements.updates, *values))
        ]

    async def lengths(self, known: Mapping[str, int], *, owner: str = "") -> dict[str, int]:
        ids = [session_id for session_id in known if storable(session_id, owner)]
        if not ids:
            return {}
        values = [key(session_id) for session_id in ids], ids, owner
        rows = await self._call(lambda line: line.fetch(self._statements.lengths, *values))
        return {row["id"]: row["length"] for row in rows}

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
        if not storable(owner, cwd or ""):
            return Page([])
        values: list[Any] = [key(owner), owner] if cwd is None else [key(owner, cwd), owner, cwd]
        if position is not None:
            values += [position.updated, position.number]
        statement = self._statements.page(of_folder=cwd is not None, archived=archived, after=position is not None)
        rows = await self._call(lambda line: line.fetch(statement, *values, size + 1))
        sessions = [session_of(row) for row in rows[:size]]
        if len(rows) <= size:
            return Page(sessions)
        last = rows[size - 1]
        return Page(sessions, Cursor(last["updated"], last["number"], cwd, archived).written())

    async def copy(self, source: str, session: StoredSession) -> StoredSession:
        return await self._insert(session, source)

    async def cut(self, session: StoredSession, length: int) -> None:
        place = await self._commits.find_place(session)
        if place is None:
            raise StoreError("gone", f"session {session.id} was deleted")

        async def cut(line: AsyncpgConnection) -> int:
            async with line.transaction():
                left: int | None = await line.fetchval(self._statements.shorten, place.number, session.hold, length)
                if left is None:
                    raise await self._refusal(line, place.number, session)
                await line.execute(self._statements.cut, place.number, left)
                return left

        place.next = await self._call(cut)

    async def delete(self, session_id: str, *, owner: str = "") -> None:
        row = await self._find(session_id, owner)
        if row is None:
            return

        async def delete(line: AsyncpgConnection) -> None:
            async with line.transaction():
                await line.fetchval(self._statements.lock, row["number"])  # a writer waits, and finds nothing
                for statement in self._statements.delete:
                    await line.execute(statement, row["number"])

        await self._call(delete)

    async def _insert(self, session: StoredSession, source: str | None) -> StoredSession:
        columns = columns_of(session)
        attempts = 0

        async def insert(line: AsyncpgConnection) -> tuple[int, int]:
            nonlocal attempts
            attempts += 1
            async with line.transaction():
                copied, length = await self._copied(line, source, session.owner)
                number = await line.fetchval(self._statements.insert, *columns, session.hold, length)
                if number is None:
                    return await self._inserted_before(line, session, attempts)
                if copied is not None:
                    await line.execute(self._statements.copy_updates, number, copied, length)
                return number, length

        number, length = await self._call(insert)
        self._commits.place(session, number, length)
        return session

    async def _copied(self, line: AsyncpgConnection, source: str | None, owner: str) -> tuple[int | None, int]:
        """The number of the session that is copied, and its length, which stays until the transaction ends."""
        if source is None:
            return None, 0
        found = await line.fetchrow(self._statements.find, *_this(source, owner)) if storable(source, owner) else None
        held = None if found is None else await line.fetchrow(self._statements.copied, found["number"])
        if held is None:
            raise _gone(source)
        return held["number"], held["length"]

    async def _inserted_before(self, line: AsyncpgConnection, session: StoredSession, attempts: int) -> tuple[int, int]:
        """The number and length of a session that exists; raises StoreError unless an earlier attempt made it."""
        row = await line.fetchrow(self._statements.find, *_this(session.id, session.owner))
        if attempts == 1 or row is None or session_of(row) != session:
            raise StoreError("exists", f"session {session.id} already exists")
        return row["number"], row["length"]

    async def _refusal(self, line: AsyncpgConnection, number: int, session: StoredSession) -> StoreError:
        if await line.fetchrow(self._statements.held, [number]) is None:
            return StoreError("gone", f"session {session.id} was deleted")
        return StoreError("taken", f"session {session.id} was opened elsewhere; load it again to continue here")

    async def _find(self, session_id: str, owner: str) -> Row | None:
        return await self._row(session_id, owner, self._statements.find)

    async def _row(self, session_id: str, owner: str, statement: str, *values: Any) -> Row | None:
        """The row that a statement about one session returns; None if there is no such session."""
        if not storable(session_id, owner):
            return None
        return await self._call(lambda line: line.fetchrow(statement, *_this(session_id, owner), *values))

    async def _call(self, work: Work[T]) -> T:
        """Run work that may be repeated, over a free connection if there is one, and return its result."""
        if not self._is_open:
            await self.open()
        deadline = Deadline(self._patience)
        while True:
            turn = next(self._turns)
            line = next((it for it in self._readers if not it.is_busy), self._readers[turn % READERS])
            try:
                return await line.run(work, deadline.left)
            except StoreError as error:
                await deadline.wait(error)


def _this(session_id: str, owner: str) -> tuple[bytes, str, str]:
    """The values that name one session in a statement."""
    return key(session_id), session_id, owner


def _gone(session_id: str) -> StoreError:
    return StoreError("gone", f"session {session_id} does not exist")
