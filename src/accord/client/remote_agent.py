"""`RemoteAgent`: an agent that a client is connected with, and the sessions that are open in it.

    session/update ──▶ `_arrived` ──▶ its RemoteSession, or `Early` until there is one
    requests of the agent ──▶ the client's services, which find the session by its id

A session is entered here the moment its answer arrives, before anything that came behind the answer is looked at. So
nothing that an agent says of a session can come too soon.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar, cast

from msgspec import Raw

from accord.capabilities import AgentOffers
from accord.client import login
from accord.client.client import Client
from accord.client.early import Early
from accord.client.handshake import VERSION, open_link
from accord.client.mcp_config import handed_over
from accord.client.remote_session import RemoteSession
from accord.client.supervision import Restart, Supervisor
from accord.client.target import CommandTarget, Target
from accord.engine.handlers import Handlers
from accord.engine.limits import Limits
from accord.engine.peer import Peer
from accord.errors import INVALID_REQUEST, NOT_FOUND, AccordError, PeerError, RequestError
from accord.schema import v1
from accord.schema.base import Json, Notification, Request
from accord.tasks import Tasks
from accord.trace import Observer

ResultT = TypeVar("ResultT")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
Opened: TypeAlias = "v1.NewSessionResponse | v1.LoadSessionResponse | v1.ResumeSessionResponse | v1.ForkSessionResponse"
OpenedT = TypeVar("OpenedT", v1.NewSessionResponse, v1.ForkSessionResponse)

log = logging.getLogger("accord")


class RemoteAgent:
    """An agent on the other end of a connection; what `accord.connect` gives.

    async with accord.connect(["gemini", "--acp"]) as remote:
        session = await remote.new_session("/home/me/project")
        print((await session.prompt("What is in here?")).text)
    """

    def __init__(
        self,
        target: Target,
        client: Client,
        *,
        timeout: float,
        restart: Restart | None = None,
        unstable: bool = False,
        limits: Limits | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.target = target
        self.client = client
        self.limits = limits or Limits()
        self.open_sessions: dict[v1.SessionId, RemoteSession] = {}
        """The sessions that are open here, by their ids."""
        self.agent = v1.InitializeResponse(VERSION)
        """What it said of itself when it was connected."""
        self._required_providers: set[str] = set()
        self._timeout = timeout
        self._unstable = unstable
        self._observers = list(observers)
        self._own = Handlers()
        self._early = Early(self.limits.early)
        self._peer: Peer | None = None
        self._supervisor = Supervisor(self, restart)
        self.tasks = Tasks(asyncio.get_running_loop())

    # Life

    async def open(self) -> None:
        """Start it and shake hands."""
        try:
            await self.open_link()
        except BaseException:
            await self.target.release()
            raise
        self._supervisor.start()

    async def open_link(self) -> None:
        """A new connection in the place of the one before."""
        handlers = self.client.handlers_for(self.session_of)
        handlers.typed.update(self._own.typed)
        handlers.raw.update(self._own.raw)
        handlers.on_arrival(v1.SessionNotification, self._arrived)
        declared = self.client.declare(terminal_login=isinstance(self.target, CommandTarget), unstable=self._unstable)
        self._peer, self.agent = await open_link(
            self.target,
            handlers,
            v1.InitializeRequest(VERSION, declared, self.client.info),
            timeout=self._timeout,
            unstable=self._unstable,
            limits=self.limits,
            observers=self._observers,
        )

    async def close(self) -> None:
        """End the connection, and the agent's process if it is one. Bounded, whatever the agent does."""
        await self._supervisor.stop()
        try:
            await self.peer.close()
        finally:
            await self.sessions_ended()
            await self.tasks.end(self.limits.grace)
            await self.target.release()

    def hurry(self) -> None:
        """End the agent's process now, without the patience of `close`, which still is to follow."""
        if self._peer is not None:
            self.tasks.start(self._peer.connection.transport.close(0.0), "end at once")

    async def sessions_ended(self) -> None:
        """No session of it goes on."""
        while self.open_sessions:
            _, session = self.open_sessions.popitem()
            await session.ended()

    async def restart(self, why: str) -> None:
        """End the agent, start it anew, and take up its sessions where it can."""
        await self._supervisor.restart(why)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def peer(self) -> Peer:
        """The connection, typed: the low level, for what is not said here."""
        if self._peer is None:
            raise RuntimeError("not connected yet: use `async with accord.connect(...) as remote`")
        return self._peer

    # Who it is

    @property
    def info(self) -> v1.Implementation | None:
        """What the agent calls itself."""
        return self.agent.agent_info

    @property
    def name(self) -> str:
        """The agent by a name that is the same next time."""
        return self.info.name if self.info is not None else self.target.name

    @property
    def capabilities(self) -> AgentOffers:
        """What the agent declared: `remote.capabilities.prompt.image`."""
        return AgentOffers(self.agent.agent_capabilities)

    @property
    def auth_methods(self) -> list[v1.AuthMethod]:
        """The ways to log in that the agent offers."""
        return self.agent.auth_methods

    # Logins

    async def login(self, method: str | None = None, *, env: Mapping[str, str] | None = None) -> None:
        """Log in by one of the agent's methods; by its only one if none is named.

        A method with environment variables takes them from `env` or our own environment, and the agent is started anew
        with them. A terminal login runs at our terminal. Both need an agent that is a command.
        """
        await login.log_in(self, login.method_of(self.auth_methods, method), env or {})

    async def logout(self) -> None:
        await self.request(v1.LogoutRequest())

    # Sessions

    async def new_session(
        self,
        cwd: str | Path | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        additional_directories: Sequence[str | Path] = (),
        system_prompt: v1.SystemPrompt | None = None,
    ) -> RemoteSession:
        """Start a session in a folder; in the current one if none is given.

        An MCP server's program may be named as a shell would find it in that folder.
        """
        folder = _absolute(cwd)
        more, servers = self._directories(folder, additional_directories), self._servers(folder, mcp_servers)
        request = v1.NewSessionRequest(str(folder), servers, more, system_prompt)
        return await self._begin(request, folder, more, servers)

    async def load(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        additional_directories: Sequence[str | Path] = (),
    ) -> RemoteSession:
        """Take up a session with a replay of its past, which is folded when this returns."""
        self.peer.capabilities.require("load_session", "session/load")
        session = self._to_take_up(session_id, cwd, mcp_servers, additional_directories)
        asked: Awaitable[v1.LoadSessionResponse] = self.request(session.to_load())
        return await self._take_up(session, asked)

    async def resume(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        additional_directories: Sequence[str | Path] = (),
    ) -> RemoteSession:
        """Take up a session without a replay."""
        self.peer.capabilities.require("session_capabilities.resume", "session/resume")
        session = self._to_take_up(session_id, cwd, mcp_servers, additional_directories)
        asked: Awaitable[v1.ResumeSessionResponse] = self.request(session.to_resume())
        return await self._take_up(session, asked)

    async def fork(self, session: RemoteSession) -> RemoteSession:
        """A copy of a session under its own id, so that two ways can be tried."""
        request = v1.ForkSessionRequest(
            session.id, str(session.cwd), session.additional_directories, session.mcp_servers
        )
        return await self._begin(request, session.cwd, session.additional_directories, session.mcp_servers)

    async def sessions(self, cwd: str | Path | None = None) -> AsyncIterator[v1.SessionInfo]:
        """The sessions that the agent knows, page by page as they are asked for."""
        folder, cursor, seen = None if cwd is None else str(_absolute(cwd)), None, set[str]()
        while True:
            page = await self.request(v1.ListSessionsRequest(folder, cursor))
            for info in page.sessions:
                yield info
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise AccordError("session/list: the agent gave the same cursor twice")
            seen.add(cursor)

    async def close_session(self, session: RemoteSession) -> None:
        """Stop what a session does and free what it holds, where the agent can; it takes nothing more here."""
        if self.capabilities.sessions.close:
            try:
                await self.request(v1.CloseSessionRequest(session.id))
            except PeerError as error:
                if error.code != NOT_FOUND:  # an agent that does not have it has closed it
                    raise
        await self._drop(session)

    async def _drop(self, session: RemoteSession) -> None:
        """It is not open here any more."""
        if self.open_sessions.get(session.id) is session:
            del self.open_sessions[session.id]
        await session.ended()

    def failed(self, session_id: str, error: Exception) -> None:
        """A request for this session was answered so. A session that was taken elsewhere has ended here."""
        session = self.open_sessions.get(v1.SessionId(session_id))
        if session is not None and _was_taken(error):
            session.is_open = False  # at once, as it may be loaded again now
            del self.open_sessions[session.id]
            self.tasks.call(session.ended, f"ending {session.id}, which was taken elsewhere")

    async def delete(self, session_id: str) -> None:
        """Forget a session for good."""
        await self.request(v1.DeleteSessionRequest(v1.SessionId(session_id)))
        if (session := self.open_sessions.pop(v1.SessionId(session_id), None)) is not None:
            await session.ended()

    def session_of(self, session_id: v1.SessionId) -> RemoteSession:
        """The open session with this id; raises RequestError for one that nobody knows."""
        session = self.open_sessions.get(session_id)
        if session is None:
            raise RequestError.not_found("Unknown session", sessionId=session_id)
        return session

    # Providers

    async def providers(self) -> list[v1.ProviderInfo]:
        """The providers of models that the agent lets its client set."""
        listed = (await self.request(v1.ListProvidersRequest())).providers
        self._required_providers = {provider.provider_id for provider in listed if provider.required}
        return listed

    async def set_provider(
        self, provider_id: str, api_type: str, base_url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Say where a provider is reached."""
        request = v1.SetProviderRequest(v1.ProviderId(provider_id), api_type, base_url, dict(headers or {}))
        await self.request(request)

    async def disable_provider(self, provider_id: str) -> None:
        """No longer let the agent use a provider; ValueError for one that it was listed to need."""
        if provider_id in self._required_providers:
            raise ValueError(f"the agent cannot do without the provider {provider_id!r}")
        await self.request(v1.DisableProviderRequest(v1.ProviderId(provider_id)))

    # The low level

    async def request(
        self,
        request: Request[ResultT],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        idle_timeout: float | None = None,
        force: bool = False,
    ) -> ResultT:
        """Send any request; its result, typed. While the agent is being started anew, it waits for that."""
        await self._supervisor.ready()
        try:
            return await self.peer.request(request, timeout=timeout, idle_timeout=idle_timeout, force=force)
        except PeerError as error:
            self.failed(getattr(request, "session_id", ""), error)
            raise

    async def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Send any notification."""
        await self._supervisor.ready()
        await self.peer.notify(notification, force=force)

    async def request_raw(self, method: str, params: Json = None) -> Json:
        """Send any request, in plain JSON values."""
        await self._supervisor.ready()
        return await self.peer.request_raw(method, params)

    def on(self, message: type[Request[Any] | Notification]) -> Callable[[FunctionT], FunctionT]:
        """Handle this message from now on, also when the agent has been started anew."""

        def register(function: FunctionT) -> FunctionT:
            self._own.on(message)(function)
            self.peer.handle(self._own)
            return function

        return register

    # What comes in

    def _arrived(self, notification: v1.SessionNotification, params: bytes | Raw) -> None:
        session = self.open_sessions.get(notification.session_id)
        if session is not None:
            session.received(notification.update, params)
        else:
            self._early.keep(notification.session_id, notification.update, params)

    async def _begin(
        self,
        request: Request[OpenedT],
        cwd: Path,
        directories: Sequence[str],
        mcp_servers: Sequence[v1.McpServer],
    ) -> RemoteSession:
        """Open a session whose id the answer says."""
        await self._supervisor.ready()
        posted = self.peer.post(request)
        begun: asyncio.Future[RemoteSession] = asyncio.get_running_loop().create_future()

        def answered(result: OpenedT | Exception) -> None:
            if begun.done():
                return
            if isinstance(result, Exception):
                begun.set_exception(result)
            else:
                session = RemoteSession(self, result.session_id, cwd, directories, mcp_servers)
                self._enter(session, result)
                begun.set_result(session)

        posted.then(answered)
        try:
            with posted.awaited():
                return await begun
        except asyncio.CancelledError:
            posted.abandon()
            if begun.done() and not begun.cancelled() and begun.exception() is None:
                # It was open already, and now nobody will ever have it.
                session = begun.result()
                self.tasks.call(lambda: self.close_session(session), f"closing {session.id}")
            raise

    def _enter(self, session: RemoteSession, result: Opened) -> None:
        self.open_sessions[session.id] = session
        session.opened(result)
        for update, params in self._early.take(session.id):
            session.received(update, params)

    def _to_take_up(
        self,
        session_id: str,
        cwd: str | Path | None,
        mcp_servers: Sequence[v1.McpServer],
        additional_directories: Sequence[str | Path],
    ) -> RemoteSession:
        """A session whose id is known; what the agent replays has a place before the request is sent."""
        key, folder = v1.SessionId(session_id), _absolute(cwd)
        more, servers = self._directories(folder, additional_directories), self._servers(folder, mcp_servers)
        if key in self.open_sessions:
            raise ValueError(f"the session {session_id} is open already")
        session = self.open_sessions[key] = RemoteSession(self, key, folder, more, servers)
        for update, params in self._early.take(key):
            session.received(update, params)
        return session

    async def _take_up(self, session: RemoteSession, asked: Awaitable[Opened]) -> RemoteSession:
        try:
            session.opened(await asked)
        except BaseException:
            self.open_sessions.pop(session.id, None)
            await session.ended()
            raise
        return session

    def _directories(self, cwd: Path, additional: Sequence[str | Path]) -> list[str]:
        """The folders besides `cwd`, each once; CapabilityMissing where the agent takes none."""
        more = dict.fromkeys(str(_absolute(path)) for path in additional)
        more.pop(str(cwd), None)
        if more:
            self.peer.capabilities.require("session_capabilities.additional_directories", "additional directories")
        return list(more)

    def _servers(self, cwd: Path, servers: Sequence[v1.McpServer]) -> list[v1.McpServer]:
        """The MCP servers as the agent is told of them; CapabilityMissing for one that it cannot reach."""
        for server in servers:
            self.peer.capabilities.require_for(server, f"the MCP server {getattr(server, 'name', '')}")
        return [handed_over(server, cwd) for server in servers]


def _was_taken(error: Exception) -> bool:
    data = error.data if isinstance(error, PeerError) and error.code == INVALID_REQUEST else None
    return isinstance(data, dict) and cast("dict[str, Any]", data).get("reason") == "taken"


def _absolute(path: str | Path | None) -> Path:
    return Path.cwd() if path is None else Path(path).expanduser().absolute()
