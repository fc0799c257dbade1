"""`Insertion`: what a prompt of version 2 is answered with, and how its work ends.

    session/prompt ─▶ held ─▶ inserted: kept, echoed, answered with its id ─▶ running … ─▶ idle
                          └─▶ cancelled: the answer is error -32800

The answer is a receipt. What happens after it is told by states, so an error of the author's function ends in an idle
state with that error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from accord.agent.open_session import OpenSession
from accord.agent.prompt_queue import CANCELLED, QueuedPrompt
from accord.agent.running_turn import RunningTurn
from accord.agent.store_errors import told
from accord.agent.turn import Turn
from accord.dialects.dialect import End, Failure
from accord.engine.context import Context
from accord.errors import StoreError
from accord.schema import v2


class Insertion:
    """One prompt's way into the conversation, and the end of its work."""

    def __init__(self, prompt: Sequence[v2.ContentBlock], context: Context, *, unstable: bool) -> None:
        self.prompt = prompt
        """What the user says, as it came."""
        self.receipt: v2.PromptResponse | None = None
        """The answer, once there is one."""
        self.store_error: StoreError | None = None
        """What the store refused while the work went on."""
        self._context = context
        self._unstable = unstable
        self._work: tuple[RunningTurn, Turn, QueuedPrompt] | None = None
        """The work that the prompt begins; None if it joins a turn that runs, which tells of its own end."""
        self._is_over = False

    def begins(self, running: RunningTurn, turn: Turn, place: QueuedPrompt) -> None:
        """The prompt is going to begin this work."""
        self._work = running, turn, place

    def kept(self, session: OpenSession, message_id: str, echo: bytes) -> None:
        """The prompt is kept: echo it, answer it, and tell of the end of its work when that comes."""
        session.updates.collect()
        session.updates.report_encoded(echo)
        self.receipt = v2.PromptResponse(v2.MessageId(message_id))
        self._context.answer(self.receipt)
        if self._work is not None:
            running, turn, place = self._work
            place.at_end(lambda error: self._ended(running, turn, place.stop_reason, error))

    def is_overdue(self, running: RunningTurn, turn: Turn) -> None:
        """The work was cancelled and does not end: the session is idle without it."""
        if self.receipt is not None:
            self._ended(running, turn, CANCELLED, None)

    def _ended(self, running: RunningTurn, turn: Turn, stop_reason: str, error: BaseException | None) -> bool:
        """Tell that the session is idle; returns whether that tells of the error."""
        if isinstance(error, StoreError):
            self.store_error = error
            error = told(error, running.session.id)
        if isinstance(error, asyncio.CancelledError):
            stop_reason, error = CANCELLED, None
        if not self._is_over:
            self._is_over = True
            running.session.activity.idle(
                End(
                    stop_reason=stop_reason,
                    usage=running.spent if self._unstable else None,
                    meta=turn.answer_meta or None,
                    failure=None if error is None else Failure(*running.context.failure(error)),
                )
            )
        return error is None or isinstance(error, Exception)
