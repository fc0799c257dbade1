"""Restarting an agent that died, with its sessions.

    connection ends ──▶ wait, a little longer each time ──▶ connect ──▶ resume or load each session

Requests to the dead agent have failed by then, with `ConnectionClosed`; requests made during the restart wait for it.
Without a `Restart` policy the end of the connection is the end of its sessions.
"""

# The private members of an agent are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.errors import AccordError, ConnectionClosed

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent
    from accord.client.remote_session import RemoteSession
    from accord.engine.peer import Peer

log = logging.getLogger("accord")


@dataclass(frozen=True, slots=True)
class Restarted:
    """The result of an agent's restart."""

    why: str
    """How the agent ended."""
    agent_is_back: bool
    """Whether the agent runs again; if not, all of its sessions are lost."""
    attempts: int
    """How many times the agent was started."""
    resumed: list[RemoteSession] = field(default_factory=list["RemoteSession"])
    """The sessions that the agent resumed or loaded; they continue."""
    lost: list[RemoteSession] = field(default_factory=list["RemoteSession"])
    """The sessions that the agent could not resume or load; they have ended."""


@dataclass(frozen=True, slots=True)
class Restart:
    """The policy for restarting a dead agent.

    connect(["my-agent"], restart=accord.Restart(on_event=print))
    """

    attempts: int = 5
    """How many times in a row the agent is started before it counts as lost."""
    first_pause: float = 0.5
    """Seconds before the first attempt; each further pause is twice as long."""
    longest_pause: float = 30.0
    """Seconds that a pause may grow to."""
    on_event: Callable[[Restarted], object] | None = None
    """Called after each restart, and when the agent could not be restarted."""


class AgentRestarter:
    """Watches the connection of one agent, and restarts the agent."""

    def __init__(self, remote: RemoteAgent, policy: Restart | None) -> None:
        self._remote = remote
        self._policy = policy
        self._watching: asyncio.Task[None] | None = None
        self._is_ready = asyncio.Event()
        self._is_ready.set()
        self._changing = asyncio.Lock()

    def start(self) -> None:
        """Begin to watch."""
        watching = _watch(weakref.ref(self), self._remote._in_use)
        self._watching = asyncio.create_task(watching, name=f"accord watches {self._remote.name}")

    async def stop(self) -> None:
        """Stop watching, because the connection is closed on purpose."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        self._is_ready.set()

    async def ended(self) -> None:
        """Wait until the agent has ended and is not going to be restarted."""
        if self._watching is not None:
            await asyncio.wait([self._watching])

    @property
    def is_ready(self) -> bool:
        """Whether requests can be sent now: the agent is not being restarted, and is not about to be."""
        watching = self._watching
        will_restart = self._policy is not None and watching is not None and not watching.done()
        if will_restart and not self._remote.peer.connection.is_open:  # `_watch` has yet to notice the end
            self._is_ready.clear()  # set again when the restart has ended, however it ends
        return self._is_ready.is_set()

    async def ready(self) -> None:
        """Wait while the agent is being restarted."""
        while not self.is_ready:
            await self._is_ready.wait()

    async def restart(self, why: str) -> None:
        """End the agent now and start it again, whatever the policy."""
        async with self._changing:
            self._is_ready.clear()
            await self._remote.peer.close()
            await self._revive(why, self._policy or Restart(attempts=1, first_pause=0.0))

    async def _connection_ended(self, peer: Peer, end: ConnectionClosed) -> bool:
        """Restart the agent if the policy says so; returns whether there is a connection to watch again."""
        self._remote._sessions.connection_ended(end)
        async with self._changing:
            if self._remote.peer is not peer:
                return True  # it was restarted on purpose
            if self._policy is None:
                await self._remote._sessions.end_all()
                return False
            self._is_ready.clear()
            return await self._revive(str(end), self._policy)

    async def _revive(self, why: str, policy: Restart) -> bool:
        attempts = 0
        try:
            while attempts < policy.attempts:
                await asyncio.sleep(min(policy.first_pause * 2**attempts, policy.longest_pause))
                attempts += 1
                try:
                    await self._remote._open_link()
                except AccordError as error:
                    log.warning("%s could not be restarted (attempt %d): %s", self._remote.name, attempts, error)
                else:
                    break
            else:
                lost = list(self._remote._sessions.open.values())
                await self._remote._sessions.end_all()
                self._tell(policy, Restarted(why, False, attempts, [], lost))
                return False
            resumed, lost = await self._remote._sessions.resume_all()
        finally:
            self._is_ready.set()
        self._tell(policy, Restarted(why, True, attempts, resumed, lost))
        return True

    def _tell(self, policy: Restart, event: Restarted) -> None:
        log.warning(
            "%s ended (%s) and %s",
            self._remote.name,
            event.why,
            "was restarted" if event.agent_is_back else "could not be restarted",
        )
        if policy.on_event is not None:
            try:
                policy.on_event(event)
            except Exception:
                log.exception("Restart.on_event raised an error")


async def _watch(watcher: weakref.ref[AgentRestarter], in_use: list[object]) -> None:  # noqa: ARG001
    """Wait for the end of each connection. The task holds the agent only while the list `in_use` does."""
    while (restarter := watcher()) is not None:
        peer = restarter._remote.peer
        del restarter
        end = await peer.connection.closed()
        if (restarter := watcher()) is None or not await restarter._connection_ended(peer, end.error()):
            return
        del restarter, peer
