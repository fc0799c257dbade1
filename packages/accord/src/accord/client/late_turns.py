"""`LateTurns`: prompts made while the agent is being restarted. They are sent, in order, when it is ready again.

A late prompt is not part of the conversation before it is sent: resuming or loading the session comes first and may
replace the state. Until then it can be cancelled, or fail at its deadline, without any message to the agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from accord._internal.tasks import Tasks
from accord.client.pending_turn import PendingTurn
from accord.errors import AccordError, Timeout


class RestartedAgent(Protocol):
    """What a late prompt waits for."""

    @property
    def is_ready(self) -> bool: ...
    @property
    def tasks(self) -> Tasks: ...
    async def ready(self) -> None: ...


class LateTurns:
    """The prompts of one session that wait for its agent."""

    def __init__(self, agent: RestartedAgent, send: Callable[[PendingTurn], None]) -> None:
        self.waiting: list[PendingTurn] = []
        """In the order in which they will be sent."""
        self._agent = agent
        self._send = send

    @property
    def must_wait(self) -> bool:
        """Whether a prompt that is made now has to wait, for the agent or for an earlier prompt."""
        return bool(self.waiting) or not self._agent.is_ready

    def add(self, turn: PendingTurn, total: float | None, idle: float | None) -> None:
        """Send this prompt when the agent is ready; the deadlines are those of `RemoteSession.prompt`."""
        self.waiting.append(turn)
        self._agent.tasks.start(self._send_in_time(turn, total, idle), "a prompt that waits for the agent's restart")

    def take(self) -> list[PendingTurn]:
        """Remove and return all of them, which will not be sent; the caller finishes them."""
        taken, self.waiting = self.waiting, []
        return taken

    async def _send_in_time(self, turn: PendingTurn, total: float | None, idle: float | None) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(total):
                await self._agent.ready()
        except TimeoutError:
            turn.answered(Timeout(f"session/prompt: the agent was not restarted within {total:g} seconds"))
        if turn not in self.waiting:
            return
        self.waiting.remove(turn)
        if turn.done:
            return
        try:
            self._send(turn)
        except AccordError as error:
            turn.answered(error)
            return
        if total is not None or idle is not None:
            await turn.watch(None if total is None else max(0.0, began + total - loop.time()), idle)
