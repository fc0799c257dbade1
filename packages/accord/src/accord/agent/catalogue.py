"""An owner's sessions as entries of a list: `session/archive`, `unarchive`, `status` and `set_title`.

They are answered from the store, so a session need not be open. One that is open, on any connection of this process,
is closed before it is archived, and told of its new title. In another process, an archived session is taken from its
holder, whose next write is refused; a new title leaves the holder alone.
"""

from __future__ import annotations

from accord.agent.lifecycle import Lifecycle
from accord.agent.login import Authentication
from accord.agent.open_session import OpenSession
from accord.agent.open_sessions import OpenSessions
from accord.agent.record import title_of
from accord.agent.store_errors import not_found, telling
from accord.engine.handlers import Handlers
from accord.errors import RequestError, StoreError
from accord.schema import v1
from accord.store.base import Changes, Store

LONGEST_TITLE = 200
"""Characters of a title that a user gives; the rest is cut."""


class Catalogue:
    """The sessions of one owner, as a client looks after them."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        authentication: Authentication,
        store: Store,
        owner: str,
        open_sessions: OpenSessions,
    ) -> None:
        self._lifecycle = lifecycle
        self._authentication = authentication
        self._store = store
        self._owner = owner
        self._open_sessions = open_sessions

    def register(self, handlers: Handlers) -> None:
        handlers.on(v1.ArchiveSessionRequest)(self.archive)
        handlers.on(v1.UnarchiveSessionRequest)(self.unarchive)
        handlers.on(v1.SessionStatusRequest)(self.status)
        handlers.on(v1.SetSessionTitleRequest)(self.set_title)

    async def archive(self, request: v1.ArchiveSessionRequest) -> None:
        async with self._lifecycle.alone(request.session_id):
            self._lifecycle.must_not_watch(request.session_id)
            found = await self._store.find(request.session_id, owner=self._owner)
            if found is None:
                raise not_found(request.session_id)
            await self._open_sessions.end(self._owner, found.id)
            self._store.release(await self._store.take(found.id, owner=self._owner, roots=found.roots))
            await self._store.amend(found.id, Changes(archived=True), owner=self._owner)

    async def unarchive(self, request: v1.UnarchiveSessionRequest) -> None:
        async with self._lifecycle.alone(request.session_id):
            self._lifecycle.must_not_watch(request.session_id)
            await self._store.amend(request.session_id, Changes(archived=False), owner=self._owner)

    async def status(self, request: v1.SessionStatusRequest) -> v1.SessionStatusResponse:
        await self._authentication.require()
        if self.open_session(request.session_id) is not None:
            return v1.SessionStatusResponse("open")
        with telling(request.session_id):
            if await self._store.find(request.session_id, owner=self._owner) is None:
                raise not_found(request.session_id)
        return v1.SessionStatusResponse("saved")

    def open_session(self, session_id: str) -> OpenSession | None:
        """The session, if it is open on any connection of its owner."""
        return self._open_sessions.find(self._owner, session_id)

    async def set_title(self, request: v1.SetSessionTitleRequest) -> v1.SetSessionTitleResponse:
        await self._authentication.require()
        self._lifecycle.must_not_watch(request.session_id)
        title = title_of(request.title, LONGEST_TITLE)
        if title is None:
            raise RequestError.invalid_params("title must hold some text", path="$.title")
        with telling(request.session_id):
            if not await self._told_where_open(request.session_id, title):
                await self._store.amend(request.session_id, Changes(title=title), owner=self._owner)
        return v1.SetSessionTitleResponse(title)

    async def _told_where_open(self, session_id: str, title: str) -> bool:
        """Whether the session is open here, and has taken this title."""
        session = self._open_sessions.find(self._owner, session_id)
        if session is None:
            return False
        try:
            await session.face.set_title(title)
        except StoreError as error:
            if error.reason != "taken":
                raise
            return False
        return True
