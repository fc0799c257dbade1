"""What a store is: sessions, and the updates of each in order.

    create ─▶ StoredSession ─▶ write(session, updates, changes): kept once it returns
    take   ─▶ StoredSession     updates(id) ─▶ pages of them, from the first on
    page   ─▶ Page              copy, cut, delete

A store knows nothing of the protocol: an update is a JSON text to it, settings and the author's state are JSON values.

**Who may write.** A session has one writer at a time, and the last one who took it is the one. `create` and `take` hand
out a number, the session's `hold`; a write with an older number is refused (`StoreError`, reason `taken`), in the same
transaction that would have kept it. So two agents, in one process or in two, on one machine or in many, can never mix
their updates, no lock survives its holder's death, and nobody has to wait for one: a session whose agent hangs is
simply taken from it.

A store for another database is a class like `SqliteStore`: the methods below and nothing else. Owners are kept apart
from the start: every question is asked for one owner, and sees nothing of another.
"""

from __future__ import annotations

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Self, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from accord.errors import StoreError

Json: TypeAlias = Any

Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

Clock: TypeAlias = Callable[[], datetime]

PAGE_OF_SESSIONS = 100
PAGE_OF_UPDATES = 256
PAGE_BYTES = 256 * 1024
"""A page of updates ends past this many bytes, so that reading a session of big updates takes little memory too."""


def now() -> datetime:
    return datetime.now(UTC)


class StoredSession(msgspec.Struct, kw_only=True, frozen=True):
    """What a store keeps about a session, besides its updates."""

    id: str
    cwd: str
    owner: str = ""
    roots: tuple[str, ...] = ()
    """Folders besides `cwd`, as they were when the session was last open."""
    title: str | None = None
    created: datetime = msgspec.field(default_factory=now)
    updated: datetime = msgspec.field(default_factory=now)
    """The last activity, which a list is sorted by. Where only updates were written, it may be a second old."""
    settings: dict[str, Json] = {}
    state: Json = None
    """The author's own value."""
    format: int = 1
    """The version of the protocol whose words the updates are."""
    hold: int = 1
    """Rises each time the session is taken; writes need the newest."""


class Changes(msgspec.Struct, kw_only=True, frozen=True):
    """What changes about a session; what is left out stays."""

    title: str | UnsetType | None = UNSET
    roots: tuple[str, ...] | UnsetType = UNSET
    settings: dict[str, Json] | UnsetType = UNSET
    state: Json | UnsetType = UNSET

    def apply(self, session: StoredSession) -> StoredSession:
        changed = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}
        return msgspec.structs.replace(session, **changed)


NOTHING = Changes()


class Page(msgspec.Struct, frozen=True):
    """Some sessions, the latest active first; `next` is the cursor of what follows, None at the end."""

    sessions: list[StoredSession]
    next: str | None = None


class Store(ABC):
    """Remembers an agent's sessions.

        async with accord.SqliteStore("sessions.sqlite3") as store:
            page = await store.page()

    It opens by itself when it is first used; one store serves any number of connections, on one event loop.
    """

    @abstractmethod
    async def open(self) -> None:
        """Get ready; raises StoreError if this cannot be. Opening twice is fine."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of what the store holds, after what is under way. Closing twice is fine."""

    @abstractmethod
    async def create(self, session: StoredSession) -> StoredSession:
        """Keep a new session, held by the caller. StoreError `exists` where its id is in use."""

    @abstractmethod
    async def find(self, session_id: str, *, owner: str = "") -> StoredSession | None:
        """A session as it is now; looking changes nothing."""

    @abstractmethod
    async def take(self, session_id: str, *, owner: str = "", roots: Sequence[str] = ()) -> StoredSession:
        """Hold a session from now on, whoever held it before, with these roots and no others.

        It is no activity. StoreError `gone` where there is none.
        """

    @abstractmethod
    async def write(self, session: StoredSession, updates: Sequence[bytes] = (), changes: Changes = NOTHING) -> None:
        """Append updates and change what is kept beside them, all or nothing; both are kept when this returns.

        Writes are kept in the order in which they were begun. Empty `Changes` only make the last activity exact. Raises
        StoreError: `taken` when somebody else holds the session by now, `gone` when it was deleted.
        """

    def appending(self, session: StoredSession) -> Callable[[bytes], None] | None:  # noqa: ARG002
        """What keeps one update at once, with the errors of `write`; None where keeping means waiting.

        A model's answer is thousands of updates, and where they stay in memory, each would wait for nothing.
        """
        return None

    def release(self, session: StoredSession) -> None:  # noqa: B027  to a store that forgets nothing it is nothing
        """Whoever held the session is done with it, and somebody may take it later. Most stores need not know."""

    @abstractmethod
    def updates(self, session_id: str, *, owner: str = "", after: int = 0) -> AsyncIterator[list[bytes]]:
        """The session's updates in order, a page at a time, behind the first `after` of them."""

    @abstractmethod
    async def page(
        self, *, owner: str = "", cwd: str | None = None, cursor: str | None = None, size: int = PAGE_OF_SESSIONS
    ) -> Page:
        """Some of an owner's sessions, of one folder or of all, behind a page's cursor or from the start.

        StoreError `cursor` for a cursor that no page of these had. A session that becomes active between two pages
        moves to the front, so it is listed at most once, and otherwise nothing is missed.
        """

    @abstractmethod
    async def copy(self, source: str, session: StoredSession) -> StoredSession:
        """Keep a new session, held by the caller, with the updates that `source` of the same owner has now."""

    @abstractmethod
    async def cut(self, session: StoredSession, length: int) -> None:
        """Forget the updates behind the first `length` of them. It is no activity; raises what `write` does."""

    @abstractmethod
    async def delete(self, session_id: str, *, owner: str = "") -> None:
        """Forget a session. Where there is none, that is fine."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """A place in a list of sessions: behind this activity and, of those at that moment, behind this number."""

    updated: Int64
    number: Int64
    cwd: str | None

    def written(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode("ascii").rstrip("=")

    @classmethod
    def read(cls, text: str, cwd: str | None) -> Cursor:
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            cursor = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=Cursor)
        except (UnicodeEncodeError, UnicodeDecodeError, binascii.Error, msgspec.DecodeError):
            raise StoreError("cursor", "this cursor comes from no page of sessions") from None
        if cursor.cwd != cwd:
            raise StoreError("cursor", "this cursor belongs to the list of another folder")
        return cursor


def microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def moment(microseconds: int) -> datetime:
    seconds, rest = divmod(microseconds, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)
