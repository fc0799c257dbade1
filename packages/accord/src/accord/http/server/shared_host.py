"""`SharedHost`: one agent for several clients of an owner; turns continue while no client is connected.

    client ──┐
    client ──┼──▶ SharedHost ──▶ SharedAgent ──▶ one connection to the agent
    client ──┘        └── SharedConversation decides who gets which message

The agent sees one client and needs no support for this. It is read as fast as the slowest client reads, and clients are
read as fast as the agent reads. A client that reads nothing is closed by the server after `ServerLimits.stalled`
seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import count
from typing import Any

from accord._internal.tasks import LightEvent, Tasks, within
from accord.errors import INVALID_REQUEST, ConnectionClosed
from accord.http.server.agent_host import Host, Hosted, WrappedHost
from accord.http.server.owner_quotas import OwnerGate, QuotaTransport
from accord.http.server.shared_conversation import SharedConversation
from accord.http.server.shared_messages import version_in
from accord.http.server.shared_session import AGENT
from accord.jsonrpc.line_frames import Oversized
from accord.jsonrpc.wire_messages import RequestFrame, encode_error, parse
from accord.trace.meaning import object_in
from accord.transports import End, Receiver, Transport
from accord.transports.memory_transport import pair

log = logging.getLogger("accord.http")

ENDING = 5.0
"""Seconds that an agent has to end when it is not needed any more."""


class QuotaHost(WrappedHost):
    """Serves connections with another host, and has each turn admitted: turns outlast the connections of clients."""

    def __init__(self, host: Host, gate: OwnerGate) -> None:
        super().__init__(host)
        self._gate = gate

    async def serve(self, transport: Transport, owner: str) -> End | None:
        counted = QuotaTransport(transport, owner, self._gate, counts_messages=False, counts_turns=True)
        return await super().serve(counted, owner)


class SharedClient(Receiver):
    """One client: its messages before it is attached are kept."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.number = 0
        self.end: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        """How the client's connection ended."""
        self.first: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """Its first message."""
        self.is_full = False
        """Whether more waits for it than it should."""
        self._agent: SharedAgent | None = None
        self._early: list[bytes | Oversized] = []

    def attach(self, agent: SharedAgent, number: int) -> None:
        """Pass on its messages, including those that were kept."""
        self._agent, self.number = agent, number
        early, self._early = self._early, []
        agent.take(self, early)

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        if self._agent is not None:
            self._agent.take(self, frames)
            return
        self._early += frames
        if not self.first.done():
            self.first.set_result(next((it for it in frames if isinstance(it, bytes)), b""))

    def paused(self) -> None:
        self.is_full = True
        if self._agent is not None:
            self._agent.pace()

    def resumed(self) -> None:
        self.is_full = False
        if self._agent is not None:
            self._agent.pace()

    def ended(self, end: End) -> None:
        if not self.end.done():
            self.end.set_result(end)
        self.first.cancel()


class SharedAgent(Receiver):
    """An agent and its clients. `run` serves it as long as it is needed.

    `asked` is the protocol version that its first client requests. `detached` is how many seconds a turn may continue
    without a client, `linger` how many an idle agent waits for one.
    """

    def __init__(self, asked: int, *, detached: float, linger: float) -> None:
        self._asked = asked
        self._conversation = SharedConversation()
        self._clients: dict[int, SharedClient] = {}
        self._numbers = count(1)
        self._detached = detached
        self._linger = linger
        self._near, self._far = pair()
        self._is_paused = False
        self._is_full = False
        """Whether more waits for the agent than it should."""
        self._changed = LightEvent()
        """Set when a client has come or gone, or the last running turn is over."""
        self._idle = LightEvent()
        self._idle.set()
        self._ending = LightEvent()
        self._is_leaving = False
        self.end: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        """How the agent ended."""

    @property
    def is_over(self) -> bool:
        """Whether it takes no more clients."""
        return self._is_leaving or self.end.done()

    def serves(self, version: int) -> bool:
        """Whether it accepts a client that requests this version: its own, or any if it speaks no newer one."""
        if self.is_over:
            return False
        speaks = self._conversation.version
        return version in (self._asked, speaks) or (speaks is not None and speaks < min(self._asked, version))

    async def run(self, host: Host, owner: str) -> None:
        """Serve the agent until it ends, or is not needed any more."""
        serving = asyncio.create_task(host.serve(self._far, owner), name="accord sharing: agent")
        leaving = asyncio.create_task(self._unneeded(), name="accord sharing: clients")
        end: End | None = None
        try:
            await self._near.start(self)
            await asyncio.wait([serving, leaving], return_when=asyncio.FIRST_COMPLETED)
            self._is_leaving = True
            await self._near.close(ENDING)
            await within(ENDING, asyncio.wait([serving]))
            if serving.done():
                end = serving.result()
        except ConnectionClosed as closed:
            end = End(closed.reason, str(closed))
        except Exception:
            log.exception("serving a shared agent failed")
        finally:
            for task in (serving, leaving):
                task.cancel()
            await asyncio.gather(serving, leaving, return_exceptions=True)
            self.end.set_result(end or End("closed"))

    async def _unneeded(self) -> None:
        """Wait until no client has needed the agent for long enough, or it must end."""
        while not self._ending.is_set():
            self._changed.clear()
            if self._clients:
                await self._changed.wait()
            elif not await within(self._linger if self._idle.is_set() else self._detached, self._changed.wait()):
                break
        self._is_leaving = True  # at once: a client that comes now needs another agent

    async def close(self, grace: float) -> None:
        """End the agent when its turns are over, at the latest after `grace` seconds."""
        await within(grace, self._idle.wait())
        self._is_leaving = True
        self._ending.set()
        self._changed.set()
        await asyncio.wait([self.end])

    async def serve(self, client: SharedClient) -> End | None:
        """Serve one client until it or the agent ends; returns how the agent ended, or None."""
        number = next(self._numbers)
        self._clients[number] = client
        self._changed.set()
        self._conversation.joined(number)
        client.attach(self, number)
        if self._is_full:
            client.transport.pause_reading()
        try:
            await asyncio.wait([client.end, self.end], return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._clients[number]
            self._changed.set()
            self._conversation.left(number)
            self.pace()
        if not self.end.done():
            return None
        end = self.end.result()
        client.transport.why = str(ConnectionClosed(end.reason, exit_code=end.exit_code))
        return end

    # Messages

    def take(self, client: SharedClient, frames: Sequence[bytes | Oversized]) -> None:
        """Take messages of a client."""
        for frame in frames:
            if isinstance(frame, bytes):
                self._conversation.received(client.number, frame)
            elif frame.has_method:
                problem = f"Invalid request: a message of {frame.length:,} bytes is over the limit"
                client.transport.send([encode_error(frame.id, INVALID_REQUEST, problem)])
        self._send()

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        for frame in frames:
            if isinstance(frame, bytes):
                self._conversation.from_agent(frame)
        self._send()

    def _send(self) -> None:
        """Send the conversation's messages for the agent and its clients."""
        waiting: dict[int, list[bytes]] = {}
        for receiver, frame in self._conversation.out:
            waiting.setdefault(receiver, []).append(frame)
        self._conversation.out.clear()
        for receiver, frames in waiting.items():
            if receiver == AGENT:
                self._near.send(frames)
            elif receiver in self._clients:
                self._clients[receiver].transport.send(frames)
        self._note_turns()

    def _note_turns(self) -> None:
        if self._conversation.is_busy:
            self._idle.clear()
        elif not self._idle.is_set():
            self._idle.set()
            self._changed.set()

    def pace(self) -> None:
        """Read the agent only while no client is full."""
        is_full = any(client.is_full for client in self._clients.values())
        if is_full is not self._is_paused:
            self._is_paused = is_full
            if is_full:
                self._near.pause_reading()
            else:
                self._near.resume_reading()

    def paused(self) -> None:
        self._is_full = True
        for client in self._clients.values():
            client.transport.pause_reading()

    def resumed(self) -> None:
        self._is_full = False
        for client in self._clients.values():
            client.transport.resume_reading()

    def ended(self, end: End) -> None:
        """Note that the agent's side has ended; `run` learns how."""


DETACHED = 3600.0
"""Seconds that a turn may continue without a client."""

LINGER = 60.0
"""Seconds that an idle agent waits for its next client."""


class SharedHost(Host):
    """Serves the connections of an owner with one agent, so that several clients use one session together.

        await accord.http.serve(accord.http.SharedHost(agent), access=access)

    Every client of a session sees all of its updates, and turns continue while no client is connected. `hosted` is an
    agent or a command. `detached` is how many seconds a turn may continue without a client, and `linger` how many
    seconds an idle agent waits for one. If the agent speaks both versions of the protocol, clients of version 1 and of
    version 2 have an agent each.
    """

    is_shared = True

    def __init__(self, hosted: Hosted, *, detached: float = DETACHED, linger: float = LINGER) -> None:
        for name, value in (("detached", detached), ("linger", linger)):
            if not 0 <= value < 10**9:
                raise ValueError(f"SharedHost({name}=...) must be a number of seconds from 0 on, got {value}")
        self._host = Host.of(hosted)
        self.name = self._host.name
        self.starts_processes = self._host.starts_processes
        self.store = self._host.store
        self._detached = detached
        self._linger = linger
        self._agents: dict[str, list[SharedAgent]] = {}
        self._tasks: Tasks | None = None

    def count_turns(self, gate: OwnerGate) -> bool:
        # At the agent, because a turn continues when its client has disconnected.
        self._host = QuotaHost(self._host, gate)
        return True

    async def serve(self, transport: Transport, owner: str) -> End | None:
        client = SharedClient(transport)
        await transport.start(client)
        waiting: list[asyncio.Future[Any]] = [client.first, client.end]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if client.end.done():
            return None
        message = parse(client.first.result())
        version = version_in(object_in(message.params)) if isinstance(message, RequestFrame) else 1
        return await self._agent(owner, version).serve(client)

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
