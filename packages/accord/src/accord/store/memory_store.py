"""Sessions in memory: the default, and the model against which other stores are tested."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from time import monotonic

import msgspec

from accord.errors import StoreError
from accord.schema import codec
from accord.store.store import (
    NOTHING,
    PAGE_BYTES,
    PAGE_OF_SESSIONS,
    PAGE_OF_UPDATES,
    Changes,
    Clock,
    Cursor,
    Json,
    Page,
    Store,
    StoredSession,
    microseconds,
    now,
)


class _StoredSession:
    """A session with its updates and its number in the order of creation."""

    __slots__ = ("number", "session", "updated", "updates")

    def __init__(self, number: int, session: StoredSession, updates: Sequence[bytes] = ()) -> None:
        self.number = number
        self.session = session
        self.updated = session.updated
        """The last activity. It may be newer than `session.updated`, so that a write need not copy the session."""
        self.updates = list(updates)

    def touch(self, at: datetime) -> None:
        self.updated = max(at, self.updated)

    def as_it_is(self) -> StoredSession:
        return msgspec.structs.replace(self.session, updated=self.updated)

    @property
    def place(self) -> tuple[int, int]:
        """The position in a list: the latest active first, then the newest."""
        return -microseconds(self.updated), -self.number


_place = attrgetter("place")

LIMIT = 256 * 1024 * 1024
"""Bytes of released sessions that are kept."""

ROOM = 2048
"""Approximate bytes of a session without its updates."""

FRESH = 0.05
"""Seconds for which a stream of updates sets the last activity only once."""


class MemoryStore(Store):
    """Keeps sessions in memory, for as long as the process lives.

        agent = accord.Agent("greeter", store=accord.MemoryStore())

    Sessions that are not open may take `limit` bytes; those that were closed first are dropped first.
    """

    def __init__(self, *, limit: int = LIMIT, clock: Clock = now) -> None:
        self._clock = clock
        self._limit = limit
        self._kept: dict[str, _StoredSession] = {}
        self._released: dict[str, int] = {}
        """Bytes of the released sessions, in the order of their release."""
        self._released_bytes = 0
        self._count = 0
        self._listed: list[_StoredSession] | None = None
        """All sessions in the order of a list; None after a change."""

    def __repr__(self) -> str:
        return f"MemoryStore(sessions={len(self._kept)})"

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def create(self, session: StoredSession) -> StoredSession:
        return self._add(session, ())

    async def find(self, session_id: str, *, owner: str = "") -> StoredSession | None:
        kept = self._of(session_id, owner)
        return None if kept is None else kept.as_it_is()

    async def take(self, session_id: str, *, owner: str = "", roots: Sequence[str] = ()) -> StoredSession:
        kept = self._of(session_id, owner)
        if kept is None:
            raise StoreError("gone", f"session {session_id} does not exist")
        kept.session = msgspec.structs.replace(kept.session, hold=kept.session.hold + 1, roots=tuple(roots))
        self._released_bytes -= self._released.pop(session_id, 0)
        return kept.as_it_is()

    async def write(self, session: StoredSession, updates: Sequence[bytes] = (), changes: Changes = NOTHING) -> None:
        kept = self._held(session)
        if changes != NOTHING:
            kept.session = _detached(changes.apply(kept.session))
        kept.updates += updates
        kept.touch(self._clock())
        self._listed = None

    async def amend(self, session_id: str, changes: Changes, *, owner: str = "") -> None:
        kept = self._of(session_id, owner)
        if kept is None:
            raise StoreError("gone", f"session {session_id} does not exist")
        kept.session = _detached(changes.apply(kept.session))

    def appending(self, session: StoredSession) -> Callable[[bytes], None]:
        kept = self._kept.get(session.id)
        fresh_until = 0.0

        def append(update: bytes) -> None:
            nonlocal kept, fresh_until
            if kept is None or self._kept.get(session.id) is not kept or kept.session.hold != session.hold:
                kept = self._held(session)
            kept.updates.append(update)
            if (at := monotonic()) >= fresh_until:
                fresh_until = at + FRESH
                kept.touch(self._clock())
                self._listed = None

        return append

    def release(self, session: StoredSession) -> None:
        kept = self._of(session.id, session.owner)
        if kept is None or kept.session.hold != session.hold or session.id in self._released:
            return
        self._released[session.id] = size = ROOM + sum(map(len, kept.updates))
        self._released_bytes += size
        while self._released_bytes > self._limit:
            self._forget(next(iter(self._released)))

    async def updates(self, session_id: str, *, owner: str = "", after: int = 0) -> AsyncIterator[list[bytes]]:
        while (kept := self._of(session_id, owner)) is not None and (page := _page(kept.updates, after)):
            after += len(page)
            yield page

    async def lengths(self, known: Mapping[str, int], *, owner: str = "") -> dict[str, int]:
        found = {session_id: self._of(session_id, owner) for session_id in known}
        return {session_id: len(kept.updates) for session_id, kept in found.items() if kept is not None}

    async def page(
        self,
        *,
        owner: str = "",
        cwd: str | None = None,
        archived: bool | None = None,
        cursor: str | None = None,
        size: int = PAGE_OF_SESSIONS,
    ) -> Page:
        if self._listed is None:
            self._listed = sorted(self._kept.values(), key=_place)
        position = None if cursor is None else Cursor.read(cursor, cwd, archived)
        start = 0 if position is None else bisect_right(self._listed, (-position.updated, -position.number), key=_place)
        found: list[_StoredSession] = []
        for kept in self._listed[start:]:
            session = kept.session
            if session.owner == owner and cwd in (None, session.cwd) and archived in (None, session.archived):
                if len(found) == size:
                    last = found[-1]
                    return Page(_sessions(found), Cursor(-last.place[0], last.number, cwd, archived).written())
                found.append(kept)
        return Page(_sessions(found))

    async def copy(self, source: str, session: StoredSession) -> StoredSession:
        kept = self._of(source, session.owner)
        if kept is None:
            raise StoreError("gone", f"session {source} does not exist")
        return self._add(session, kept.updates)

    async def cut(self, session: StoredSession, length: int) -> None:
        del self._held(session).updates[length:]

    async def delete(self, session_id: str, *, owner: str = "") -> None:
        if self._of(session_id, owner) is not None:
            self._forget(session_id)

    def _forget(self, session_id: str) -> None:
        del self._kept[session_id]
        self._released_bytes -= self._released.pop(session_id, 0)
        self._listed = None

    def _held(self, session: StoredSession) -> _StoredSession:
        """The session for its holder; raises StoreError for any other agent."""
        kept = self._kept.get(session.id)
        if kept is None or kept.session.owner != session.owner:
            raise StoreError("gone", f"session {session.id} was deleted")
        if kept.session.hold != session.hold:
            raise StoreError("taken", f"session {session.id} was opened elsewhere; load it again to continue here")
        return kept

    def _of(self, session_id: str, owner: str) -> _StoredSession | None:
        kept = self._kept.get(session_id)
        return kept if kept is not None and kept.session.owner == owner else None

    def _add(self, session: StoredSession, updates: Sequence[bytes]) -> StoredSession:
        if session.id in self._kept:
            raise StoreError("exists", f"session {session.id} already exists")
        self._count += 1
        self._kept[session.id] = _StoredSession(self._count, _detached(session), updates)
        self._listed = None
        return session


def _detached(session: StoredSession) -> StoredSession:
    """The session with copies of its values, as a file would return them."""
    return msgspec.structs.replace(
        session, settings=_copied(session.settings), state=_copied(session.state), info=_copied(session.info)
    )


def _copied(value: Json) -> Json:
    return codec.loads(codec.encode(value))


def _sessions(found: list[_StoredSession]) -> list[StoredSession]:
    return [kept.as_it_is() for kept in found]


def _page(updates: list[bytes], start: int) -> list[bytes]:
    size = 0
    for number, update in enumerate(updates[start : start + PAGE_OF_UPDATES], 1):
        size += len(update)
        if size >= PAGE_BYTES:
            return updates[start : start + number]
    return updates[start : start + PAGE_OF_UPDATES]
