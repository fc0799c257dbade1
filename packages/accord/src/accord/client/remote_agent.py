"""`RemoteAgent`: an agent that a client is connected to; `accord.connect` returns it.

    session/update ──▶ Peer ┄┄▶ table of sessions ──▶ its RemoteSession, or `UnknownSessionUpdates` until there is one
    requests of the agent ──▶ the client's services, which find the session by its id

The RemoteAgent outlives its connection: a restart replaces `peer`, and nothing else. It stores the endpoints of the
agent's models that its caller has set (`Providers`): the protocol forbids an agent to store credentials. They are set
on every new connection before any session is opened there. If that fails, so does the connection: a prompt must not go
to other models than the caller chose.

An agent and its sessions refer to each other, so they live as long as the caller holds one of them. The event loop must
not hold them: the callbacks of the connection, and the task that waits for its end, refer to them weakly (`┄┄▶`). The
loop holds them only for a reason: an open request, a block of `connect`, or a task that reads `updates()`.

So when `accord.open` was not followed by `close`, and nothing refers to the RemoteAgent or a session of it, they are
collected. `__del__` warns, and hands the RemoteAgent back to its loop, which ends the connection. The end of the
program does the same for all that remain: it runs their event loop once more if that is still possible. If it is not,
asyncio has cancelled everything, which kills the agent's processes.
"""

# The private members of an agent and its sessions are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec

from accord._internal.endpoint import Endpoint
from accord._internal.tasks import Tasks, to_the_end
from accord.client.client import ClientDefinition
from accord.client.credentials import Providers, log_in, method_of
from accord.client.handshake import VERSIONS, Offer, open_link
from accord.client.remote_session import RemoteSession
from accord.client.restart import AgentRestarter, Restart
from accord.client.session_table import Sessions, absolute
from accord.engine.connection import Limits
from accord.engine.handlers import Handlers, Interceptors, MessageT, Registrar, in_thread_if_answers
from accord.engine.outgoing_requests import PendingRequest
from accord.engine.peer import Peer
from accord.errors import (
    AccordError,
    CapabilityMissing,
    ConnectionClosed,
    PeerError,
    keep_stderr,
    last_lines,
)
from accord.mistakes import check_text, check_word, shortened, wrong_type
from accord.schema import codec, v1
from accord.schema.base import Json, JsonObject, Notification, Request
from accord.schema.capabilities import WATCH, AgentOffers
from accord.schema.sendable import check_meta, check_sendable
from accord.trace import Observer
from accord.transports import CommandTarget, Target

if TYPE_CHECKING:
    from msgspec import Raw

    from accord.client.lent_tools import EditorServer, Lending
    from accord.client.suggested_edits import Suggestions
    from accord.dialects.v2_requests import V2Agent
    from accord.engine.spans import Spans
    from accord.mcp.tool_server import ToolServer
    from accord.schema.extension import ExtensionT


log = logging.getLogger("accord")

ResultT = TypeVar("ResultT")


class RemoteAgent:
    """An agent on the other end of a connection; `accord.connect` returns it.

    async with accord.connect(["gemini", "--acp"]) as remote:
        session = await remote.new_session("/home/me/project")
        print((await session.prompt("What is in here?")).text)
    """

    def __init__(
        self,
        target: Target,
        client: ClientDefinition,
        *,
        timeout: float,
        versions: Sequence[int] = VERSIONS,
        restart: Restart | None = None,
        unstable: bool = False,
        limits: Limits | None = None,
        observers: Sequence[Observer] = (),
        spans: Spans | None = None,
        providers: Mapping[str, Endpoint] | None = None,
    ) -> None:
        self.peer: Peer
        """The typed connection: the low level, for messages without a method here.

        A restart replaces it.
        """
        self.version: int = 0
        """The version of the protocol that the connection speaks: 1 or 2."""
        self._capabilities = AgentOffers()
        self._target = target
        self._client = client
        self._services = client.services
        self._timeout = timeout
        self._versions = versions
        self._unstable = unstable
        self._limits = limits or Limits()
        self._observers = list(observers)
        self._spans = spans
        self._resources = ExitStack()
        """Closed after the connection, such as the file of a trace."""
        client.handlers.check_versions({1, *versions})
        self._answer = v1.InitializeResponse(1)
        """The agent's answer to `initialize`, in the words of version 1."""
        self._offered_encodings: list[str] = []
        """The position encodings that were offered to the agent."""
        self._translated: V2Agent | None = None
        """Sends the requests of version 1 on a connection of version 2."""
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks(self._loop)
        self._sessions = Sessions(self)
        self._providers = Providers(providers)
        self._handlers = Handlers({1, *versions}, author="@remote")
        self._handlers.extensions = client.extensions
        """The handlers that the caller registered for this agent."""
        self._interceptors = Interceptors()
        """The handlers of single sessions, also after a restart."""
        self._restarter = AgentRestarter(self, restart)
        self._lending: Lending | None = None
        """The MCP servers of this program that the agent may use."""
        self._in_use: list[object] = []
        """Why the loop holds this agent although its caller may not: a block of `connect`, readers of `updates()`."""
        self._closing: asyncio.Task[None] | None = None

    _opened_in: int | None = None
    """The process in which `accord.open` has opened this agent, and which must close it."""

    def __repr__(self) -> str:
        info = self.info
        # Without a name, an agent is shown by its command, whose arguments may be secret.
        name = self.name.partition(" ")[0] if info is None else f"{info.name} {info.version}".rstrip()
        return f"RemoteAgent({shortened(name)!r}, sessions={len(self.open_sessions)})"

    # Identity

    @property
    def info(self) -> v1.Implementation | None:
        """The agent's name, version and title, if it sends them; else None."""
        return self._answer.agent_info

    @property
    def name(self) -> str:
        """The agent's stable name: the one that it reports, or its command or address."""
        info = self._answer.agent_info
        return info.name if info is not None else self._target.name

    @property
    def capabilities(self) -> AgentOffers:
        """The capabilities that the agent declared, such as `remote.capabilities.prompt.image`."""
        return self._capabilities

    @property
    def meta(self) -> dict[str, Json]:
        """The `_meta` of the agent's answer to `initialize`, where agents announce extensions; empty if it had none."""
        return self._answer.meta or {}

    @property
    def auth_methods(self) -> list[v1.AuthMethod]:
        """The logins that the agent offers."""
        return self._answer.auth_methods

    @property
    def open_sessions(self) -> Mapping[v1.SessionId, RemoteSession]:
        """The sessions that are open here, by their ids."""
        return dict(self._sessions.open)

    def stderr_tail(self, lines: int = 20) -> list[str]:
        """The last lines that the agent's process wrote to its standard error, the latest one last.

        They are unchanged: pass them through `accord.printable.printable` before you print them to a terminal. The list
        is empty for an agent that Accord did not start. A restarted agent has a new list.
        """
        return last_lines(self.peer.connection.transport.stderr, lines)

    # Logins

    async def login(
        self, method: str | None = None, *, env: Mapping[str, str] | None = None, meta: JsonObject | None = None
    ) -> JsonObject:
        """Log in by the method with this id, or by the agent's only method.

        A method with environment variables takes them from `env` or from our own environment, and the agent is
        restarted with them. A terminal login runs at our terminal. Both need an agent that is a command. Any other
        method is a request, which has `meta` as its `_meta`. Returns the `_meta` of the answer. Raises `AccordError` if
        the method is unknown, a variable is missing, or the login fails.
        """
        check_meta("remote.login(meta=...)", meta)
        return await log_in(self, self.login_method(method), env or {}, meta)

    def login_method(self, wanted: str | None = None) -> v1.AuthMethod:
        """Return the login with this id, or the agent's only one; raises `AccordError`, with those that it offers."""
        return method_of(self.auth_methods, wanted)

    async def logout(self, *, meta: JsonObject | None = None) -> JsonObject:
        """Log out; raises `CapabilityMissing` if the agent does not support it.

        `meta` is the request's `_meta`, the result that of the answer.
        """
        return (await self._ask("logout", v1.LogoutRequest(meta=meta))).meta or {}

    async def auth_status(self, *, meta: JsonObject | None = None) -> v1.AuthStatusResponse:
        """Ask whether the user is logged in, and to which accounts; raises `CapabilityMissing` if the agent does not
        support it.

        `state` is `authenticated`, `unauthenticated`, `not_required`, `unknown` or another word. The agent reports
        changes to a handler of `remote.on(v1.AuthStatusUpdateNotification)`.
        """
        return await self._ask("auth_status", v1.AuthStatusRequest(meta=meta))

    # Sessions

    async def new_session(
        self,
        cwd: str | Path | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer | ToolServer] = (),
        additional_directories: Sequence[str | Path] = (),
        system_prompt: str | v1.SystemPrompt | None = None,
        config: Mapping[str, str | bool] | None = None,
        meta: JsonObject | None = None,
    ) -> RemoteSession:
        """Start a session in the folder `cwd`, by default the current one.

        The program of an MCP server may be a bare name; it is looked up on PATH. `additional_directories` are further
        folders that the agent may work in. `system_prompt` is added to the agent's own, or replaces it: a text is
        added, and a `v1.SystemPrompt` has a mode. `config` has values of config options, by their ids; the agent
        ignores those that it does not offer, and `state.config` shows the result. `meta` is the request's `_meta`; the
        answer's is `session.meta`. Using a capability that the agent did not declare raises `CapabilityMissing`.
        """
        sessions = self._sessions
        setup = sessions.setup(cwd, mcp_servers, additional_directories, system_prompt, meta)
        request = v1.NewSessionRequest(
            str(setup.cwd),
            setup.mcp_servers,
            setup.additional_directories,
            setup.system_prompt,
            sessions.initial_config(config),
            meta=meta,
        )
        return await sessions.begin(request, setup)

    async def options(
        self,
        cwd: str | Path | None = None,
        *,
        additional_directories: Sequence[str | Path] = (),
        session_id: str | None = None,
        meta: JsonObject | None = None,
    ) -> v1.SessionOptionsResponse:
        """Return the config options with which `new_session` or, given a `session_id`, `resume` would open a session.

        Nothing is opened. `meta` is the request's `_meta`. Raises `CapabilityMissing` if the agent does not support it.
        """
        setup = self._sessions.setup(cwd, (), additional_directories)
        known = None if session_id is None else v1.SessionId(session_id)
        request = v1.SessionOptionsRequest(str(setup.cwd), setup.additional_directories, known, meta=meta)
        return await self._ask("options", request)

    async def load(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer | ToolServer] = (),
        additional_directories: Sequence[str | Path] = (),
        system_prompt: str | v1.SystemPrompt | None = None,
        config: Mapping[str, str | bool] | None = None,
        meta: JsonObject | None = None,
    ) -> RemoteSession:
        """Open a session again, and replay its past, which is in `state` when this returns.

        `state.history_length` is the number of entries in the replay. If it is None, an agent of version 2 has not
        reported the end of its replay, and the past may be cut off.

        Agents need not remember the arguments of `new_session`: pass the folders, servers and `system_prompt` again.
        `config` changes config options. Raises `CapabilityMissing` if the agent does not support it, and ValueError if
        the session is open here.
        """
        sessions = self._sessions
        return await sessions.reopen(
            v1.LoadSessionRequest, session_id, cwd, mcp_servers, additional_directories, system_prompt, meta, config
        )

    async def watch(
        self, session_id: str, cwd: str | Path | None = None, *, meta: JsonObject | None = None
    ) -> RemoteSession:
        """Follow a session that other clients use, as an observer; its past is in `state` when this returns.

        All events of the session arrive, also when it runs on another connection, in another process or on another
        host. The agent asks an observer nothing, and refuses its prompts and settings with `PeerError`. If the session
        is deleted or cut, the agent reports it, and the session ends here. Agents written with Accord can be watched,
        and any agent behind `accord serve --shared`; raises `CapabilityMissing` for others.
        """
        if self.meta.get(WATCH) is not True:
            raise CapabilityMissing(f'_meta["{WATCH}"]', "remote.watch()")
        return await self.load(session_id, cwd, meta={**(meta or {}), WATCH: True})

    async def resume(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer | ToolServer] = (),
        additional_directories: Sequence[str | Path] = (),
        system_prompt: str | v1.SystemPrompt | None = None,
        config: Mapping[str, str | bool] | None = None,
        meta: JsonObject | None = None,
    ) -> RemoteSession:
        """Open a session again, without a replay of its past.

        Agents need not remember the arguments of `new_session`: pass the folders, servers and `system_prompt` again.
        `config` changes config options. Raises `CapabilityMissing` if the agent does not support it, and ValueError if
        the session is open here.
        """
        sessions = self._sessions
        return await sessions.reopen(
            v1.ResumeSessionRequest, session_id, cwd, mcp_servers, additional_directories, system_prompt, meta, config
        )

    async def sessions(
        self,
        cwd: str | Path | None = None,
        *,
        archived: Literal["exclude", "include", "only"] | None = None,
        meta: JsonObject | None = None,
    ) -> AsyncIterator[v1.SessionInfo]:
        """Iterate over the agent's sessions, of the folder `cwd` or all; pages are fetched as needed.

        `archived` is `exclude` (the agents' default), `include`, or `only`; it raises `CapabilityMissing` for an agent
        that cannot archive. `meta` is the `_meta` of each request.
        """
        if archived is not None:
            check_word("archived", archived, ("exclude", "include", "only"))
        check_meta("remote.sessions(meta=...)", meta)
        folder, cursor, seen = None if cwd is None else str(absolute(cwd)), None, set[str]()
        while True:
            page = await self.request(v1.ListSessionsRequest(folder, cursor, archived, meta=meta))
            for info in page.sessions:
                yield info
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise AccordError("session/list: the agent repeated a cursor; its list of sessions would never end")
            seen.add(cursor)

    async def delete(self, session_id: str, *, meta: JsonObject | None = None) -> JsonObject:
        """Delete a session for good; raises `CapabilityMissing` if the agent does not support it.

        `meta` is the request's `_meta`; returns that of the answer.
        """
        key = v1.SessionId(session_id)
        answer = await self._ask("delete", v1.DeleteSessionRequest(key, meta=meta))
        await self._sessions.deleted(key)
        return answer.meta or {}

    async def archive(self, session_id: str, *, meta: JsonObject | None = None) -> JsonObject:
        """Archive a session: lists leave it out, and an open one is closed.

        `meta` is the request's `_meta`; returns that of the answer. Raises `CapabilityMissing` if the agent does not
        support it.
        """
        key = v1.SessionId(session_id)
        answer = await self._ask("archive", v1.ArchiveSessionRequest(key, meta=meta))
        await self._sessions.deleted(key)
        return answer.meta or {}

    async def unarchive(self, session_id: str, *, meta: JsonObject | None = None) -> JsonObject:
        """Take a session out of the archive without opening it.

        `meta` is the request's `_meta`; returns that of the answer. Raises `CapabilityMissing` if the agent does not
        support it.
        """
        request = v1.UnarchiveSessionRequest(v1.SessionId(session_id), meta=meta)
        return (await self._ask("unarchive", request)).meta or {}

    async def status(self, session_id: str, *, meta: JsonObject | None = None) -> v1.SessionStatusResponse:
        """Ask whether a session is `open` in the agent, on any connection, or only `saved`, without changing it.

        `meta` is the request's `_meta`. Raises `CapabilityMissing` if the agent does not support it.
        """
        return await self._ask("status", v1.SessionStatusRequest(v1.SessionId(session_id), meta=meta))

    async def set_title(self, session_id: str, title: str, *, meta: JsonObject | None = None) -> str:
        """Set the title of a session, which need not be open; returns it as the agent stored it.

        `meta` is the request's `_meta`. Raises `CapabilityMissing` if the agent does not support it.
        """
        check_text("remote.set_title()", title)
        key = v1.SessionId(session_id)
        stored = (await self._ask("set_title", v1.SetSessionTitleRequest(key, title, meta=meta))).title
        if (session := self.open_sessions.get(key)) is not None:
            session.state.title = stored
        return stored

    # Next edit suggestions

    def suggestions(
        self,
        folder: str | Path | None = None,
        *,
        repository: v1.NesRepository | None = None,
        meta: JsonObject | None = None,
    ) -> Suggestions:
        """Ask the agent for suggestions in a folder, by default the current one, as a block.

        The block raises `CapabilityMissing` if the agent makes none. Suggestions are only proposed: connect with
        `unstable=True` to offer the agent more than edits, and counts that need no arithmetic.
        """
        from accord.client.suggested_edits import Suggestions

        check_meta("remote.suggestions(meta=...)", meta)
        return Suggestions(self, absolute(folder), repository, meta)

    # Providers

    async def providers(self, *, meta: JsonObject | None = None) -> list[v1.ProviderInfo]:
        """The providers of models that the client may configure."""
        check_meta("remote.providers(meta=...)", meta)
        return await self._providers.list(self, meta=meta)

    async def set_provider(self, provider_id: str, endpoint: Endpoint, *, meta: JsonObject | None = None) -> JsonObject:
        """Set where the models of a provider are: the kind of API, its URL, and the headers that are sent to it.

        It applies to sessions that are opened later, and is set again after a restart of the agent. `meta` is the
        request's `_meta`, the result that of the answer. Raises ValueError for a kind of API that `providers` did not
        list.
        """
        if not isinstance(cast("object", endpoint), Endpoint):
            raise wrong_type("remote.set_provider()", "an Endpoint", endpoint)
        check_meta("remote.set_provider(meta=...)", meta)
        return await self._providers.set(self, provider_id, endpoint, meta)

    async def disable_provider(self, provider_id: str, *, meta: JsonObject | None = None) -> JsonObject:
        """Forbid the agent to use a provider; raises ValueError for one that `providers` listed as required."""
        check_meta("remote.disable_provider(meta=...)", meta)
        return await self._providers.disable(self, provider_id, meta)

    # The low level

    async def _ask(self, name: str, request: Request[ResultT]) -> ResultT:
        """Send the request of the method with this name."""
        check_meta(f"remote.{name}(meta=...)", request.meta)
        return await self.request(request)

    async def request(
        self,
        request: Request[ResultT],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        idle_timeout: float | None = None,
        force: bool = False,
    ) -> ResultT:
        """Send any request, of the protocol or of your own; returns its typed result.

        `timeout` limits the whole wait, `idle_timeout` the time without a message from the agent, both in seconds; past
        one of them `Timeout` is raised. `force` sends a request for which the agent declared no capability. While the
        agent is being restarted, the request waits.
        """
        check_sendable("remote.request()", request)
        await self._restarter.ready()
        peer = self._translated or self.peer
        try:
            return await peer.request(request, timeout=timeout, idle_timeout=idle_timeout, force=force)
        except PeerError as error:
            self._failed(getattr(request, "session_id", ""), error)
            raise

    async def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Send any notification; `force` sends one that the agent did not declare a capability for."""
        check_sendable("remote.notify()", notification)
        await self._restarter.ready()
        await (self._translated or self.peer).notify(notification, force=force)

    async def request_raw(self, method: str, params: Json = None) -> Json:
        """Send any request in plain JSON values; returns the result unchanged."""
        await self._restarter.ready()
        try:
            return await self.peer.request_raw(method, params)
        except PeerError as error:
            self._failed("", error)
            raise

    async def notify_raw(self, method: str, params: Json = None) -> None:
        """Send any notification in plain JSON values."""
        await self._restarter.ready()
        await self.peer.notify_raw(method, params)

    def extension(self, extension: type[ExtensionT]) -> ExtensionT:
        """Return the calls of this extension that belong to no session; `offer` is the agent's declaration of it."""
        return extension(self)

    def on(self, message: type[MessageT]) -> Registrar[MessageT]:
        """Handle this message from now on, also after the agent was restarted."""
        register: Callable[[Callable[..., Any]], object] = cast("Any", self._handlers.on(message))

        def register_now(handler: Callable[..., Any]) -> None:
            register(in_thread_if_answers(issubclass(message, Request), handler, of_client=True))
            self.peer.handle(self._own_handlers(self.version))

        return Registrar(register_now)

    # The end

    async def closed(self) -> ConnectionClosed:
        """Wait until the connection has ended and no restart of the agent follows; returns how it ended.

        >>> async def watch(remote):
        ...     end = await remote.closed()
        ...     print(end.reason, end.exit_code)
        """
        await self._restarter.ended()
        return (await self.peer.connection.closed()).error()

    async def close(self) -> None:
        """End the connection, and the agent's process if it has one; does nothing the second time.

        Leaving the `connect` block does this as well; after `accord.open`, call it.
        """
        self._opened_in = None
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"accord closes {self.name}")
        await to_the_end(self._closing)

    def kill(self) -> None:
        """End the agent's process now, without the grace period of leaving the `connect` block."""
        self._tasks.start(self.peer.connection.transport.close(0.0), "end at once")

    # Its life

    async def _start(self, *, in_block: bool) -> None:
        """Connect. Without a block, the caller must close the agent."""
        try:
            await self._open_link()
        except BaseException:
            with self._resources:
                await self._target.release()
            raise
        if in_block:
            self._in_use.append(self)
        else:
            self._opened_in = os.getpid()
            _opened.add(self)
        self._restarter.start()

    async def _close(self) -> None:
        with self._resources:
            await self._restarter.stop()
            try:
                await self.peer.close()
            finally:
                if self._lending is not None:
                    self._lending.close()
                await self._sessions.end_all()
                await self._tasks.end(self._limits.grace)
                await self._target.release()

    def __del__(self) -> None:
        """Warn about an agent that was not closed, and have its loop close it."""
        if self._warn_if_opened():
            with suppress(RuntimeError):  # the loop is closed, and with it the connection
                self._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self.close()))

    def _warn_if_opened(self) -> bool:
        """Warn if this agent is open without a block; returns whether it is."""
        if self._opened_in != os.getpid():
            return False
        self._opened_in = None
        warnings.warn(f"{self.name}: call `await remote.close()` after `accord.open`", ResourceWarning, stacklevel=2)
        return True

    def _end_at_exit(self) -> None:
        """Close this agent if it is open, because the program ends."""
        if not self._warn_if_opened() or self._loop.is_closed():
            return
        ending = asyncio.wait_for(self.close(), EXIT_WITHIN)
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(ending, self._loop).result(EXIT_WITHIN)
        else:
            self._loop.run_until_complete(ending)

    @contextmanager
    def _used_by(self, reader: object) -> Generator[None]:
        """Make the loop hold this agent while `reader` reads."""
        self._in_use.append(reader)
        try:
            yield
        finally:
            self._in_use.remove(reader)

    # Its connection

    async def _open_link(self) -> None:
        """Connect, and replace the previous connection if there was one."""
        if self._lending is not None:
            self._lending.end_connections()
        declared = self._client.declare(terminal_login=isinstance(self._target, CommandTarget), unstable=self._unstable)
        self._offered_encodings = declared.position_encodings
        # A restarted agent is asked for the version that its sessions were opened in.
        versions = (self.version,) if self.version else self._versions
        self.peer, agreed = await open_link(
            self._target,
            self._handlers_for,
            Offer(versions, self._client.info, declared, self._client.meta),
            timeout=self._timeout,
            unstable=self._unstable,
            limits=self._limits,
            observers=self._observers,
            keep_unknown=self._client.keep_unknown,
            spans=self._spans,
        )
        self.version, self._answer, declared_by_agent = agreed
        self._capabilities = AgentOffers(declared_by_agent, self._answer.agent_capabilities, self._answer.meta)
        self._translated = None
        if self.version == 2:
            from accord.dialects.v2_requests import V2Agent

            self._translated = V2Agent(self.peer, agreed.declared)
            if declared.terminal or declared.fs.read_text_file or declared.fs.write_text_file:
                log.info("%s speaks version 2, in which clients lend no files and no terminals", self.name)
        try:
            await self._providers.establish(self._translated or self.peer, self._timeout)
        except BaseException:
            await self.peer.close()
            raise

    def _receiver(self) -> Callable[[Any, bytes | Raw], None]:
        """Return the receiver of updates: the sessions; before them, the extensions that represent an update in other
        forms.
        """
        received = self._sessions.receiver()
        extensions = [it for it in self._client.extensions if it.overrides("translate")]
        if not extensions:
            return received
        from accord.schema.extension import translated

        def translate(notification: Any, params: bytes | Raw) -> None:
            said = translated(extensions, notification.update)
            if len(said) == 1 and said[0] is notification.update:
                received(notification, params)
                return
            for update in said:
                changed = msgspec.structs.replace(notification, update=update)
                received(changed, codec.encode(changed))

        return translate

    def _said(self, update: Any) -> Sequence[Any]:
        """Return the equivalent updates for this one, as the client's extensions know it."""
        if not self._client.extensions:
            return (update,)
        from accord.schema.extension import translated

        return translated(list(self._client.extensions), update)

    def _handlers_for(self, version: int) -> Handlers:
        """The handlers of a connection that speaks this version."""
        finder = self._sessions.finder()
        lent = self._client.handlers_for(finder) if version == 1 else self._client.handlers_for_v2(finder)
        handlers = self._own_handlers(version).over(lent)
        handlers.interceptors.insert(0, self._interceptors)  # these are converted when they are registered
        if version == 1:
            handlers.on_arrival(v1.SessionNotification, self._receiver())
        else:
            from accord.schema import v2

            handlers.on_arrival(v2.UpdateSessionNotification, self._receiver())
        return handlers

    def _own_handlers(self, version: int) -> Handlers:
        """The handlers that the caller registered for this agent."""
        if version == 1:
            return self._handlers
        from accord.dialects.v1_handlers_on_v2 import handlers_on_v2

        return handlers_on_v2(self._handlers, "client")

    def _lend(self, server: ToolServer) -> v1.McpServer:
        """Lend an MCP server of this program to the agent, and describe it; raises TypeError for anything else."""
        from accord.client.lent_tools import Lending

        if self._lending is None:
            self._lending = Lending(self)
        return self._lending.describe(server)

    def _editor_server(self) -> tuple[EditorServer, v1.McpServer] | None:
        """A server of the client's files and terminals for a new session, and how it is described to the agent."""
        if self.version == 1 or not self._client.lend_as_mcp:
            return None
        from accord.client.lent_tools import EditorServer

        editor = EditorServer(self._client.services)
        server = editor.tool_server()
        try:
            return None if server is None else (editor, self._lend(server))
        except CapabilityMissing as error:
            log.info("the agent gets no files and terminals: %s", error)
            return None

    async def _open_session(
        self,
        request: Request[Any],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        restarting: bool = False,
    ) -> Any:
        """Send a request that opens a known session; the answer is in the version that the session speaks.

        While the agent is `restarting`, nothing else is sent, so no wait is needed.
        """
        if not restarting and self._translated is None:
            return await self.request(request, timeout=timeout)
        if not restarting:
            await self._restarter.ready()
        if self._translated is None:
            return await self.peer.request(request, timeout=timeout)
        return await self._translated.open_session(request, timeout)

    def _post(self, request: Request[Any]) -> PendingRequest[Any]:
        """Send a request now; its answer, which is in the version of the connection, is handled later."""
        return self.peer.post(request) if self._translated is None else self._translated.post(request)

    def _failed(self, session_id: str, error: Exception) -> None:
        """Note the error of a request for this session, and add the agent's output to it."""
        if isinstance(error, PeerError):
            keep_stderr(error, self.peer.connection.transport.stderr)
        self._sessions.failed(session_id, error)

    def _on_in_session(self, session_id: v1.SessionId, message: Any, handler: Callable[..., Any]) -> Callable[[], None]:
        """Handle this message in one session from now on; calling the result removes the handler."""
        handler = in_thread_if_answers(issubclass(message, Request), handler, of_client=True)
        if self.version == 2:
            from accord.dialects.v1_handlers_on_v2 import handler_on_v2

            message, handler = handler_on_v2(message, handler, "client")
        return self._interceptors.of_session(message, session_id, handler)

    def _handle(self, handlers: Handlers) -> None:
        """Handle messages by these handlers from now on, also after a restart, unless the caller handles them."""
        self._handlers = handlers.over(self._handlers)
        self.peer.handle(self._handlers)


EXIT_WITHIN = 15.0
"""Seconds that the end of the program waits for one connection."""

_opened: weakref.WeakSet[RemoteAgent] = weakref.WeakSet()
"""The agents that `accord.open` has opened."""


@atexit.register
def _end_all() -> None:
    for remote in list(_opened):
        with suppress(Exception):
            remote._end_at_exit()
