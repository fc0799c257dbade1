"""Commits the writes of one event loop iteration together, in one statement.

    write ─▶ waiting ── end of iteration ──▶ one statement ─▶ each writer continues or is refused
                                                  └─ line lost: the same statement again, and a look at what it did

During a statement, more writes are collected and go together afterwards. A statement names for each session the hold
and the length that its writer knows (its `Place`), so it has an effect once, however often it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from accord.errors import StoreError
from accord.store import NOTHING, Changes, Clock, PendingWrite, StoredSession, microseconds
from accord.store.postgres_connection import Deadline, PostgresConnection
from accord.store.postgres_statements import CHANGING, Row, Statements, bits, changed_columns, transposed

LARGEST = 4 * 1024 * 1024
"""Bytes of updates after which a statement accepts no more writes."""

WRITE_SIZE = 100
"""The size of a write beside its updates."""

MOMENT = 1.0
"""Seconds by which the stored time of the last activity may be behind if only updates are written."""

Key: TypeAlias = "tuple[str, str, int]"
"""A session of one of its holders: id, owner and hold."""


@dataclass(slots=True)
class Place:
    """The position of a session's next update."""

    number: int
    next: int
    """The number of updates that its holder knows to be stored."""
    possible: int | None = None
    """The length after a commit whose outcome is unknown."""
    touched: float = float("-inf")
    """When the time of the last activity was stored, on the event loop's clock."""


@dataclass(slots=True)
class CommitGroup:
    """The writes of one holder in one statement."""

    updates: list[bytes] = field(default_factory=list[bytes])
    columns: dict[str, Any] = field(default_factory=dict[str, Any])
    touches: bool = False

    def add(self, write: PendingWrite) -> None:
        """Add one more write, in order."""
        self.updates += write.updates
        if write.columns is not None:
            self.columns |= write.columns
            self.touches = True


class Commits:
    """The writes of one store: gathered, committed, and settled."""

    def __init__(
        self,
        line: PostgresConnection,
        statements: Statements,
        find: Callable[[str, str], Awaitable[Row | None]],
        patience: float,
        clock: Clock | None,
    ) -> None:
        self._line = line
        self._statements = statements
        self._find = find
        self._patience = patience
        self._clock = clock
        self._places: dict[Key, Place] = {}
        self._waiting: list[PendingWrite] = []
        self._committing: asyncio.Task[None] | None = None

    async def write(self, session: StoredSession, updates: Sequence[bytes], changes: Changes) -> None:
        """Write with the next commit; returns or raises once it is done."""
        columns = None if changes is NOTHING else changed_columns(changes)
        write = PendingWrite(session, updates, columns, asyncio.get_running_loop().create_future())
        self._waiting.append(write)
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit_all(), name="accord store commits")
        await write.done

    async def finish(self) -> None:
        """Wait until all writes are done."""
        if self._committing is not None:
            await asyncio.wait([self._committing])

    def place(self, session: StoredSession, number: int, length: int) -> None:
        """Remember the position of the next update of a session that was just created or taken."""
        self._places[key_of(session)] = Place(number, length)

    async def find_place(self, session: StoredSession) -> Place | None:
        """Return the position of this session's next update; None if it does not exist."""
        return (await self._placed({key_of(session)})).get(key_of(session))

    def forget(self, session: StoredSession) -> None:
        """The holder writes no more."""
        self._places.pop(key_of(session), None)

    async def _commit_all(self) -> None:
        await asyncio.sleep(0)  # other writes of this iteration go with the first one
        try:
            while batch := self._next_batch():
                try:
                    outcomes = await self._commit(batch)
                except StoreError as error:
                    outcomes = dict.fromkeys((key_of(write.session) for write in batch), error)
                for write in batch:
                    write.settle(outcomes[key_of(write.session)])
        finally:
            self._committing = None

    def _next_batch(self) -> list[PendingWrite]:
        batch: list[PendingWrite] = []
        size = taken = 0
        for write in self._waiting:
            if size >= LARGEST:
                break
            taken += 1
            if not write.done.done():  # a write that was cancelled while it waited is dropped
                batch.append(write)
                size += WRITE_SIZE + write.size
        del self._waiting[:taken]
        return batch

    async def _commit(self, batch: list[PendingWrite]) -> dict[Key, StoreError | None]:
        groups: dict[Key, CommitGroup] = {}
        for write in batch:
            groups.setdefault(key_of(write.session), CommitGroup()).add(write)
        places = await self._placed(groups.keys())
        written = {key: group for key, group in groups.items() if key in places}
        deadline = Deadline(self._patience)
        values = self._values(written, places)
        try:
            accepted, found = await self._send(values, [places[key].number for key in written], deadline)
        except StoreError:
            for key, group in written.items():
                if deadline.may_be_done:
                    places[key].possible = places[key].next + len(group.updates)
            raise
        outcomes: dict[Key, StoreError | None] = {key: _gone(key) for key in groups}
        for key, group in written.items():
            place = places[key]
            outcomes[key] = _refusal(key, place, len(group.updates), accepted, found, may_be_done=deadline.may_be_done)
            if outcomes[key] is None:
                place.next += len(group.updates)
                place.possible = None
        return outcomes

    async def _send(
        self, values: list[Any], numbers: list[int], deadline: Deadline
    ) -> tuple[set[tuple[int, int]], dict[int, Row]]:
        """Send the writes; returns the accepted ones, as number and hold; if some were not, also the
        database's values.
        """
        while True:
            try:
                rows = await self._line.run(lambda it: it.fetch(self._statements.append, *values), deadline.left)
                accepted = {(row["number"], row["hold"]) for row in rows}
                if len(accepted) == len(numbers):
                    return accepted, {}
                held = await self._line.run(lambda it: it.fetch(self._statements.held, numbers), deadline.left)
                return accepted, {row["number"]: row for row in held}
            except StoreError as error:
                await deadline.wait(error)

    def _values(self, groups: Mapping[Key, CommitGroup], places: Mapping[Key, Place]) -> list[Any]:
        """The values of the statement: sessions, updates, and changes, each as one array for a column."""
        at = None if self._clock is None else microseconds(self._clock())
        now = asyncio.get_running_loop().time() if at is None else at / 1_000_000
        sessions: list[tuple[Any, ...]] = []
        updates: list[tuple[Any, ...]] = []
        changes: list[tuple[Any, ...]] = []
        for key, group in groups.items():
            place, hold = places[key], key[2]
            sessions.append((place.number, hold, place.next, len(group.updates)))
            updates += [(place.number, hold, position, it) for position, it in enumerate(group.updates, place.next)]
            if group.touches or now - place.touched >= MOMENT:
                place.touched = now
                columns = (group.columns.get(name) for name in CHANGING)
                changes.append((place.number, hold, at, bits(group.columns), *columns))
        return [*transposed(sessions, 4), *transposed(updates, 4), *transposed(changes, 4 + len(CHANGING))]

    async def _placed(self, keys: Any) -> dict[Key, Place]:
        """Return the places of these holders; those of sessions that do not exist are missing."""
        found: dict[Key, Place] = {}
        for key in keys:
            place = self._places.get(key)
            if place is None or place.possible is not None:
                place = await self._looked_up(key, place)
            if place is not None:
                self._places[key] = found[key] = place
        return found

    async def _looked_up(self, key: Key, known: Place | None) -> Place | None:
        row = await self._find(key[0], key[1])
        if row is None:
            return None
        if known is None:
            return Place(row["number"], row["length"])
        if row["length"] == known.possible:
            known.next = row["length"]
        known.possible = None
        return known


def key_of(session: StoredSession) -> Key:
    """Return a session of one of its holders."""
    return session.id, session.owner, session.hold


def _refusal(
    key: Key,
    place: Place,
    count: int,
    accepted: set[tuple[int, int]],
    found: Mapping[int, Row],
    *,
    may_be_done: bool,
) -> StoreError | None:
    """Return why a write was refused; None if it was stored."""
    if (place.number, key[2]) in accepted:
        return None
    row = found.get(place.number)
    if row is None:
        return _gone(key)
    if row["hold"] != key[2]:
        return StoreError("taken", f"session {key[0]} was opened elsewhere; load it again to continue here")
    if may_be_done and row["length"] == place.next + count:
        return None  # an earlier attempt was committed before the line was lost
    return StoreError(
        "failed",
        f"session {key[0]} has {row['length']} updates in the database, but {place.next} were stored: the database "
        "has lost some or another program changed them; load the session again",
    )


def _gone(key: Key) -> StoreError:
    return StoreError("gone", f"session {key[0]} was deleted")
