"""The interface of a store, sessions and the ordered updates of each; and `MemoryStore`, which keeps them in memory.

    create ─▶ StoredSession ─▶ write(session, updates, changes): stored once it returns
    take   ─▶ StoredSession     updates(id) ─▶ pages of updates, from the first
    page   ─▶ Page              lengths(ids) ─▶ what has grown              copy, cut, delete

A store does not know the protocol: an update is JSON text, settings and the author's state are JSON values.

**Writers.** A session has one writer at a time: the last one that took it. `create` and `take` return a number, the
session's `hold`. A write with an older number is refused (`StoreError`, reason `taken`) in the same transaction that
would have stored it. So two agents can never mix their updates, be they in one process, in two, or on several machines.
There is no lock that could outlive its holder or block others: if an agent hangs, another takes its session.

A store for another database is a class like `SqliteStore` with the methods below. Owners are separate: every call is
for one owner and sees nothing of the others.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from time import monotonic
from typing import Annotated, Any, Self, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from accord.errors import StoreError
from accord.schema import codec

Json: TypeAlias = Any

Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

Clock: TypeAlias = Callable[[], datetime]

IN_MEMORY = ":memory:"
"""The name of a store in memory, as in SQLite."""

PAGE_OF_SESSIONS = 100
"""Sessions on a page by default."""

PAGE_OF_UPDATES = 256
"""Updates on a page, at most."""

PAGE_BYTES = 256 * 1024
"""Bytes after which a page of updates ends, so that reading large updates takes little memory."""


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


class StoredSession(msgspec.Struct, kw_only=True, frozen=True):
    """A session as a store has it, without its updates."""

    id: str
    cwd: str
    owner: str = ""
    roots: tuple[str, ...] = ()
    """Additional directories, as they were when the session was last open."""
    title: str | None = None
    created: datetime = msgspec.field(default_factory=now)
    updated: datetime = msgspec.field(default_factory=now)
    """The last activity, by which lists are sorted. If only updates were written since, it may be a second behind."""
    settings: dict[str, Json] = {}
    """The current mode and options of the session."""
    state: Json = None
    """The value that the agent's author stores with the session."""
    info: dict[str, Json] | None = None
    """The `_meta` of the session in lists."""
    archived: bool = False
    """Whether lists leave the session out unless archived sessions are requested."""
    format: int = 1
    """The protocol version of the updates."""
    hold: int = 1
    """A number that rises each time the session is taken; writes need the newest."""


class Changes(msgspec.Struct, kw_only=True, frozen=True):
    """Changes to a session; UNSET fields stay."""

    title: str | UnsetType | None = UNSET
    roots: tuple[str, ...] | UnsetType = UNSET
    settings: dict[str, Json] | UnsetType = UNSET
    state: Json | UnsetType = UNSET
    info: dict[str, Json] | UnsetType | None = UNSET
    archived: bool | UnsetType = UNSET

    def apply(self, session: StoredSession) -> StoredSession:
        """The session with these changes."""
        changed = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}
        return msgspec.structs.replace(session, **changed)


NOTHING = Changes()
"""The default of `Store.write`: updates alone, which make the last activity exact only to a second."""


class Page(msgspec.Struct, frozen=True):
    """A page of sessions, the latest active first. `next` is the cursor of the next page; None on the last one."""

    sessions: list[StoredSession]
    next: str | None = None


class Store(ABC):
    """Stores an agent's sessions.

        async with accord.SqliteStore("sessions.sqlite3") as store:
            page = await store.page()

    A store opens itself when it is first used. One store serves any number of connections on one event loop.
    """

    @abstractmethod
    async def open(self) -> None:
        """Open the store; raises StoreError if that fails. Opening twice is fine."""

    @abstractmethod
    async def close(self) -> None:
        """Close the store after the running operations have ended. Closing twice is fine."""

    @abstractmethod
    async def create(self, session: StoredSession) -> StoredSession:
        """Store a new session, held by the caller. Raises StoreError `exists` if its id is in use."""

    @abstractmethod
    async def find(self, session_id: str, *, owner: str = "") -> StoredSession | None:
        """Return a session, or None; its holder stays the same."""

    @abstractmethod
    async def take(self, session_id: str, *, owner: str = "", roots: Sequence[str] = ()) -> StoredSession:
        """Become the holder of a session, instead of the previous one, and set its roots.

        This does not count as activity. Raises StoreError `gone` if there is no such session.
        """

    @abstractmethod
    async def write(self, session: StoredSession, updates: Sequence[bytes] = (), changes: Changes = NOTHING) -> None:
        """Append updates and apply changes in one transaction; both are stored when this returns.

        Writes are stored in the order in which they began. Empty `Changes` only make the last activity exact. Raises
        StoreError: `taken` if another agent holds the session by now, `gone` if the session was deleted.
        """

    @abstractmethod
    async def amend(self, session_id: str, changes: Changes, *, owner: str = "") -> None:
        """Apply changes to a session; its holder stays the same, and may continue writing.

        This does not count as activity. Raises StoreError `gone` if there is no such session.
        """

    def appending(self, session: StoredSession) -> Callable[[bytes], None] | None:  # noqa: ARG002
        """Return a function that stores one update without waiting, with the errors of `write`; None if storing must
        wait.

        A model's answer is thousands of updates. A store in memory has nothing to wait for, so this saves time.
        """
        return None

    def release(self, session: StoredSession) -> None:  # noqa: B027  (most stores need not know)
        """The holder is done with the session. Another agent may take it later."""

    @abstractmethod
    def updates(self, session_id: str, *, owner: str = "", after: int = 0) -> AsyncIterator[list[bytes]]:
        """The session's updates in order, in pages, after the first `after` of them."""

    async def lengths(self, known: Mapping[str, int], *, owner: str = "") -> dict[str, int]:
        """Return how many updates each of these sessions has; sessions that do not exist are left out.

        `known` are the lengths that the caller has seen, by the ids of the sessions. Agents call this four times a
        second for all sessions that are watched, so a store should answer with one statement. This one reads the
        updates after the known ones, so that a store need not have the method.
        """
        found: dict[str, int] = {}
        for session_id, length in known.items():
            if await self.find(session_id, owner=owner) is None:
                continue
            grown = await _length(self, session_id, owner, after=max(0, length - 1))
            found[session_id] = grown if grown >= length else await _length(self, session_id, owner, after=0)
        return found

    @abstractmethod
    async def page(
        self,
        *,
        owner: str = "",
        cwd: str | None = None,
        archived: bool | None = None,
        cursor: str | None = None,
        size: int = PAGE_OF_SESSIONS,
    ) -> Page:
        """Return a page of an owner's sessions, of the folder `cwd` or of all, after `cursor` or from the start.

        `archived` is True for a list of archived sessions, False for a list of the others, None for both. Raises
        StoreError `cursor` for a cursor that does not belong to this list. A session that becomes active between two
        pages moves to the front: it is listed at most once, and no other session is missed.
        """

    @abstractmethod
    async def copy(self, source: str, session: StoredSession) -> StoredSession:
        """Store a new session, held by the caller, with the current updates of `source`, which has the same owner."""

    @abstractmethod
    async def cut(self, session: StoredSession, length: int) -> None:
        """Delete the updates after the first `length` of them; raises the errors of `write`.

        This does not count as activity.
        """

    @abstractmethod
    async def delete(self, session_id: str, *, owner: str = "") -> None:
        """Delete a session. Deleting one that does not exist is fine."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _length(store: Store, session_id: str, owner: str, *, after: int) -> int:
    """Return how many updates a session has; `after` if it has fewer than that."""
    return after + sum([len(page) async for page in store.updates(session_id, owner=owner, after=after)])


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """A position in a list of sessions: after this time of activity and, within that moment, after this number."""

    updated: Int64
    number: Int64
    cwd: str | None
    archived: bool | None = None

    def written(self) -> str:
        """The cursor as text."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode("ascii").rstrip("=")

    @classmethod
    def read(cls, text: str, cwd: str | None, archived: bool | None = None) -> Cursor:
        """Parse a cursor; raises StoreError `cursor` if it is malformed or belongs to another list."""
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            cursor = _read_cursor(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (UnicodeEncodeError, UnicodeDecodeError, binascii.Error, msgspec.DecodeError):
            raise StoreError("cursor", "invalid cursor; use the one of the previous page, or none") from None
        if cursor.cwd != cwd:
            raise StoreError("cursor", "cursor belongs to a list with another cwd; start again without a cursor")
        if cursor.archived != archived:
            raise StoreError("cursor", "cursor belongs to a list with another 'archived'; start again without a cursor")
        return cursor


def microseconds(moment: datetime) -> int:
    """A time as microseconds since 1970."""
    return round(moment.timestamp() * 1_000_000)


def moment(microseconds: int) -> datetime:
    """The time that `microseconds` wrote."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)


# Made at import: msgspec's first use of a class is not safe in two threads.
_read_cursor = msgspec.json.Decoder(Cursor).decode


class PendingWrite(msgspec.Struct, eq=False):
    """One write to a database that waits for its commit."""

    session: StoredSession
    updates: Sequence[bytes]
    columns: dict[str, Any] | None
    """The columns that change; None for updates alone, with which the time of the last activity need not be exact."""
    done: asyncio.Future[None]

    @property
    def size(self) -> int:
        """Bytes of the updates."""
        return sum(map(len, self.updates))

    def settle(self, error: StoreError | None) -> None:
        """Report that the write is stored, or was refused, unless it was cancelled."""
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


# Sessions in memory: the default, and the model against which other stores are tested.


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
        self._by_id: dict[str, _StoredSession] = {}
        self._released: dict[str, int] = {}
        """Bytes of the released sessions, in the order of their release."""
        self._released_bytes = 0
        self._count = 0
        self._listed: list[_StoredSession] | None = None
        """All sessions in the order of a list; None after a change."""

    def __repr__(self) -> str:
        return f"MemoryStore(sessions={len(self._by_id)})"

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
        kept = self._by_id.get(session.id)
        fresh_until = 0.0

        def append(update: bytes) -> None:
            nonlocal kept, fresh_until
            if kept is None or self._by_id.get(session.id) is not kept or kept.session.hold != session.hold:
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
            self._listed = sorted(self._by_id.values(), key=_place)
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
        del self._by_id[session_id]
        self._released_bytes -= self._released.pop(session_id, 0)
        self._listed = None

    def _held(self, session: StoredSession) -> _StoredSession:
        """Return the session for its holder; raises StoreError for any other agent."""
        kept = self._by_id.get(session.id)
        if kept is None or kept.session.owner != session.owner:
            raise StoreError("gone", f"session {session.id} was deleted")
        if kept.session.hold != session.hold:
            raise StoreError("taken", f"session {session.id} was opened elsewhere; load it again to continue here")
        return kept

    def _of(self, session_id: str, owner: str) -> _StoredSession | None:
        kept = self._by_id.get(session_id)
        return kept if kept is not None and kept.session.owner == owner else None

    def _add(self, session: StoredSession, updates: Sequence[bytes]) -> StoredSession:
        if session.id in self._by_id:
            raise StoreError("exists", f"session {session.id} already exists")
        self._count += 1
        self._by_id[session.id] = _StoredSession(self._count, _detached(session), updates)
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
