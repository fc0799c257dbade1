"""A SQLite file for each owner, to back up, move or delete one user's sessions: `--store owners:///srv/sessions`."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import accord
from accord.store import NOTHING, PAGE_OF_SESSIONS, Changes, Page, StoredSession


def open_store(url: str) -> accord.Store:
    """The plug-in that the entry point names: it gets the URL, and returns the store."""
    parts = urlsplit(url)
    if parts.netloc or not parts.path.strip("/"):
        raise ValueError(f"owners:// takes the absolute path of a folder, such as owners:///srv/sessions, got {url!r}")
    return OwnerStore(Path(unquote(parts.path)))


class OwnerStore(accord.Store):
    """Keeps the sessions of each owner in a file of `folder`. An owner may have any name, so files have digests.

    An id, which agents choose at random, is used once in a file; other stores refuse it for two owners as well.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stores: dict[str, accord.SqliteStore] = {}

    def _of(self, owner: str) -> accord.SqliteStore:
        if owner not in self._stores:
            name = hashlib.sha256(owner.encode()).hexdigest()[:32] if owner else "nobody"
            self._stores[owner] = accord.SqliteStore(self._folder / f"{name}.sqlite3")
        return self._stores[owner]

    async def open(self) -> None:
        """Nothing to do: the file of an owner is opened when the owner comes."""

    async def close(self) -> None:
        stores, self._stores = self._stores, {}
        for store in stores.values():
            await store.close()

    async def create(self, session: StoredSession) -> StoredSession:
        return await self._of(session.owner).create(session)

    async def find(self, session_id: str, *, owner: str = "") -> StoredSession | None:
        return await self._of(owner).find(session_id, owner=owner)

    async def take(self, session_id: str, *, owner: str = "", roots: Sequence[str] = ()) -> StoredSession:
        return await self._of(owner).take(session_id, owner=owner, roots=roots)

    async def write(self, session: StoredSession, updates: Sequence[bytes] = (), changes: Changes = NOTHING) -> None:
        await self._of(session.owner).write(session, updates, changes)

    async def amend(self, session_id: str, changes: Changes, *, owner: str = "") -> None:
        await self._of(owner).amend(session_id, changes, owner=owner)

    def appending(self, session: StoredSession) -> Callable[[bytes], None] | None:
        return self._of(session.owner).appending(session)

    def release(self, session: StoredSession) -> None:
        self._of(session.owner).release(session)

    def updates(self, session_id: str, *, owner: str = "", after: int = 0) -> AsyncIterator[list[bytes]]:
        return self._of(owner).updates(session_id, owner=owner, after=after)

    async def lengths(self, known: Mapping[str, int], *, owner: str = "") -> dict[str, int]:
        return await self._of(owner).lengths(known, owner=owner)

    async def page(
        self,
        *,
        owner: str = "",
        cwd: str | None = None,
        archived: bool | None = None,
        cursor: str | None = None,
        size: int = PAGE_OF_SESSIONS,
    ) -> Page:
        return await self._of(owner).page(owner=owner, cwd=cwd, archived=archived, cursor=cursor, size=size)

    async def copy(self, source: str, session: StoredSession) -> StoredSession:
        return await self._of(session.owner).copy(source, session)

    async def cut(self, session: StoredSession, length: int) -> None:
        await self._of(session.owner).cut(session, length)

    async def delete(self, session_id: str, *, owner: str = "") -> None:
        await self._of(owner).delete(session_id, owner=owner)
