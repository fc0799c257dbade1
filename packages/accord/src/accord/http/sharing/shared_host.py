"""`SharedHost`: serves all connections of an owner with one agent."""

from __future__ import annotations

import asyncio
from typing import Any

from accord._internal.tasks import Tasks
from accord.http.server.guarded_host import GuardedHost
from accord.http.server.hosting import Host, Hosted, host_of
from accord.http.server.owner_gate import OwnerGate
from accord.http.sharing.agent import SharedAgent, SharedClient
from accord.http.sharing.frames import members, version_in
from accord.jsonrpc.wire_messages import RequestFrame, parse
from accord.transports.transport_interface import End, Transport

DETACHED = 3600.0
"""Seconds that a turn may go on without a client."""

LINGER = 60.0
"""Seconds that an idle agent waits for its next client."""


class SharedHost(Host):
    """Serves the connections of an owner with one agent, so that several clients use one session together.

        await accord.http.serve(accord.http.SharedHost(agent), access=access)

    Every client of a session sees all of its updates, and turns go on while no client is connected. `hosted` is an
    agent or a command. `detached` is how many seconds a turn may go on without a client, and `linger` how many seconds
    an idle agent waits for one. If the agent speaks both versions of the protocol, clients of
    version 1 and of version 2 have an agent each.
    """

    is_shared = True

    def __init__(self, hosted: Hosted, *, detached: float = DETACHED, linger: float = LINGER) -> None:
        for name, value in (("detached", detached), ("linger", linger)):
            if not 0 <= value < 10**9:
                raise ValueError(f"SharedHost({name}=...) must be a number of seconds from 0 on, got {value}")
        self._host = host_of(hosted)
        self.name = self._host.name
        self.starts_processes = self._host.starts_processes
        self._detached = detached
        self._linger = linger
        self._agents: dict[str, list[SharedAgent]] = {}
        self._tasks: Tasks | None = None

    def count_turns(self, gate: OwnerGate) -> bool:
        # At the agent, because a turn goes on when its client has gone.
        self._host = GuardedHost(self._host, gate)
        return True

    async def serve(self, transport: Transport, owner: str) -> End | None:
        client = SharedClient(transport)
        await transport.start(client)
        waiting: list[asyncio.Future[Any]] = [client.first, client.end]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if client.end.done():
            return None
        return await self._agent(owner, _version_in(client.first.result())).serve(client)

    def _agent(self, owner: str, version: int) -> SharedAgent:
        for agent in self._agents.get(owner, ()):
            if agent.serves(version):
                return agent
        agent = SharedAgent(version, detached=self._detached, linger=self._linger)
        self._agents.setdefault(owner, []).append(agent)
        self._tasks = self._tasks or Tasks(asyncio.get_running_loop())
        self._tasks.start(self._run(agent, owner), "accord sharing")
        return agent

    async def _run(self, agent: SharedAgent, owner: str) -> None:
        try:
            await agent.run(self._host, owner)
        finally:
            agents = self._agents[owner]
            agents.remove(agent)
            if not agents:
                del self._agents[owner]

    async def close(self, grace: float) -> None:
        """End all agents: when their turns are over, at the latest after `grace` seconds."""
        await asyncio.gather(*(agent.close(grace) for agents in self._agents.values() for agent in agents))
        if self._tasks is not None and self._tasks.running:
            await asyncio.wait(self._tasks.running)


def _version_in(frame: bytes) -> int:
    """The protocol version that this `initialize` asks for."""
    message = parse(frame)
    return version_in(members(message.params)) if isinstance(message, RequestFrame) else 1
