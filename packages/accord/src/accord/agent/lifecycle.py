"""How sessions begin, are found again, and end: `session/new`, `list`, `load`, `resume`, `fork`, `close`, `delete`.

Each of them is a few lines over the store and `Session`. The specification leaves some questions open; our answers:

- A session is open on one connection. Loading or resuming it moves it to the connection that asks. The previous
  connection can save nothing more in it. On the same connection, it is closed first.
- A session that works continues. On the same connection it stays open; from another one of this agent, the client joins
  it and gets it when the work is over (see `SessionJoin`).
- Deleting an open session closes it. Loading a deleted session fails like loading an unknown one.
- A client that only watches a session does not open it: it stays where it is (see `watch_feed`).
- A fork may work in another folder. A turn that is running in its source continues in the source only.
- A client that takes cursors is told one for each message: before those of the user, after those of the agent. An agent
  with `Agent(state=...)` needs `@agent.on_rewind` for it: the record can be cut there, the author's state cannot.

The methods of the list are answered from the store, so a session need not be open. A session that is open on any
connection of this process is closed before it is archived, and notified of its new title. In another process, an
archived session is taken from its holder, whose next write is refused; a new title does not affect the holder.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from accord.agent.record import (
    Record,
    cursor_id,
    cut_places,
    not_found,
    public_store_error,
    public_store_errors,
    title_of,
)
from accord.agent.remote_client import absolute, checked_folders
from accord.agent.replay_tree import session_of
from accord.agent.session import ClientSystemPrompt, Session, system_prompt_of
from accord.agent.session_config import initial_values
from accord.dialects.v1_dialect import options_in_v1
from accord.engine.peer import Context
from accord.errors import DecodeError, RequestError, StoreError
from accord.schema import codec, v1
from accord.schema.base import Json
from accord.schema.capabilities import WATCH
from accord.session import updates
from accord.store import Changes, MemoryStore, Store, StoredSession, now

if TYPE_CHECKING:
    from accord.agent.agent_connection import AgentConnection
    from accord.agent.watch_feed import SessionJoin, SessionWatch, WatchedSessions


class OpenSessions:
    """The open sessions of an agent, on all its connections.

    A client may archive or name a session that another connection has open. Sessions of other processes are not known
    here: the store keeps them apart.
    """

    def __init__(self) -> None:
        self._watched: WatchedSessions | None = None
        """The sessions that clients watch; made when the first does."""
        self._open: dict[tuple[str, str], tuple[Session, Callable[[str], Awaitable[None]], object]] = {}
        self.changing: WeakValueDictionary[tuple[Lifecycle, str], asyncio.Lock] = WeakValueDictionary()
        """The locks of the sessions that a connection opens or closes; here, as an empty dictionary takes a KiB."""

    def entered(self, owner: str, session: Session, end: Callable[[str], Awaitable[None]]) -> None:
        """Note that a connection has opened this session; `end` closes it there."""
        self._open[owner, session.id] = session, end, asyncio.get_running_loop()

    def left(self, owner: str, session: Session) -> None:
        """Note that a connection has closed this session; if another has opened it meanwhile, it stays."""
        found = self._open.get((owner, session.id))
        if found is not None and found[0] is session:
            del self._open[owner, session.id]

    def find(self, owner: str, session_id: str) -> Session | None:
        """The open session with this id; None if it is not open."""
        found = self._open.get((owner, session_id))
        return None if found is None else found[0]

    def working(self, owner: str, session_id: str) -> Session | None:
        """Return the session if it is open in this event loop and working; else None."""
        session, _, loop = self._open.get((owner, session_id), (None, None, None))
        return session if session is not None and session._is_working and loop is asyncio.get_running_loop() else None

    def watching(self, store: Store) -> WatchedSessions:
        """Return the sessions that clients of this event loop watch."""
        if self._watched is None or self._watched.loop is not asyncio.get_running_loop():
            from accord.agent.watch_feed import WatchedSessions

            self._watched = WatchedSessions(store)
        return self._watched

    async def end(self, owner: str, session_id: str) -> None:
        """Close this session if it is open."""
        found = self._open.get((owner, session_id))
        if found is not None:
            _, end, _ = found
            await end(session_id)


Reopening: TypeAlias = v1.LoadSessionRequest | v1.ResumeSessionRequest
"""The requests that open a session again."""

Opening: TypeAlias = v1.NewSessionRequest | v1.ForkSessionRequest | Reopening
"""The requests that open a session."""

Choices: TypeAlias = tuple[v1.SessionModeState | None, list[v1.SessionConfigOption] | None, v1.SessionModelState | None]
"""The choices of the user, for the answer that opens a session: modes, config options and models."""

LONGEST_TITLE = 200
"""Characters of a title that a user gives; the rest is cut."""


class Lifecycle:
    """The sessions of one connection: those that are open on it, and those of its owner in the store."""

    def __init__(self, connection: AgentConnection, owner: str) -> None:
        self.sessions: dict[str, Session] = {}
        """The sessions that are open on this connection."""
        self._connection = connection
        self._authentication = connection.authentication
        self._store = connection.agent.store
        self._owner = owner
        self._open_sessions = connection.agent.open_sessions
        self._archives = connection.offers.has("session_capabilities.archive")
        """Whether clients learn that sessions can be archived."""
        self.watched: dict[str, SessionWatch] | None = None
        """The sessions that this client watches or has joined; None until the first."""

    # Opening sessions

    async def new(self, request: v1.NewSessionRequest, context: Context) -> v1.NewSessionResponse:
        await self._authentication.require()
        with public_store_errors(""):
            stored = await self._store.create(self._blank(request))
            session = await self._begin(stored, request, context)
        return v1.NewSessionResponse(session.id, *_choices(session), meta=session.answer_meta or None)

    async def fork(self, request: v1.ForkSessionRequest, context: Context) -> v1.ForkSessionResponse:
        await self._authentication.require()
        with public_store_errors(request.session_id):
            source = await self._found(request.session_id)
            length = None if request.cursor_id is None else await self._length_at(source, request.cursor_id)
            fields = {name: getattr(source, name) for name in ("title", "settings", "state", "info")}
            copy = msgspec.structs.replace(self._blank(request), **fields)
            session = await self._begin(await self._store.copy(source.id, copy), request, context, length)
        return v1.ForkSessionResponse(session.id, *_choices(session), meta=session.answer_meta or None)

    async def rewind_files(self, params: Json) -> Json:
        """Restore the files that this agent wrote without the client."""
        from accord.agent.workspace import restore_files  # loads what reads and writes files here
        from accord.services.file_service import RewindFilesRequest

        await self._authentication.require()
        try:
            request = codec.convert(params, RewindFilesRequest)
        except DecodeError as error:
            raise RequestError.invalid_params(str(error)) from error
        with public_store_errors(request.session_id):
            source = await self._found(request.session_id)
            length = 0 if request.cursor_id is None else await self._length_at(source, request.cursor_id)
            places, _ = await cut_places(self._store, source)
        later = {message_id for (speaker, message_id), at in places.items() if speaker == "user" and at >= length}
        return codec.plain(await restore_files(self._connection.client.local, later, overwrite=request.overwrite))

    async def _length_at(self, source: StoredSession, cursor: str) -> int:
        """Return how many entries a fork at this cursor keeps; raises RequestError for an unknown cursor."""
        if self._connection.agent.can_rewind:
            places, _ = await cut_places(self._store, source)
            for message, length in places.items():
                if cursor_id(message) == cursor:
                    return length
        # schema, session/fork: an unknown cursor is an error, never the end.
        problem = "the session has no such cursor: fork without cursorId to copy the whole session"
        raise RequestError.invalid_params(problem, path="$.cursorId")

    async def load(self, request: v1.LoadSessionRequest, context: Context) -> v1.LoadSessionResponse:
        choices, meta = await self.reopen(request, context, replays=True)
        return v1.LoadSessionResponse(*choices, meta=meta)

    async def resume(self, request: v1.ResumeSessionRequest, context: Context) -> v1.ResumeSessionResponse:
        choices, meta = await self.reopen(request, context, replays=False)
        return v1.ResumeSessionResponse(*choices, meta=meta)

    async def reopen(
        self, request: Reopening, context: Context, *, replays: bool
    ) -> tuple[Choices, dict[str, Json] | None]:
        """Open a session again, with or without a replay; returns the user's choices and the answer's `_meta`."""
        if asks_to_watch(request):
            options, modes = await self.watch(request, context, replays=replays)
            return (modes, options_in_v1(options) or None, None), None
        async with self._alone(request.session_id):
            if (session := await self._joined(request, context, replays=replays)) is None:
                working = self._working(request)
                session = working or await self._take(request)
                if not replays:
                    await session._tell_usage()
                elif working is not None:
                    await session._record.replay_work(self._connection.client.peer)
                else:
                    await session._record.replay(self._connection.client.peer)
                if working is not None:
                    await session.config._begin_with(initial_values(request.config_options))
                else:
                    await self._opened(session, request)
                await session._tell_cursors(of_all=True)
                context.after_response(session._known)
        return _choices(session), session.answer_meta or None

    def _working(self, request: Reopening) -> Session | None:
        """Return the session if it is open on this connection and working; opening it again continues its work. Else
        None.

        Raises RequestError if the request has other folders, servers or a system prompt, which running work cannot
        take.
        """
        session = self.sessions.get(request.session_id)
        if session is None or not session._is_working:
            return None
        folders = list(checked_folders(request.cwd, request.additional_directories))
        other = [
            name
            for name, is_same in {
                "cwd": folders[0] == session.cwd,
                "additionalDirectories": folders[1:] == list(session.roots.folders[1:]),
                "mcpServers": list(request.mcp_servers or ()) == list(session.mcp_servers),
                "systemPrompt": request.system_prompt is None or self._system_prompt(request) == session.system_prompt,
            }.items()
            if not is_same
        ]
        if other:
            problem = f"the session works with another {other[0]}: cancel its work, then open it again"
            raise RequestError.invalid_params(problem, path=f"$.{other[0]}")
        session._is_announced = False  # its commands are sent again, as after any load
        return session

    async def options(self, request: v1.SessionOptionsRequest) -> v1.SessionOptionsResponse:
        session = await self.draft(request)
        modes, options, _ = _choices(session)
        return v1.SessionOptionsResponse(modes, options)

    async def draft(self, request: v1.SessionOptionsRequest) -> Session:
        """Prepare a session that is never opened, with its options and commands.

        The author prepares it like any other. What that sends is dropped, and what it stores is in memory for a moment.
        """
        await self._authentication.require()
        cwd, *others = checked_folders(request.cwd, request.additional_directories)
        draft = StoredSession(id=uuid.uuid4().hex, cwd=str(cwd), roots=tuple(map(str, others)))
        with public_store_errors(request.session_id or ""):
            if request.session_id is not None:
                found = await self._found(request.session_id)
                _must_match(found, cwd)
                if (opened := self.open_session(found.id)) is not None:
                    return opened
                draft = msgspec.structs.replace(draft, title=found.title, settings=found.settings, state=found.state)
            store = MemoryStore()
            record = Record(store, await store.create(draft), self._connection.client.version)
            session = Session(self._connection, v1.SessionId(draft.id), [cwd, *others], record)
            try:
                await self._connection.agent.opened(session)
                session.config._restore(draft.settings)
            finally:
                await session._close()
        return session

    def _blank(self, request: v1.NewSessionRequest | v1.ForkSessionRequest) -> StoredSession:
        cwd, *others = checked_folders(request.cwd, request.additional_directories)
        self._system_prompt(request)
        initial_values(request.config_options)
        at = now()
        return StoredSession(
            id=uuid.uuid4().hex,
            owner=self._owner,
            cwd=str(cwd),
            roots=tuple(map(str, others)),
            created=at,
            updated=at,
        )

    async def _begin(
        self,
        stored: StoredSession,
        request: v1.NewSessionRequest | v1.ForkSessionRequest,
        context: Context,
        length: int | None = None,
    ) -> Session:
        """Open a session that the client does not know yet, with this much of its record; forget it if that fails."""
        session = self._session(stored, request)
        try:
            if length is not None:
                await self._store.cut(stored, length)
                await self._connection.agent.rewound(session)
            if isinstance(request, v1.ForkSessionRequest):
                await session._tell_usage()
                await session._tell_cursors(of_all=True)
            await self._opened(session, request)
        except BaseException:
            await self._store.delete(stored.id, owner=self._owner)
            raise
        context.after_response(session._known)
        return session

    async def _take(self, request: Reopening) -> Session:
        """Take a session from the store and hold it; its replay can begin."""
        held = await self._hold(request)
        await self._hand_over(held.id)
        session = self._session(held, request)
        session._updates.known()
        return session

    async def _hold(self, request: Reopening) -> StoredSession:
        found = await self._checked(request)
        await self._end(request.session_id)
        # The same page: roots that the request leaves out are never restored.
        _, *others = checked_folders(request.cwd, request.additional_directories)
        return await self._store.take(found.id, owner=self._owner, roots=[str(folder) for folder in others])

    async def _checked(self, request: Reopening) -> StoredSession:
        """Return the stored session that is to be opened; raises RequestError if the request does not fit it."""
        cwd, *_ = checked_folders(request.cwd, request.additional_directories)
        self._system_prompt(request)
        initial_values(request.config_options)
        found = await self._found(request.session_id)
        _must_match(found, cwd)
        return found

    async def _found(self, session_id: str) -> StoredSession:
        found = await self._store.find(session_id, owner=self._owner)
        if found is None:
            raise not_found(session_id)
        return found

    def _session(self, stored: StoredSession, request: Opening) -> Session:
        return Session(
            self._connection,
            v1.SessionId(stored.id),
            checked_folders(stored.cwd, stored.roots),
            Record(self._store, stored, self._connection.client.version),
            mcp_servers=request.mcp_servers,
            meta=request.meta,
            system_prompt=self._system_prompt(request),
        )

    def _system_prompt(self, request: Opening) -> ClientSystemPrompt | None:
        """Return the client's system prompt; raises RequestError for one that the agent does not accept."""
        return system_prompt_of(request.system_prompt, self._connection.agent.system_prompts)

    async def _opened(self, session: Session, request: Opening) -> None:
        try:
            await self._connection.agent.opened(session)
            session.config._restore(session._record.settings)
            await session.config._begin_with(initial_values(request.config_options))
        except BaseException:
            await session._close()
            raise
        session._open()
        self.sessions[session.id] = session
        self._open_sessions.entered(self._owner, session, self._end)

    # Watching

    async def watch(
        self, request: Reopening, context: Context, *, replays: bool
    ) -> tuple[list[updates.SessionConfigOption], v1.SessionModeState | None]:
        """Follow a session that stays with its holder; returns its options and modes, as far as they are known here."""
        from accord.agent.watch_feed import SessionWatch

        async with self._alone(request.session_id):
            found = await self._found(request.session_id)  # in any folder: an observer does not work in one
            if found.id in self.sessions:
                raise RequestError.invalid_request("this connection has the session open: close it, then watch it")
            await self._hand_over(found.id)
            watch = SessionWatch(
                self._open_sessions.watching(self._store), found, self._connection.client, self._watch_is_over
            )
            await self._follow(watch, context, replays=replays)
        opened = self._open_sessions.find(self._owner, found.id)
        return watch.options() if opened is None else (opened.config._options(), opened.config._mode_state())

    async def _follow(self, watch: SessionWatch, context: Context, *, replays: bool) -> None:
        await watch.open(replays=replays)
        self.watched = self.watched or {}
        self.watched[watch.id] = watch
        context.after_response(watch.follow)

    async def dismiss_watches(self) -> None:
        """End the watches of a client that has logged out."""
        if self.watched:
            from accord.agent.watch_feed import LOGGED_OUT

            for watch in list(self.watched.values()):
                await watch.dismiss(LOGGED_OUT)

    def must_not_watch(self, session_id: str) -> None:
        """Raise RequestError if this client only watches the session."""
        if self.watched and session_of(session_id) in self.watched and self.join_of(session_of(session_id)) is None:
            problem = "this client only watches the session: load it to control it"
            raise RequestError.invalid_request(problem, reason="watching")

    def _unwatched(self, session_id: str) -> SessionWatch | None:
        """Take the watch of this session from this client; None if it has none."""
        return None if self.watched is None else self.watched.pop(session_id, None)

    async def _hand_over(self, session_id: str) -> None:
        """End this client's watch of this session, if it has one: it opens the session itself, or watches it again."""
        if (watch := self._unwatched(session_id)) is not None:
            await watch.hand_over()

    def _watch_is_over(self, watch: SessionWatch) -> None:
        if self.watched is not None and self.watched.get(watch.id) is watch:
            del self.watched[watch.id]

    # Joining

    async def _joined(self, request: Reopening, context: Context, *, replays: bool) -> Session | None:
        """Join the session if it works on another connection of this process; else return None."""
        holder = self._open_sessions.working(self._owner, request.session_id)
        if holder is None or holder.id in self.sessions:
            return None
        from accord.agent.watch_feed import SessionJoin

        found = await self._checked(request)
        await self._hand_over(found.id)
        join = SessionJoin(
            self._open_sessions.watching(self._store),
            found,
            self._connection.client,
            self._watch_is_over,
            holder,
            lambda: self._open_sessions.working(self._owner, found.id),
            functools.partial(self._arrive, request),
        )
        await self._follow(join, context, replays=replays)
        if not replays and (usage := await holder._record.usage()) is not None:
            self._connection.client.peer.connection.tell(usage)
        await holder.config._begin_with(initial_values(request.config_options))
        return holder

    async def _arrive(self, request: Reopening) -> None:
        """Open a session that this client has joined: its work on the other connection is over."""
        async with self._alone(request.session_id):
            # they were chosen when the session was joined
            request = msgspec.structs.replace(request, config_options=[])
            session = self._session(await self._hold(request), request)
            session._updates.known()
            await self._opened(session, request)
            self._unwatched(session.id)
            await session._tell_cursors(of_all=True)
            session._known()

    async def arrived(self, session_id: str, context: Context) -> bool:
        """Wait until a session that this client has joined is open here; returns False if the client has cancelled
        that.
        """
        join = self.join_of(session_id)
        return join is None or await join.arrived(context)

    def join_of(self, session_id: str) -> SessionJoin | None:
        """Return the session with this id, if this client has joined it."""
        if not self.watched:
            return None
        from accord.agent.watch_feed import SessionJoin

        watch = self.watched.get(session_id)
        return watch if isinstance(watch, SessionJoin) else None

    # Finding

    def found(self, session_id: str) -> Session:
        """Return the session that this client has opened or joined; raises RequestError if it has done neither."""
        session = self.sessions.get(session_id)
        if session is None and (join := self.join_of(session_id)) is not None:
            session = join.holder
        if session is None:
            self.must_not_watch(session_id)
            raise not_found(session_id)
        return session

    def session(self, session_id: str) -> Session:
        """Return the session for a client that uses it; raises the errors of `found`."""
        session = self.sessions.get(session_id)
        if session is None:
            return self.found(session_id)
        if not session._is_announced:
            # The client uses the id already: its request can arrive before the commands were sent.
            session._known()
        return session

    async def list(self, request: v1.ListSessionsRequest) -> v1.ListSessionsResponse:
        await self._authentication.require()
        cwd = None if request.cwd is None else str(absolute(request.cwd, "$.cwd"))
        with public_store_errors(""):
            archived = archived_of(request.archived, exclude=self._archives)
            page = await self._store.page(owner=self._owner, cwd=cwd, archived=archived, cursor=request.cursor)
        infos = [_info(stored, tells_archived=self._archives) for stored in page.sessions]
        return v1.ListSessionsResponse(infos, page.next)

    def cancel(self, session_id: str) -> None:
        """Cancel the turns of a session, or the subagent with this id if the author allows that."""
        if (session := self.sessions.get(session_of(session_id))) is not None:
            session._cancel(session_id)
        elif (join := self.join_of(session_of(session_id))) is not None:
            join.cancel(session_id)

    # Closing sessions

    async def close(self, request: v1.CloseSessionRequest) -> None:
        async with self._alone(request.session_id):
            if (watch := self._unwatched(request.session_id)) is not None:
                await watch.close()
                return
            if request.session_id not in self.sessions:
                raise not_found(request.session_id)
            await self._end(request.session_id)

    async def delete(self, request: v1.DeleteSessionRequest) -> None:
        async with self._alone(request.session_id):
            self.must_not_watch(request.session_id)
            await self._end(request.session_id)
            await self._store.delete(request.session_id, owner=self._owner)

    async def let_go(self, session: Session) -> None:
        """End a session here that was opened elsewhere or deleted."""
        if self.sessions.get(session.id) is session:
            await self._end(session.id)

    @asynccontextmanager
    async def keeping(self, session: Session) -> AsyncGenerator[None]:
        """Turn a StoreError into the client's answer, and end a session that was opened elsewhere or deleted."""
        try:
            yield
        except StoreError as error:
            if error.reason in ("taken", "gone"):
                await self.let_go(session)
            raise public_store_error(error, session.id) from error

    async def end_all(self) -> None:
        for watched in list(self.watched or ()):
            if (watch := self._unwatched(watched)) is not None:
                await watch.close()
        for session_id in list(self.sessions):
            await self._end(session_id)

    async def _end(self, session_id: str) -> None:
        session = self.sessions.pop(session_id, None)
        if session is not None:
            self._open_sessions.left(self._owner, session)
            await session._close()

    @asynccontextmanager
    async def _alone(self, session_id: str) -> AsyncGenerator[None]:
        """Serialize the requests that change where a session is open."""
        await self._authentication.require()
        changing = self._open_sessions.changing
        lock = changing.get((self, session_id))
        if lock is None:
            lock = changing[self, session_id] = asyncio.Lock()
        async with lock:
            with public_store_errors(session_id):
                yield

    # The list

    async def archive(self, request: v1.ArchiveSessionRequest) -> None:
        async with self._alone(request.session_id):
            self.must_not_watch(request.session_id)
            found = await self._found(request.session_id)
            await self._open_sessions.end(self._owner, found.id)
            self._store.release(await self._store.take(found.id, owner=self._owner, roots=found.roots))
            await self._store.amend(found.id, Changes(archived=True), owner=self._owner)

    async def unarchive(self, request: v1.UnarchiveSessionRequest) -> None:
        async with self._alone(request.session_id):
            self.must_not_watch(request.session_id)
            await self._store.amend(request.session_id, Changes(archived=False), owner=self._owner)

    async def status(self, request: v1.SessionStatusRequest) -> v1.SessionStatusResponse:
        await self._authentication.require()
        if self.open_session(request.session_id) is not None:
            return v1.SessionStatusResponse("open")
        with public_store_errors(request.session_id):
            await self._found(request.session_id)
        return v1.SessionStatusResponse("saved")

    def open_session(self, session_id: str) -> Session | None:
        """Return the session if it is open on any connection of its owner."""
        return self._open_sessions.find(self._owner, session_id)

    async def set_title(self, request: v1.SetSessionTitleRequest) -> v1.SetSessionTitleResponse:
        await self._authentication.require()
        self.must_not_watch(request.session_id)
        title = title_of(request.title, LONGEST_TITLE)
        if title is None:
            raise RequestError.invalid_params("title must hold some text", path="$.title")
        with public_store_errors(request.session_id):
            if not await self._retitled_where_open(request.session_id, title):
                await self._store.amend(request.session_id, Changes(title=title), owner=self._owner)
        return v1.SetSessionTitleResponse(title)

    async def _retitled_where_open(self, session_id: str, title: str) -> bool:
        """Whether the session is open here and has taken this title."""
        session = self.open_session(session_id)
        if session is None:
            return False
        try:
            await session.set_title(title)
        except StoreError as error:
            if error.reason != "taken":
                raise
            return False
        return True


def asks_to_watch(request: Reopening) -> bool:
    """Whether a client requests to open a session only to watch it."""
    return request.meta is not None and request.meta.get(WATCH) is True


def _must_match(stored: StoredSession, cwd: Path) -> None:
    if str(cwd) != stored.cwd:
        # session-setup, Additional Workspace Roots: the request's cwd matches the session's.
        raise RequestError.invalid_params("cwd must be the folder of the session", path="$.cwd", cwd=stored.cwd)


def _choices(session: Session) -> Choices:
    config = session.config
    return config._mode_state(), options_in_v1(config._options()) or None, config._model_state()


def archived_of(wanted: str | None, *, exclude: bool) -> bool | None:
    """Return which sessions a list has: True for the archived ones, False for the others, None for all.

    By default an agent that archives sessions leaves the archived ones out.
    """
    if wanted is None:
        return False if exclude else None
    if wanted not in _ARCHIVED:
        raise RequestError.invalid_params(
            f"archived must be exclude, include or only, got {wanted[:60]!r}", path="$.archived"
        )
    return _ARCHIVED[wanted]


_ARCHIVED = {"exclude": False, "include": None, "only": True}


def _info(stored: StoredSession, *, tells_archived: bool) -> v1.SessionInfo:
    return v1.SessionInfo(
        v1.SessionId(stored.id),
        stored.cwd,
        list(stored.roots),
        stored.title,
        stored.updated.isoformat(),
        stored.archived if tells_archived else None,
        meta=stored.info,
    )
