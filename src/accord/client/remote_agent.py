"""`RemoteAgent`: an agent that a client is connected to; what `accord.connect` gives.

It is the face of a `LiveAgent`, which has what the connection does with an agent.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from accord.arguments import shortened
from accord.capabilities import AgentOffers
from accord.client import login
from accord.client.live_agent import LiveAgent
from accord.client.remote_session import RemoteSession
from accord.client.sessions import absolute
from accord.engine.handlers import MessageT, Registrar
from accord.engine.peer import Peer
from accord.errors import AccordError
from accord.last_lines import last_lines
from accord.schema import v1
from accord.schema.base import Json, Notification, Request
from accord.schema.sendable import check_sendable

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
        self._required_providers: set[str] = set()
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

    async def login(self, method: str | None = None, *, env: Mapping[str, str] | None = None) -> None:
        """Log in by the method with this id, or by the agent's only method.

        A method with environment variables takes them from `env` or from our own environment, and the agent is
        restarted with them. A terminal login runs at our terminal. Both need an agent that is a command. Raises
        `AccordError` if the method is unknown, a variable is missing, or the login fails.
        """
        await login.log_in(self._live, login.method_of(self.auth_methods, method), env or {})

    async def logout(self) -> None:
        """Log out; raises `CapabilityMissing` if the agent does not support it."""
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
        """Start a session in the folder `cwd`, by default the current one.

        The program of an MCP server may be a bare name; it is looked up on PATH. `additional_directories` are further
        folders that the agent may work in. What the agent did not declare raises `CapabilityMissing`.
        """
        sessions = self._live.sessions
        setup = sessions.setup(cwd, mcp_servers, additional_directories)
        directories, servers = setup.additional_directories, setup.mcp_servers
        return await sessions.begin(v1.NewSessionRequest(str(setup.cwd), servers, directories, system_prompt), setup)

    async def load(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        additional_directories: Sequence[str | Path] = (),
    ) -> RemoteSession:
        """Open a session again, with a replay of its past, which is in `state` when this returns.

        Raises `CapabilityMissing` if the agent does not support it, and ValueError if the session is open here.
        """
        sessions = self._live.sessions
        return await sessions.reopen(v1.LoadSessionRequest, session_id, cwd, mcp_servers, additional_directories)

    async def resume(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        additional_directories: Sequence[str | Path] = (),
    ) -> RemoteSession:
        """Open a session again, without a replay of its past.

        Raises `CapabilityMissing` if the agent does not support it, and ValueError if the session is open here.
        """
        sessions = self._live.sessions
        return await sessions.reopen(v1.ResumeSessionRequest, session_id, cwd, mcp_servers, additional_directories)

    async def sessions(self, cwd: str | Path | None = None) -> AsyncIterator[v1.SessionInfo]:
        """Iterate over the sessions that the agent knows, of the folder `cwd` or all; pages are fetched as needed."""
        folder, cursor, seen = None if cwd is None else str(absolute(cwd)), None, set[str]()
        while True:
            page = await self.request(v1.ListSessionsRequest(folder, cursor))
            for info in page.sessions:
                yield info
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise AccordError("session/list: the agent repeated a cursor; its list of sessions would never end")
            seen.add(cursor)

    async def delete(self, session_id: str) -> None:
        """Delete a session for good; raises `CapabilityMissing` if the agent does not support it."""
        key = v1.SessionId(session_id)
        await self.request(v1.DeleteSessionRequest(key))
        await self._live.sessions.deleted(key)

    # Providers

    async def providers(self) -> list[v1.ProviderInfo]:
        """The providers of models that the client may configure."""
        listed = (await self.request(v1.ListProvidersRequest())).providers
        self._required_providers = {provider.provider_id for provider in listed if provider.required}
        return listed

    async def set_provider(
        self, provider_id: str, api_type: str, base_url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Set the URL of a provider, the kind of API behind it, and the headers that are sent to it."""
        request = v1.SetProviderRequest(v1.ProviderId(provider_id), api_type, base_url, dict(headers or {}))
        await self.request(request)

    async def disable_provider(self, provider_id: str) -> None:
        """Forbid the agent to use a provider; raises ValueError for one that `providers` listed as required."""
        if provider_id in self._required_providers:
            raise ValueError(f"provider {provider_id!r} cannot be disabled; the agent requires it")
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

    def on(self, message: type[MessageT]) -> Registrar[MessageT]:
        """Handle this message from now on, also after the agent was restarted."""
        return self._live.on(message)

    # The end

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
    remote._end = end  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
