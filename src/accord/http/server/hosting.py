"""What a server has behind each connection: an `Agent` of this program, or a process of its own for each."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from accord.running import OWNER
from accord.transports.base import End, Transport
from accord.transports.process import ProcessTransport
from accord.transports.relay import relay

if TYPE_CHECKING:
    from accord.agent.agent import Agent

TOKEN = "ACCORD_TOKEN"
"""The variable that holds the way in to this server, or to another one. Agents are started without it."""

Hosted: TypeAlias = "Agent | Sequence[str] | Host"
"""An agent, or the command of one."""


class Host(ABC):
    """Serves connections, one call each."""

    name: str
    starts_processes = False
    """Whether each connection has a process of its own, of which there may be only so many."""

    @abstractmethod
    async def serve(self, transport: Transport, owner: str) -> End | None:
        """Serve the client on this transport until either side ends; how the agent ended, if it was the agent."""


class AgentHost(Host):
    """An agent of this program."""

    def __init__(self, agent: Agent) -> None:
        self.name = agent.info.name
        self._agent = agent

    async def serve(self, transport: Transport, owner: str) -> End | None:
        await self._agent.serve(transport, owner=owner)
        return None


class CommandHost(Host):
    """An agent process for each connection, which ends with it."""

    starts_processes = True

    def __init__(
        self, command: Sequence[str], *, cwd: str | Path | None = None, env: Mapping[str, str | None] | None = None
    ) -> None:
        if isinstance(command, str) or not command:
            raise ValueError("a command is a list: the program and its arguments")
        self.name = shlex.join(command)
        self._command = list(command)
        self._cwd = cwd
        self._env = {TOKEN: None, **(env or {})}

    async def serve(self, transport: Transport, owner: str) -> End | None:
        process = ProcessTransport(self._command, cwd=self._cwd, env={**self._env, OWNER: owner or None})
        first, end = await relay(transport, process)
        return end if first is process else None


def host_of(hosted: Hosted) -> Host:
    """Whoever this is, as a host."""
    if isinstance(hosted, Host):
        return hosted
    if isinstance(hosted, Sequence):
        return CommandHost(hosted)
    return AgentHost(hosted)
