"""What a server runs for each connection: an `Agent` of this program, or a process of its own."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from accord.running import OWNER
from accord.tap.recorded import RecordedTransport
from accord.transports.base import End, Transport
from accord.transports.process import ProcessTransport
from accord.transports.relay import relay

if TYPE_CHECKING:
    from accord.agent.agent import Agent
    from accord.metrics import ServerMetrics

TOKEN = "ACCORD_TOKEN"
"""The variable that holds this server's token. Agents are started without it."""

Hosted: TypeAlias = "Agent | Sequence[str] | Host"
"""An agent, a command that starts one, or a `Host`."""


class Host(ABC):
    """Serves connections with an agent, one call of `serve` for each."""

    name: str
    starts_processes = False
    """Whether each connection starts a process, so that limits on processes apply."""
    is_shared = False
    """Whether all connections of an owner have one agent, so that one host has to serve them."""
    metrics: ServerMetrics | None = None
    """What counts this host's connections; the server gives the figures at its path."""

    @abstractmethod
    async def serve(self, transport: Transport, owner: str) -> End | None:
        """Serve a client until either side ends; returns how the agent ended, or None if the client ended first."""

    async def close(self, grace: float) -> None:  # noqa: B027  (most hosts have nothing that outlives its connections)
        """End what outlives connections, at the latest after `grace` seconds; the server has ended."""


class AgentHost(Host):
    """Serves connections with an agent of this program."""

    def __init__(self, agent: Agent) -> None:
        self.name = agent.info.name
        self._agent = agent

    async def serve(self, transport: Transport, owner: str) -> End | None:
        await self._agent.serve(transport, owner=owner)
        return None


class CommandHost(Host):
    """Serves each connection with a process of its own, which ends with the connection."""

    starts_processes = True

    def __init__(
        self, command: Sequence[str], *, cwd: str | Path | None = None, env: Mapping[str, str | None] | None = None
    ) -> None:
        if isinstance(command, str) or not command:
            raise ValueError(
                f"command must be a non-empty list of the program and its arguments, got {type(command).__name__}"
            )
        self.name = shlex.join(command)
        self._command = list(command)
        self._cwd = cwd
        self._env = {TOKEN: None, **(env or {})}

    async def serve(self, transport: Transport, owner: str) -> End | None:
        recorded = transport if isinstance(transport, RecordedTransport) else None
        process = ProcessTransport(
            self._command,
            cwd=self._cwd,
            env={**self._env, OWNER: owner or None},
            on_stderr=None if recorded is None else recorded.on_stderr,
        )
        first, end = await relay(transport, process)
        if recorded is not None and first is process and end.exit_code is not None:
            recorded.on_exit(end.exit_code)
        return end if first is process else None


def host_of(hosted: Hosted) -> Host:
    """The host for an agent, a command or a host."""
    if isinstance(hosted, Host):
        return hosted
    if isinstance(hosted, Sequence):
        return CommandHost(hosted)
    return AgentHost(hosted)
