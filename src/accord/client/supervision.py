"""Supervision: a dead agent is started anew, and its sessions are taken up again where it can.

    the connection ends ──▶ wait, a little longer each time ──▶ open_link ──▶ resume or load each session

What was asked of the dead agent has failed by then, with `ConnectionClosed`; what is asked while it is started waits
for it. Without a `Restart` policy the end of the connection is the end of its sessions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.errors import AccordError

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent
    from accord.client.remote_session import RemoteSession

log = logging.getLogger("accord")

TAKE_UP_WITHIN = 60.0
"""Seconds that taking up one session may take."""


@dataclass(frozen=True, slots=True)
class Restarted:
    """What happened to an agent that ended although nobody wanted it to."""

    why: str
    """How it ended."""
    agent_is_back: bool
    attempts: int
    """How often it was started anew."""
    taken_up: list[RemoteSession] = field(default_factory=list["RemoteSession"])
    """The sessions that go on."""
    lost: list[RemoteSession] = field(default_factory=list["RemoteSession"])
    """The sessions that the agent could not take up; they have ended."""


@dataclass(frozen=True, slots=True)
class Restart:
    """How a dead agent is started anew.

    connect(["my-agent"], restart=accord.Restart(on_event=print))
    """

    attempts: int = 5
    """How often in a row it is tried."""
    first_pause: float = 0.5
    longest_pause: float = 30.0
    on_event: Callable[[Restarted], None] | None = None


class Supervisor:
    """Watches one agent's connection."""

    def __init__(self, remote: RemoteAgent, policy: Restart | None) -> None:
        self._remote = remote
        self._policy = policy
        self._watching: asyncio.Task[None] | None = None
        self._is_ready = asyncio.Event()
        self._is_ready.set()
        self._changing = asyncio.Lock()

    def start(self) -> None:
        self._watching = asyncio.create_task(self._watch(), name=f"accord watches {self._remote.name}")

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        self._is_ready.set()

    async def ready(self) -> None:
        """Wait while the agent is being started anew."""
        if not self._is_ready.is_set():
            await self._is_ready.wait()

    async def restart(self, why: str) -> None:
        """End the agent now and start it anew."""
        async with self._changing:
            self._is_ready.clear()
            await self._remote.peer.close()
            await self._revive(why, self._policy or Restart(attempts=1, first_pause=0.0))

    async def _watch(self) -> None:
        while True:
            peer = self._remote.peer
            end = await peer.connection.closed()
            async with self._changing:
                if self._remote.peer is not peer:
                    continue  # it was started anew on purpose
                if self._policy is None:
                    await self._remote.sessions_ended()
                    return
                self._is_ready.clear()
                if not await self._revive(str(end.error()), self._policy):
                    return

    async def _revive(self, why: str, policy: Restart) -> bool:
        attempts = 0
        try:
            while attempts < policy.attempts:
                await asyncio.sleep(min(policy.first_pause * 2**attempts, policy.longest_pause))
                attempts += 1
                try:
                    await self._remote.open_link()
                except AccordError as error:
                    log.warning("%s could not be started anew: %s", self._remote.name, error)
                else:
                    break
            else:
                lost = list(self._remote.open_sessions.values())
                await self._remote.sessions_ended()
                self._tell(policy, Restarted(why, False, attempts, [], lost))
                return False
            taken_up, lost = await self._take_up_all()
        finally:
            self._is_ready.set()
        self._tell(policy, Restarted(why, True, attempts, taken_up, lost))
        return True

    async def _take_up_all(self) -> tuple[list[RemoteSession], list[RemoteSession]]:
        taken_up: list[RemoteSession] = []
        lost: list[RemoteSession] = []
        for session in list(self._remote.open_sessions.values()):
            try:
                await self._take_up(session)
            except AccordError as error:
                log.warning("the session %s could not be taken up again: %s", session.id, error)
                self._remote.open_sessions.pop(session.id, None)
                await session.ended()
                lost.append(session)
            else:
                taken_up.append(session)
        return taken_up, lost

    async def _take_up(self, session: RemoteSession) -> None:
        """Resume it, where the agent can; else load it, and its replay takes the place of what was folded."""
        peer, offers = self._remote.peer, self._remote.capabilities.sessions
        if not offers.resume and offers.load:
            session.state.clear()
            loaded = await peer.request(session.to_load(), timeout=TAKE_UP_WITHIN)
            session.opened(loaded)
        else:
            resumed = await peer.request(session.to_resume(), timeout=TAKE_UP_WITHIN)
            session.opened(resumed)

    def _tell(self, policy: Restart, event: Restarted) -> None:
        log.warning(
            "%s ended (%s) and %s",
            self._remote.name,
            event.why,
            "was started anew" if event.agent_is_back else "could not be started anew",
        )
        if policy.on_event is not None:
            try:
                policy.on_event(event)
            except Exception:
                log.exception("the listener to restarts failed")
