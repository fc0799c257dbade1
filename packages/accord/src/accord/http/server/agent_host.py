"""The programs that a server runs for its connections: an `Agent` of this program, or a process for each."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from accord._internal.tasks import to_the_end
from accord.confinement.container import Container
from accord.confinement.process_limits import Confinement, ProcessLimits
from accord.installation import PluginError
from accord.program import OWNER, STORE
from accord.transports import End, Transport
from accord.transports.process_transport import ProcessTransport
from accord.transports.wrapped_transport import RecordedTransport, relay

if TYPE_CHECKING:
    from accord.agent.agent import Agent
    from accord.http.server.owner_quotas import OwnerGate
    from accord.metrics import ServerMetrics
    from accord.store import Store

TOKEN = "ACCORD_TOKEN"
"""The variable with this server's token. Agents are started without it."""

Hosted: TypeAlias = "Agent | Sequence[str] | Host"
"""An agent, a command that starts one, or a `Host`."""


class Host(ABC):
    """The program that a server runs for its connections; subclasses serve them in their own way, one call of `serve`
    each.

    class Echo(accord.http.Host):
        name = "echo"

        async def serve(self, transport, owner):
            await agent.serve(transport, owner=owner)
    """

    name: str
    """The name in messages, such as the command that it runs."""
    starts_processes = False
    """Whether each connection starts a process, so that limits on processes apply."""
    is_shared = False
    """Whether all connections of an owner have one agent, so that one host has to serve them."""
    metrics: ServerMetrics | None = None
    """Counts this host's connections; the server offers the metrics at its path."""
    store: Store | None = None
    """The store of its sessions, if it is known. The server is ready (`/readyz`) while this store answers."""

    @staticmethod
    def of(hosted: Hosted) -> Host:
        """The host for an agent, a command or a host."""
        if isinstance(hosted, Host):
            return hosted
        if isinstance(hosted, Sequence):
            return CommandHost(hosted)
        return AgentHost(hosted)

    @abstractmethod
    async def serve(self, transport: Transport, owner: str) -> End | None:
        """Serve a client until either side ends; returns how the agent ended, or None if the client ended first."""

    def count_turns(self, gate: OwnerGate) -> bool:  # noqa: ARG002
        """Let this gate admit each turn; returns False if the server should count them at its connections, as for most
        hosts.
        """
        return False

    async def close(self, grace: float) -> None:  # noqa: B027  (most hosts have nothing that outlives its connections)
        """End everything that outlives connections, within `grace` seconds; the server has ended."""


class WrappedHost(Host):
    """Serves connections with another host; subclasses see each connection before that host does.

    class Logged(accord.http.WrappedHost):
        async def serve(self, transport, owner):
            print(f"a connection of {owner or 'anybody'}")
            return await super().serve(transport, owner)

    await accord.http.serve(Logged(agent))
    """

    def __init__(self, hosted: Hosted) -> None:
        self._inner = inner = Host.of(hosted)
        self.name = inner.name
        self.starts_processes = inner.starts_processes
        self.is_shared = inner.is_shared
        self.metrics = inner.metrics
        self.store = inner.store

    async def serve(self, transport: Transport, owner: str) -> End | None:
        return await self._inner.serve(transport, owner)

    def count_turns(self, gate: OwnerGate) -> bool:
        return self._inner.count_turns(gate)

    async def close(self, grace: float) -> None:
        await self._inner.close(grace)


class AgentHost(Host):
    """Serves connections with an agent of this program, or with a chain, whose store is not known."""

    def __init__(self, agent: Agent) -> None:
        self.name = agent.info.name
        self.store = getattr(agent, "store", None)
        self._agent = agent

    async def serve(self, transport: Transport, owner: str) -> End | None:
        await self._agent.serve(transport, owner=owner)
        return None


class CommandHost(Host):
    """Serves each connection with its own process, which ends with the connection.

    `limits` restrict each process with its child processes, and `container` runs each in a container. Raises
    AccordError if this machine cannot enforce them.
    """

    starts_processes = True

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str | None] | None = None,
        limits: ProcessLimits | None = None,
        container: Container | None = None,
    ) -> None:
        if isinstance(command, str) or not command:
            raise ValueError(
                f"command must be a non-empty list of the program and its arguments, got {type(command).__name__}"
            )
        self.name = shlex.join(command)
        self._command = list(command)
        self._cwd = cwd
        self._env = {TOKEN: None, **(env or {})}
        if "://" in (where := self._env.get(STORE, os.environ.get(STORE)) or ""):
            from accord.store.store_url import store_at  # most servers name no store

            with suppress(PluginError):  # only the agent knows this kind of store
                self.store = store_at(where, STORE)
        self._confinement: Confinement | None = None
        if limits or container is not None:
            from accord.confinement.cgroup import confinement_for  # most servers set no limits

            self._confinement = confinement_for(limits or ProcessLimits(), container)
            self._confinement.sweep()

    async def serve(self, transport: Transport, owner: str) -> End | None:
        env = {**self._env, OWNER: owner or None}
        if self._confinement is None:
            return await self._run(transport, self._command, env, None)
        confined = self._confinement.confine(self._command, env)
        try:
            return await self._run(transport, confined.command, env, confined.limit_hit)
        finally:
            await to_the_end(asyncio.create_task(confined.close(), name="accord confined"))

    async def _run(
        self,
        transport: Transport,
        command: list[str],
        env: Mapping[str, str | None],
        limit_hit: Callable[[], Awaitable[str]] | None,
    ) -> End | None:
        recorded = transport if isinstance(transport, RecordedTransport) else None
        process = ProcessTransport(
            command, cwd=self._cwd, env=env, on_stderr=None if recorded is None else recorded.on_stderr
        )
        process.limit_hit = limit_hit
        first, end = await relay(transport, process)
        if recorded is not None and first is process and end.exit_code is not None:
            recorded.on_exit(end.exit_code)
        return end if first is process else None


class MeasuredHost(WrappedHost):
    """Serves connections with another host, and counts connections, sessions, turns and bytes in `metrics`.

    A server of a measured host offers the metrics at the path of `metrics`.
    """

    def __init__(self, hosted: Hosted, metrics: ServerMetrics) -> None:
        super().__init__(hosted)
        self._counted = self.metrics = metrics

    async def serve(self, transport: Transport, owner: str) -> End | None:
        from accord.metrics.server_metrics import MeasuredConversation  # loaded with the metrics

        conversation = MeasuredConversation(self._counted)
        try:
            return await super().serve(RecordedTransport(transport, conversation), owner)
        finally:
            conversation.close(time.monotonic())
