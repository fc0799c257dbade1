"""`RemoteAgent`: an agent that a client is connected to; what `accord.connect` gives.

It is the face of a `LiveAgent`, which has what the connection does with an agent.

    RemoteSession ──▶ RemoteAgent ──▶ what the loop holds        what the loop holds refers to faces only weakly

A turn that runs refers to its session's face, because its caller may hold nothing but the Reply.

So when `accord.open` was not followed by `close`, and no caller refers to the RemoteAgent or a session of it, the
RemoteAgent is collected, and its finalizer ends the connection with a ResourceWarning. The end of the program does the
same for all that are left: it runs their event loop once more if that is still possible. If it is not, asyncio has
cancelled everything, which kills the agent's processes.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from accord._internal.endpoint import Endpoint
from accord.client.live_agent import LiveAgent
from accord.client.remote_session import RemoteSession
from accord.client.session_table import absolute
from accord.engine.handlers import MessageT, Registrar
from accord.engine.peer import Peer
from accord.errors import AccordError, CapabilityMissing, ConnectionClosed, last_lines
from accord.mistakes import check_text, check_word, shortened, wrong_type
from accord.schema import v1
from accord.schema.base import Json, Notification, Request
from accord.schema.capabilities import WATCH, AgentOffers
from accord.schema.sendable import check_meta, check_sendable

if TYPE_CHECKING:
    from accord.client.suggested_edits import Suggestions
    from accord.mcp.tool_server import ToolServer
    from accord.schema.extension import ExtensionT


ResultT = TypeVar("ResultT")


class RemoteAgent:
    """An agent on the other end of a connection; `accord.connect` gives it.

    async with accord.connect(["gemini", "--acp"]) as remote:
        session = await remote.new_session("/home/me/project")
        print((await session.prompt("What is in here?")).text)
    """

    def __init__(self, live: LiveAgent) -> None:
        self._live = live
        self._end: Callable[[], Awaitable[None]] = live.close
        live.sessions.owner = weakref.ref(self)

    def __repr__(self) -> str:
        info = self.info
        # Without a name of its own, an agent is named by its command, whose arguments may be secret.
        name = self.name.partition(" ")[0] if info is None else f"{info.name} {info.version}".rstrip()
        return f"RemoteAgent({shortened(name)!r}, sessions={len(self.open_sessions)})"

    @property
    def peer(self) -> Peer:
        """The connection, typed: the low level, for what this class does not offer.

        After a restart it is another one.
        """
        return self._live.peer

    # What it is

    @property
    def version(self) -> int:
        """The version of the protocol that the connection speaks: 1 or 2."""
        return self._live.version

    @property
    def info(self) -> v1.Implementation | None:
        """The agent's name, version and title, as it tells them; None if it does not."""
        return self._live.answer.agent_info

    @property
    def name(self) -> str:
        """The agent's name, which is the same next time: what it calls itself, or its command or address."""
        return self._live.name

    @property
    def capabilities(self) -> AgentOffers:
        """What the agent declared, such as `remote.capabilities.prompt.image`."""
        return self._live.capabilities

    @property
    def meta(self) -> dict[str, Json]:
        """The `_meta` of the agent's answer to `initialize`, where agents announce extensions; empty if it had none."""
        return self._live.answer.meta or {}

    @property
    def auth_methods(self) -> list[v1.AuthMethod]:
        """The ways to log in that the agent offers."""
        return self._live.answer.auth_methods

    @property
    def open_sessions(self) -> Mapping[v1.SessionId, RemoteSession]:
        """The sessions that are open here now, by their ids."""
        return self._live.sessions.faces()

    def stderr_tail(self, lines: int = 20) -> list[str]:
        """The last lines that the agent's process wrote to its standard error, the latest one last.

        They are as the agent wrote them: pass them through `accord.printable.printable` before you print them to a
        terminal. The list is empty for an agent that Accord did not start. A restarted agent has a new list.
        """
        return last_lines(self._live.stderr, lines)

    # Logins

    async def login(
        self,
        method: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        meta: dict[str, Json] | None = None,
    ) -> None:
        """Log in by the method with this id, or by the agent's only method.

        A method with environment variables takes them from `env` or from our own environment, and the agent is
        restarted with them. A terminal login runs at our terminal. Both need an agent that is a command. Any other
        method is a request, which has `meta` as its `_meta`. Raises `AccordError` if the method is unknown, a variable
        is missing, or the login fails.
        """
        check_meta("remote.login(meta=...)", meta)
        from accord.client.login_methods import log_in

        await log_in(self._live, self.login_method(method), env or {}, meta)

    def login_method(self, wanted: str | None = None) -> v1.AuthMethod:
        """The way to log in with this id, or the agent's only one; raises `AccordError`, with those that it offers."""
        from accord.client.login_methods import method_of

        return method_of(self.auth_methods, wanted)

    async def logout(self, *, meta: dict[str, Json] | None = None) -> None:
        """Log out; raises `CapabilityMissing` if the agent does not support it. `meta` is the request's `_meta`."""
        check_meta("remote.logout(meta=...)", meta)
        await self.request(v1.LogoutRequest(meta=meta))

    async def auth_status(self, *, meta: dict[str, Json] | None = None) -> v1.AuthStatusResponse:
        """Ask whether the user is logged in, and to which accounts; raises `CapabilityMissing` without support for it.

        `state` is `authenticated`, `unauthenticated`, `not_required`, `unknown` or another word. The agent reports
        changes to a handler of `remote.on(v1.AuthStatusUpdateNotification)`.
        """
        check_meta("remote.auth_status(meta=...)", meta)
        return await self.request(v1.AuthStatusRequest(meta=meta))

    # Sessions

    async def new_session(
        self,
        cwd: str | Path | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer | ToolServer] = (),
        additional_directories: Sequence[str | Path] = (),
        system_prompt: str | v1.SystemPrompt | None = None,
        config: Mapping[str, str | bool] | None = None,
        meta: dict[str, Json] | None = None,
    ) -> RemoteSession:
        """Start a session in the folder `cwd`, by default the current one.

        The program of an MCP server may be a bare name; it is looked up on PATH. `additional_directories` are further
        folders that the agent may work in. `system_prompt` is added to the agent's own, or replaces it: a text is
        added, and a `v1.SystemPrompt` says which. `config` has values of config options, by their ids; the agent
        ignores those that it does not offer, and `state.config` says what it took. `meta` is the request's `_meta`; the
        answer's is `session.meta`. What the agent did not declare raises `CapabilityMissing`.
        """
        sessions = self._live.sessions
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
        meta: dict[str, Json] | None = None,
    ) -> v1.SessionOptionsResponse:
        """Ask for the config options with which `new_session` or, given a `session_id`, `resume` would open a session.

        Nothing is opened. `meta` is the request's `_meta`. Raises `CapabilityMissing` if the agent does not support it.
        """
        check_meta("remote.options(meta=...)", meta)
        setup = self._live.sessions.setup(cwd, (), additional_directories)
        known = None if session_id is None else v1.SessionId(session_id)
        return await self.request(
            v1.SessionOptionsRequest(str(setup.cwd), setup.additional_directories, known, meta=meta)
        )

    async def load(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer | ToolServer] = (),
        additional_directories: Sequence[str | Path] = (),
        system_prompt: str | v1.SystemPrompt | None = None,
        config: Mapping[str, str | bool] | None = None,
        meta: dict[str, Json] | None = None,
    ) -> RemoteSession:
        """Open a session again, with a replay of its past, which is in `state` when this returns.

        `state.history_length` is the number of entries that the replay brought. It is None if an agent of version 2
        did not say that its replay is complete: then the past may be cut off.

        Agents need not keep what `new_session` was given: pass the folders, servers and `system_prompt` again.
        `config` changes config options.
        Raises `CapabilityMissing` if the agent does not support it, and ValueError if the session is open here.
        """
        sessions = self._live.sessions
        return await sessions.reopen(
            v1.LoadSessionRequest, session_id, cwd, mcp_servers, additional_directories, system_prompt, meta, config
        )

    async def watch(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        meta: dict[str, Json] | None = None,
    ) -> RemoteSession:
        """Follow a session that other clients use, as an observer; its past is in `state` when this returns.

        All that happens in the session arrives, also when it runs on another connection, in another process or on
        another host. The agent asks an observer nothing, and refuses its prompts and settings with `PeerError`. If the
        session is deleted or cut, the agent says so, and the session ends here. Agents written with Accord can be
        watched, and any agent behind `accord serve --shared`; raises `CapabilityMissing` for others.
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
        meta: dict[str, Json] | None = None,
    ) -> RemoteSession:
        """Open a session again, without a replay of its past.

        Agents need not keep what `new_session` was given: pass the folders, servers and `system_prompt` again.
        `config` changes config options.
        Raises `CapabilityMissing` if the agent does not support it, and ValueError if the session is open here.
        """
        sessions = self._live.sessions
        return await sessions.reopen(
            v1.ResumeSessionRequest, session_id, cwd, mcp_servers, additional_directories, system_prompt, meta, config
        )

    async def sessions(
        self,
        cwd: str | Path | None = None,
        *,
        archived: Literal["exclude", "include", "only"] | None = None,
        meta: dict[str, Json] | None = None,
    ) -> AsyncIterator[v1.SessionInfo]:
        """Iterate over the sessions that the agent knows, of the folder `cwd` or all; pages are fetched as needed.

        `archived` says what happens to archived sessions: `exclude` them, which is what agents do by themselves,
        `include` them, or list them `only`; it raises `CapabilityMissing` for an agent that archives none. `meta` is
        the `_meta` of each request.
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

    async def delete(self, session_id: str, *, meta: dict[str, Json] | None = None) -> dict[str, Json]:
        """Delete a session for good; raises `CapabilityMissing` if the agent does not support it.

        `meta` is the request's `_meta`; returns that of the answer.
        """
        check_meta("remote.delete(meta=...)", meta)
        key = v1.SessionId(session_id)
        answer = await self.request(v1.DeleteSessionRequest(key, meta=meta))
        await self._live.sessions.deleted(key)
        return answer.meta or {}

    async def archive(self, session_id: str, *, meta: dict[str, Json] | None = None) -> dict[str, Json]:
        """Archive a session: lists leave it out, and an open one is closed.

        `meta` is the request's `_meta`; returns that of the answer. Raises `CapabilityMissing` if the agent does not
        support it.
        """
        check_meta("remote.archive(meta=...)", meta)
        key = v1.SessionId(session_id)
        answer = await self.request(v1.ArchiveSessionRequest(key, meta=meta))
        await self._live.sessions.deleted(key)
        return answer.meta or {}

    async def unarchive(self, session_id: str, *, meta: dict[str, Json] | None = None) -> dict[str, Json]:
        """Take a session out of the archive; it is not opened by that.

        `meta` is the request's `_meta`; returns that of the answer. Raises `CapabilityMissing` if the agent does not
        support it.
        """
        check_meta("remote.unarchive(meta=...)", meta)
        return (await self.request(v1.UnarchiveSessionRequest(v1.SessionId(session_id), meta=meta))).meta or {}

    async def status(self, session_id: str, *, meta: dict[str, Json] | None = None) -> v1.SessionStatusResponse:
        """Ask whether a session is `open` in the agent, on any connection, or only `saved`; it stays as it is.

        `meta` is the request's `_meta`. Raises `CapabilityMissing` if the agent does not support it.
        """
        check_meta("remote.status(meta=...)", meta)
        return await self.request(v1.SessionStatusRequest(v1.SessionId(session_id), meta=meta))

    async def set_title(self, session_id: str, title: str, *, meta: dict[str, Json] | None = None) -> str:
        """Set the title of a session, which need not be open; returns it as the agent stored it.

        `meta` is the request's `_meta`. Raises `CapabilityMissing` if the agent does not support it.
        """
        check_text("remote.set_title()", title)
        check_meta("remote.set_title(meta=...)", meta)
        key = v1.SessionId(session_id)
        stored = (await self.request(v1.SetSessionTitleRequest(key, title, meta=meta))).title
        if (session := self.open_sessions.get(key)) is not None:
            session.state.title = stored
        return stored

    # Next edit suggestions

    def suggestions(
        self, folder: str | Path | None = None, *, repository: v1.NesRepository | None = None
    ) -> Suggestions:
        """Ask the agent for suggestions in a folder, by default the current one: `async with` this.

        The block raises `CapabilityMissing` if the agent makes none. Suggestions are only proposed: connect with
        `unstable=True` to offer the agent more than edits, and counts that need no arithmetic.
        """
        from accord.client.suggested_edits import Suggestions

        return Suggestions(self._live, absolute(folder), repository)

    # Providers

    async def providers(self, *, meta: dict[str, Json] | None = None) -> list[v1.ProviderInfo]:
        """The providers of models that the client may configure."""
        check_meta("remote.providers(meta=...)", meta)
        return await self._live.providers.list(self._live, meta=meta)

    async def set_provider(self, provider_id: str, endpoint: Endpoint, *, meta: dict[str, Json] | None = None) -> None:
        """Set where the models of a provider are: the kind of API, its URL, and the headers that are sent to it.

        It counts for sessions that are opened later, and is set again after a restart of the agent. `meta` is the
        request's `_meta`. Raises ValueError for a kind of API that `providers` did not list.
        """
        if not isinstance(cast("object", endpoint), Endpoint):
            raise wrong_type("remote.set_provider()", "an Endpoint", endpoint)
        check_meta("remote.set_provider(meta=...)", meta)
        await self._live.providers.set(self._live, provider_id, endpoint, meta)

    async def disable_provider(self, provider_id: str, *, meta: dict[str, Json] | None = None) -> None:
        """Forbid the agent to use a provider; raises ValueError for one that `providers` listed as required."""
        check_meta("remote.disable_provider(meta=...)", meta)
        await self._live.providers.disable(self._live, provider_id, meta)

    # The low level

    async def request(
        self,
        request: Request[ResultT],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        idle_timeout: float | None = None,
        force: bool = False,
    ) -> ResultT:
        """Send any request, also one of your own; returns its typed result.

        `timeout` limits the whole wait, `idle_timeout` the time without a message from the agent, both in seconds;
        past one of them `Timeout` is raised. `force` sends a request that the agent did not declare a capability for.
        While the agent is being restarted, the request waits.
        """
        check_sendable("remote.request()", request)
        return await self._live.request(request, timeout=timeout, idle_timeout=idle_timeout, force=force)

    async def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Send any notification; `force` sends one that the agent did not declare a capability for."""
        check_sendable("remote.notify()", notification)
        await self._live.notify(notification, force=force)

    async def request_raw(self, method: str, params: Json = None) -> Json:
        """Send any request in plain JSON values; returns the result as it came."""
        return await self._live.request_raw(method, params)

    async def notify_raw(self, method: str, params: Json = None) -> None:
        """Send any notification in plain JSON values."""
        await self._live.notify_raw(method, params)

    def extension(self, extension: type[ExtensionT]) -> ExtensionT:
        """The calls of this extension that belong to no session; `offer` is what the agent declared of it."""
        return extension(self._live)

    def on(self, message: type[MessageT]) -> Registrar[MessageT]:
        """Handle this message from now on, also after the agent was restarted."""
        return self._live.on(message)

    # The end

    async def closed(self) -> ConnectionClosed:
        """Wait until the connection has ended and no restart of the agent follows; returns how it ended.

        >>> async def watch(remote):
        ...     end = await remote.closed()
        ...     print(end.reason, end.exit_code)
        """
        return await self._live.closed()

    async def close(self) -> None:
        """End the connection, and the agent's process if it has one; does nothing the second time.

        Leaving the `connect` block does it as well; after `accord.open`, call it.
        """
        await self._end()

    def kill(self) -> None:
        """End the agent's process now, without the time that leaving the `connect` block gives it."""
        self._live.kill()


def ended_by(remote: RemoteAgent, end: Callable[[], Awaitable[None]]) -> None:
    """Have `close` call this instead of ending the connection itself."""
    remote._end = end  # pyright: ignore[reportPrivateUsage]


EXIT_WITHIN = 15.0
"""Seconds that the end of the program waits for one connection."""


async def kept_open(block: AbstractAsyncContextManager[RemoteAgent, Any]) -> RemoteAgent:
    """Enter this block; the RemoteAgent's `close`, its finalizer or the end of the program leaves it."""
    remote = await block.__aenter__()
    connection = _UnclosedConnection(block, remote.name)
    finalizer = weakref.finalize(remote, connection.abandon)
    finalizer.atexit = False  # `_end_all` waits for the end, which a finalizer cannot
    ended_by(remote, connection.end)
    return remote


class _UnclosedConnection:
    """A connection that was opened and not closed yet."""

    def __init__(self, block: AbstractAsyncContextManager[RemoteAgent, Any], name: str) -> None:
        self._block = block
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._ending: asyncio.Task[Any] | None = None
        _open.add(self)

    async def end(self) -> None:
        """Leave the block, once."""
        _open.discard(self)
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._block.__aexit__(None, None, None))
        await asyncio.shield(self._ending)

    def abandon(self) -> None:
        """End because no caller refers to the RemoteAgent any more."""
        if self in _open and self._process == os.getpid():
            self._warn()
            with suppress(RuntimeError):  # the loop is closed, and with it the connection
                self._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self.end()))

    def end_at_exit(self) -> None:
        """End because the program ends."""
        if self._process != os.getpid():
            return
        self._warn()
        if self._loop.is_closed():
            return
        ending = asyncio.wait_for(self.end(), EXIT_WITHIN)
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(ending, self._loop).result(EXIT_WITHIN)
        else:
            self._loop.run_until_complete(ending)

    def _warn(self) -> None:
        _open.discard(self)
        warnings.warn(f"{self._name}: call `await remote.close()` after `accord.open`", ResourceWarning, stacklevel=2)


_open: set[_UnclosedConnection] = set()


@atexit.register
def _end_all() -> None:
    for connection in list(_open):
        with suppress(Exception):
            connection.end_at_exit()
