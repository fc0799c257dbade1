"""The open sessions of one agent: how they begin, are loaded, resumed and end.

    new, fork ─────▶ the answer brings the id ──▶ entered, with the updates that came before the answer
    load, resume ──▶ the id is known ──▶ entered before the request is sent, so that the replay finds it

A new session is registered the moment its answer arrives, before any message after the answer is processed; so no
update or request of the agent arrives too early for it. Updates that come even before the answer wait in
`UnknownSessionUpdates`.

The connection's callbacks refer to the table weakly: see `remote_agent`.
"""

# The private members of an agent and its sessions are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Raw

from accord.client.remote_session import RemoteSession, Reopening, SessionSetup
from accord.client.remote_subagent import RemoteSubagent, Subagents
from accord.engine.lanes import WEIGHT
from accord.errors import INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND, AccordError, PeerError, RequestError
from accord.mistakes import check_path, check_sequence, check_text, wrong_type
from accord.schema import v1
from accord.schema.base import JsonObject, Model, Request, Unknown
from accord.schema.capabilities import WATCH, Capabilities
from accord.schema.sendable import check_meta, check_sendable
from accord.services.service import SessionOf
from accord.session import updates

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent
    from accord.mcp.tool_server import ToolServer


OpenedT = TypeVar("OpenedT", v1.NewSessionResponse, v1.ForkSessionResponse)

log = logging.getLogger("accord")

RESUME_WITHIN = 60.0
"""Seconds that resuming or loading one session may take after the agent was restarted."""


class UnknownSessionUpdates:
    """Updates that came before their session was known, by session."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._updates: dict[updates.SessionId, list[tuple[updates.Update, bytes | Raw, int]]] = {}

    def keep(self, session_id: updates.SessionId, update: updates.Update, params: bytes | Raw) -> None:
        """Keep an update, and drop those of the oldest session while there are too many."""
        size = len(memoryview(params)) + WEIGHT
        self._updates.setdefault(session_id, []).append((update, params, size))
        self.size += size
        while self.size > self._limit:
            oldest = next(iter(self._updates))
            log.warning("dropped %d updates of session %s, which is not open here", len(self.take(oldest)), oldest)

    def take(self, session_id: updates.SessionId) -> list[tuple[updates.Update, bytes | Raw]]:
        """Remove and return the updates of this session, in the order of arrival."""
        kept = self._updates.pop(session_id, [])
        self.size -= sum(size for _, _, size in kept)
        return [(update, params) for update, params, _ in kept]


class Sessions:
    """The table of the open sessions of one agent, by their ids."""

    def __init__(self, remote: RemoteAgent) -> None:
        self.open: dict[v1.SessionId, RemoteSession] = {}
        self.early = UnknownSessionUpdates(remote._limits.early)
        """The updates of sessions and subagents that are not known yet."""
        self.tables: dict[v1.SessionId, Subagents] = {}
        """The table that has each subagent, so that an update finds its subagent at once."""
        self._remote = remote

    def finder(self) -> SessionOf:
        """Return the function with which services find the open session, or the subagent, with an id.

        It raises RequestError for an unknown one. Like `receiver`, it refers to this table weakly.
        """
        this = weakref.ref(self)

        def find(session_id: v1.SessionId) -> RemoteSession | RemoteSubagent:
            table = this()
            found = None if table is None else table.open.get(session_id) or table._subagent(session_id)
            if found is None:
                raise RequestError.not_found("Unknown session", sessionId=session_id)
            return found

        return find

    def receiver(self) -> Callable[[Any, bytes | Raw], None]:
        """The function that the connection calls with each update."""
        this = weakref.ref(self)

        def received(notification: Any, params: bytes | Raw) -> None:
            if (table := this()) is None:
                return
            try:
                session = table.open[notification.session_id]
            except KeyError:
                table._received_elsewhere(notification, params)
                return
            session._received(notification.update, params)
            if notification.meta is not None and notification.meta.get(WATCH) is False:
                table._ended_there(session, "which is watched no more")

        return received

    def _received_elsewhere(self, notification: Any, params: bytes | Raw) -> None:
        """Pass an update to its subagent, or keep it until its session is known."""
        if (subagent := self._subagent(notification.session_id)) is not None:
            subagent._received(notification.update, params)
        else:
            self.early.keep(notification.session_id, notification.update, params)

    def _subagent(self, session_id: v1.SessionId) -> RemoteSubagent | None:
        """The subagent with this id, of any of the open sessions."""
        table = self.tables.get(session_id)
        if table is not None and (known := table.find(session_id)) is not None:
            return known
        found = (session._subagents.find(session_id) for session in self.open.values())
        return next((it for it in found if it is not None), None)

    # Opening sessions

    def setup(
        self,
        cwd: str | Path | None,
        mcp_servers: Sequence[v1.McpServer | ToolServer],
        additional_directories: Sequence[str | Path],
        system_prompt: str | v1.SystemPrompt | None = None,
        meta: JsonObject | None = None,
    ) -> SessionSetup:
        """Return the setup of a session; raises CapabilityMissing for settings that the agent does not support."""
        folder = absolute(cwd)
        if self._remote._target.is_here and folder.exists() and not folder.is_dir():
            raise ValueError(f"cwd must be a folder, got the file {folder}")
        check_sequence("mcp_servers", "descriptions of MCP servers", mcp_servers)
        check_sequence("additional_directories", "paths", additional_directories)
        check_meta("meta", meta)
        setup = SessionSetup(
            folder,
            self._directories(folder, additional_directories),
            self._servers(folder, mcp_servers),
            system_prompt_for(self._remote.peer.capabilities, system_prompt),
            meta,
        )
        return self._with_editor(setup)

    def initial_config(self, config: Mapping[str, str | bool] | None) -> list[v1.InitialSessionConfigOption]:
        """Return the config options of a session to open; raises CapabilityMissing if the agent does not
        support them.
        """
        if config is None:
            return []
        if not isinstance(cast("object", config), Mapping):
            raise wrong_type("config", "values by the ids of config options", config)
        if config:
            self._remote.peer.capabilities.require("session_capabilities.options", "config options of a new session")
        return [_initial_option(v1.SessionConfigId(option), value) for option, value in config.items()]

    def _directories(self, cwd: Path, additional: Sequence[str | Path]) -> list[str]:
        """The folders besides `cwd`, each once."""
        more = dict.fromkeys(str(absolute(path)) for path in additional)
        more.pop(str(cwd), None)
        if more:
            needed = "session_capabilities.additional_directories"
            self._remote.peer.capabilities.require(needed, "additional directories")
        return list(more)

    def _servers(self, cwd: Path, servers: Sequence[v1.McpServer | ToolServer]) -> list[v1.McpServer]:
        """The MCP servers in the form that is sent to the agent."""
        return [self._described(cwd, server) for server in servers]

    def _described(self, cwd: Path, server: v1.McpServer | ToolServer) -> v1.McpServer:
        if not isinstance(server, Model | Unknown):
            return self._remote._lend(server)
        check_sendable("mcp_servers", server)
        self._remote.peer.capabilities.require_for(server, f"the MCP server {getattr(server, 'name', '')}")
        from accord.client.mcp_config import handed_over

        return handed_over(server, cwd)

    def _with_editor(self, setup: SessionSetup) -> SessionSetup:
        """Return the setup with a server of the client's files and terminals, if it lends them that way; a fork gets
        its own.
        """
        kept = [server for server in setup.mcp_servers if setup.editor is None or server is not setup.editor[1]]
        editor = self._remote._editor_server()
        if editor is None:
            return setup
        return setup._replace(mcp_servers=[*kept, editor[1]], editor=editor)

    async def begin(self, request: Request[OpenedT], setup: SessionSetup) -> RemoteSession:
        """Open a session whose id the agent chooses."""
        await self._remote._restarter.ready()
        posted = self._remote._post(request)
        begun: asyncio.Future[RemoteSession] = asyncio.get_running_loop().create_future()

        def answered(result: OpenedT | Exception) -> None:
            if begun.done():
                return
            try:
                if isinstance(result, Exception):
                    self._remote._failed("", result)
                    begun.set_exception(result)
                    return
                session = self._enter(result.session_id, setup)
                session._opened(result)
                self._deliver_early(session)
                begun.set_result(session)
            except Exception as error:
                begun.set_exception(error)

        posted.then(answered)
        try:
            with posted.awaited():
                return await begun
        except asyncio.CancelledError:
            posted.abandon()
            if begun.done() and not begun.cancelled() and begun.exception() is None:
                # The session was opened already, and its caller will never get it.
                session = begun.result()
                self._remote._tasks.call(lambda: self.close(session), f"closing {session.id}")
            raise

    async def fork(
        self,
        session: RemoteSession,
        system_prompt: str | v1.SystemPrompt | None = None,
        meta: JsonObject | None = None,
        cursor: v1.CursorId | None = None,
        config: Mapping[str, str | bool] | None = None,
    ) -> RemoteSession:
        """Copy a session under a new id, up to this cursor or all of it."""
        chosen = system_prompt_for(self._remote.peer.capabilities, system_prompt)
        setup = self._with_editor(session._setup._replace(meta=meta))
        if chosen is not None:
            setup = setup._replace(system_prompt=chosen)
        return await self.begin(
            v1.ForkSessionRequest(
                session.id,
                str(setup.cwd),
                setup.additional_directories,
                setup.mcp_servers,
                setup.system_prompt,
                self.initial_config(config),
                cursor,
                meta=setup.meta,
            ),
            setup,
        )

    async def reopen(
        self,
        kind: Reopening,
        session_id: str,
        cwd: str | Path | None,
        mcp_servers: Sequence[v1.McpServer | ToolServer],
        additional_directories: Sequence[str | Path],
        system_prompt: str | v1.SystemPrompt | None = None,
        meta: JsonObject | None = None,
        config: Mapping[str, str | bool] | None = None,
    ) -> RemoteSession:
        """Open a session whose id is known, by the request of this kind."""
        check_text(f"{kind.__method__.partition('/')[2]}(session_id)", session_id)
        self._remote.peer.capabilities.require_for(kind, kind.__method__)
        setup = self.setup(cwd, mcp_servers, additional_directories, system_prompt, meta)
        initial = self.initial_config(config)
        key = v1.SessionId(session_id)
        if key in self.open:
            raise ValueError(f"session {session_id!r} is already open; close it before it is opened again")
        session = self._enter(key, setup)
        self._deliver_early(session)
        try:
            session._opened(await self._remote._open_session(session._reopening(kind, initial)))
            if kind is v1.LoadSessionRequest:
                session._replayed()
        except BaseException:
            self.open.pop(key, None)
            await session._ended()
            raise
        return session

    def _enter(self, session_id: v1.SessionId, setup: SessionSetup) -> RemoteSession:
        if self._remote.version == 1:
            session = RemoteSession(self._remote, session_id, setup)
        else:
            from accord.client.v2_session import V2Session

            session = V2Session(self._remote, session_id, setup)
        if setup.editor is not None:
            setup.editor[0].belongs_to(session)
        for extension in self._remote._client.extensions:
            if extension.overrides("fold"):
                session.extension(extension)
        self.open[session_id] = session
        return session

    def _deliver_early(self, session: RemoteSession) -> None:
        for update, params in self.early.take(session.id):
            session._received(update, params)

    async def resume_all(self) -> tuple[list[RemoteSession], list[RemoteSession]]:
        """Resume or load every session after the agent was restarted; returns those that continue and those that are
        lost.

        A session is loaded only if the agent cannot resume it, or reports that although it declared the method; the
        replay then replaces the stored state.
        """
        kept: list[RemoteSession] = []
        lost: list[RemoteSession] = []
        for session in list(self.open.values()):
            try:
                await self._resume(session)
            except AccordError as error:
                log.warning("session %s could not be resumed after the restart: %s", session.id, error)
                self.open.pop(session.id, None)
                await session._ended()
                lost.append(session)
            else:
                kept.append(session)
        return kept, lost

    async def _resume(self, session: RemoteSession) -> None:
        offers = self._remote.capabilities.sessions
        watches = (session._setup.meta or {}).get(WATCH) is True  # it would miss what happened meanwhile
        if (offers.resume and not watches) or not offers.load:
            try:
                await self._reopen(session, v1.ResumeSessionRequest)
            except PeerError as error:
                if error.code != METHOD_NOT_FOUND or not offers.load:
                    raise
            else:
                return
        session._forget()
        await self._reopen(session, v1.LoadSessionRequest)
        session._replayed()

    async def _reopen(self, session: RemoteSession, kind: Reopening) -> None:
        request = session._reopening(kind)
        session._opened(await self._remote._open_session(request, timeout=RESUME_WITHIN, restarting=True))

    # Closing sessions

    async def close(self, session: RemoteSession, meta: JsonObject | None = None) -> JsonObject:
        """Close a session, at the agent as well if it can. It ends here even if the agent answers with an error."""
        answer: v1.CloseSessionResponse | None = None
        try:
            if self._remote.capabilities.sessions.close:
                answer = await self._remote.request(v1.CloseSessionRequest(session.id, meta=meta))
        except PeerError as error:
            if error.code != NOT_FOUND:  # an agent that does not know the session has closed it
                raise
        finally:
            if self.open.get(session.id) is session:
                del self.open[session.id]
            await session._ended()
        return {} if answer is None else answer.meta or {}

    async def deleted(self, session_id: v1.SessionId) -> None:
        """End a session here that the agent has deleted."""
        if (session := self.open.pop(session_id, None)) is not None:
            await session._ended()

    def failed(self, session_id: str, error: Exception) -> None:
        """Check the error of a request for this session: if another connection took the session, it ends here."""
        session = self.open.get(v1.SessionId(session_id))
        if session is not None and _was_taken(error):
            self._ended_there(session, "which was taken elsewhere")

    def _ended_there(self, session: RemoteSession, why: str) -> None:
        """End a session here that is no longer open at the agent."""
        session._is_open = False  # at once, because it may be loaded again now
        del self.open[session.id]
        self._remote._tasks.call(session._ended, f"ending {session.id}, {why}")

    def connection_ended(self, error: Exception) -> None:
        """Notify every session that its connection has ended; a restarted agent may resume it."""
        for session in list(self.open.values()):
            session._connection_ended(error)

    async def end_all(self) -> None:
        """End every session here, because the connection has ended for good."""
        while self.open:
            _, session = self.open.popitem()
            await session._ended()


def _was_taken(error: Exception) -> bool:
    # Version 1 has no code for it; version 2 reports that it is not found.
    data = error.data if isinstance(error, PeerError) and error.code in (INVALID_REQUEST, NOT_FOUND) else None
    return isinstance(data, dict) and cast("dict[str, Any]", data).get("reason") == "taken"


def absolute(path: str | Path | None) -> Path:
    """Return this path as an absolute one; the current folder if it is None."""
    if path is not None:
        check_path("cwd", path)
    return Path.cwd() if path is None else Path(path).expanduser().absolute()


APPENDING = "session_capabilities.system_prompt"
OVERRIDING = f"{APPENDING}.mode.override"


def _initial_option(option: v1.SessionConfigId, value: str | bool) -> v1.InitialSessionConfigOption:
    if isinstance(value, bool):
        return v1.InitialSessionConfigBoolean(option, value)
    check_text(f"config[{option!r}]", value)
    return v1.InitialSessionConfigValue(option, v1.SessionConfigValueId(value))


def system_prompt_for(capabilities: Capabilities, given: str | v1.SystemPrompt | None) -> v1.SystemPrompt | None:
    """Return the system prompt to send: a text is appended to the agent's own.

    Raises CapabilityMissing if the agent does not support it, TypeError or ValueError if it is invalid.
    """
    if given is None:
        return None
    prompt = v1.SystemPrompt("append", [v1.TextContent(given)]) if isinstance(given, str) else given
    if not isinstance(cast("object", prompt), v1.SystemPrompt):
        raise wrong_type("system_prompt", "text or a v1.SystemPrompt", prompt)
    check_sendable("system_prompt", prompt)
    if not any(isinstance(block, v1.TextContent) and block.text for block in prompt.content):
        raise ValueError("system_prompt must hold some text, got none")
    if not all(isinstance(block, v1.TextContent) for block in prompt.content):
        raise ValueError("system_prompt must hold only text, got another kind of content")
    needed = OVERRIDING if prompt.mode == "override" else APPENDING
    capabilities.require(needed, f"a system prompt to {prompt.mode}")
    return prompt
