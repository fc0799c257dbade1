"""`PendingTurn`: one prompt, from sending it until the agent has answered. The caller holds its face, the `Reply`.

    session/update ──▶ LiveSession ──▶ Unread ──▶ `next_update`
    answer         ──▶ `answered`  ──▶ Outcome ──▶ `wait`

The session owns the turn, so the turn goes on whether or not its Reply is iterated or awaited. Updates are buffered
where they arrive, so the answer never waits for a reader.

Cancelling follows the specification's rules for clients: `session/cancel` is sent, open permission requests of the
session are answered `cancelled`, unfinished tool calls are marked, and updates are accepted until the agent answers.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, cast

import msgspec

from accord._internal.light_event import LightEvent
from accord._internal.tasks import within
from accord.arguments import shortened
from accord.client.markdown import turn_markdown
from accord.client.safe_markdown import safe
from accord.client.unread import Unread
from accord.engine.peer import Posted
from accord.errors import AccordError, Overflow, PeerError, Timeout
from accord.schema import v1
from accord.schema.base import Json
from accord.session import Message, SessionState, ToolCallState
from accord.spans import SpanEnd

LEAVE_WITHIN = 5.0
"""Seconds that leaving an `async with` block waits for the answer to the prompt that it cancels."""


class Outcome(msgspec.Struct, frozen=True):
    """How a turn ended, and what it produced."""

    stop_reason: str
    """Why the agent stopped, in the protocol's words: `end_turn`, `cancelled`, `max_tokens`, `refusal`, ..."""
    text: str
    """All that the agent said in the turn."""
    tool_calls: list[ToolCallState]
    """The tool calls that began in the turn."""
    usage: v1.Usage | None = None
    """The tokens that the turn used; None if the agent does not report them."""
    meta: dict[str, Json] | None = None
    """The `_meta` of the agent's answer."""

    def __repr__(self) -> str:
        return f"Outcome({self.stop_reason!r}, text={shortened(self.text)!r}, tool_calls={len(self.tool_calls)})"

    def _repr_markdown_(self) -> str:
        """What a notebook shows: the tool calls and the text, without raw HTML and images."""
        return safe(turn_markdown(self.tool_calls, self.text, self.stop_reason))


class TurnSession(Protocol):
    """What a turn needs of its session."""

    @property
    def id(self) -> v1.SessionId: ...
    @property
    def state(self) -> SessionState: ...
    @property
    def answers_are_receipts(self) -> bool: ...
    @property
    def update_type(self) -> Any: ...
    def is_turn(self, turn: PendingTurn) -> bool: ...
    def cancel_turn(self, turn: PendingTurn, meta: dict[str, Json] | None = None) -> None: ...
    async def restart_agent(self, why: str) -> None: ...


class PendingTurn:
    """A prompt that was sent, and what has come back for it so far."""

    def __init__(
        self,
        session: TurnSession,
        prompt: list[v1.ContentBlock],
        *,
        keeps_wire: bool,
        meta: dict[str, Json] | None = None,
    ) -> None:
        self.prompt = prompt
        """What is sent."""
        self.meta = meta
        """The `_meta` that is sent with it."""
        self.unread: Unread
        """The updates that were not read yet, from the moment when the prompt is sent."""
        self.keeps_wire = keeps_wire
        """Whether updates are kept as the JSON that they came as."""
        self.keeps_subagents = False
        """Whether what subagents say is read with the updates of the turn."""
        self.cancelled = False
        """Whether `session/cancel` was sent for it."""
        self.face: object = None
        """The session as its caller holds it, which must live as long as the turn (see `ownership`)."""
        self._session = session
        self._posted: Posted[Any] | None = None
        self._end_span: SpanEnd | None = None
        self._sent_or_done: LightEvent | None = None
        """Made only for a prompt that waits for its agent's restart."""
        self._result: v1.PromptResponse | Exception | None = None
        self._finished = LightEvent()
        self._inserted: LightEvent | None = None
        """Set when the prompt has its place, or never gets one; made for those who wait for that."""
        self.message_id: str | None = None
        """The id of the prompt's message; None before the agent has told it, and in version 1."""
        self._begins_at: int | None = None
        self._ends_at: int | None = None
        self._outcome: Outcome | None = None

    # What the session reports

    def sent(self, posted: Posted[Any], unread: Unread) -> None:
        """The prompt was sent: at once, unless the agent is being restarted."""
        self._posted, self.unread = posted, unread
        self._end_span = posted.kept_span()
        if self._sent_or_done is not None:
            self._sent_or_done.set()

    def begin(self, at: int | None = None) -> None:
        """Updates belong to this turn from now on; with `at`, from this place of the timeline on."""
        self._begins_at = len(self._session.state) if at is None else at

    def overflowed(self, overflow: Overflow) -> None:
        """Fail, because the reader fell too far behind, and ask the agent to stop."""
        self.answered(overflow)
        self.request_cancel()

    def inserted(self, message_id: str) -> None:
        """The prompt has its place in the conversation, and its message this id."""
        self.message_id = message_id
        if self._inserted is not None:
            self._inserted.set()

    async def until_inserted(self) -> str | None:
        """Wait until the prompt has its place; its message's id, or None if it never gets one."""
        if self._posted is None:
            await self._until_sent()
        if self._session.answers_are_receipts and self._posted is not None:
            await self._until_receipt(self._posted)
        if self.message_id is None and isinstance(self._result, Exception):
            raise self._result
        return self.message_id

    async def _until_receipt(self, posted: Posted[Any]) -> None:
        if self.message_id is None and self._result is None:
            self._inserted = self._inserted or LightEvent()
            with posted.awaited():
                await self._inserted.wait()

    def withdraw(self) -> None:
        """Ask the agent not to begin with the prompt, if it has not answered it."""
        if self._posted is not None:
            self._posted.withdraw()

    def answered(self, result: v1.PromptResponse | Exception, ends_at: int | None = None) -> None:
        """Finish with the agent's answer, or with the reason why none will be waited for. Only the first one counts.

        `ends_at` is the place in the timeline where the turn ended, if that is not its present end.
        """
        if self._result is None:
            self._result = result
            self._ends_at = len(self._session.state) if ends_at is None else ends_at
            if self._end_span is not None:
                self._end_span(result, self._session.state.usage)
            if self._posted is not None:
                self.unread.finish()
            if self._sent_or_done is not None:
                self._sent_or_done.set()
            if self._inserted is not None:
                self._inserted.set()
            self._finished.set()

    async def watch(self, total: float | None, idle: float | None) -> None:
        """Fail when a deadline passes."""
        assert self._posted is not None
        until = asyncio.ensure_future(self._finished.wait()) if self._session.answers_are_receipts else None
        try:
            await self._posted.within(total, idle, until)
        except Timeout as timeout:
            if not self.done:
                self.answered(timeout)
                self.request_cancel()
        except AccordError:
            pass  # `answered` was called with it
        finally:
            if until is not None:
                until.cancel()

    # Reading

    async def next_update(self) -> Any:
        """The next update, as JSON bytes if `keeps_wire`; raises StopAsyncIteration after the last."""
        if self._posted is None or (update := self.unread.now()) is None:
            try:
                update = await self._wait_for_update()
            except asyncio.CancelledError:
                self.request_cancel()
                raise
            if update is None:
                if isinstance(self._result, Exception):
                    raise self._failure(self._result)
                raise StopAsyncIteration
        return update

    async def _wait_for_update(self) -> Any:
        if self._posted is None:
            await self._until_sent()
        return None if self._posted is None else await self.unread.get(self._posted.awaited())

    async def _until_sent(self) -> None:
        """Wait until the prompt is sent, or has failed before."""
        if self._result is None:
            if self._sent_or_done is None:
                self._sent_or_done = LightEvent()
            await self._sent_or_done.wait()

    # The end

    @property
    def done(self) -> bool:
        """Whether the agent has answered, or the turn has failed."""
        return self._result is not None

    @property
    def update_type(self) -> Any:
        """The type of the updates that are kept as JSON."""
        return self._session.update_type

    async def wait(self) -> Outcome:
        """Wait for the end; raises the error that the turn ended with."""
        try:
            await self._wait_for_end()
        except asyncio.CancelledError:
            self.request_cancel()
            raise
        if isinstance(self._result, Exception):
            raise self._failure(self._result)
        return self._made_outcome()

    async def _wait_for_end(self) -> None:
        if self._posted is None:
            await self._until_sent()
        if self._finished.is_set() or self._posted is None:
            return
        with self._posted.awaited(), self.unread.awaiting_end():
            await self._finished.wait()

    def _made_outcome(self) -> Outcome:
        if self._outcome is None:
            self._outcome = self._outcome_of(cast("v1.PromptResponse", self._result))
        return self._outcome

    def _outcome_of(self, response: v1.PromptResponse) -> Outcome:
        entries = [] if self._begins_at is None else self._session.state.between(self._begins_at, self._ends_at)
        text = "".join(it.text for it in entries if isinstance(it, Message) and it.speaker == "agent")
        calls = [it for it in entries if isinstance(it, ToolCallState)]
        return Outcome(response.stop_reason, text, calls, response.usage, response.meta)

    def _failure(self, error: Exception) -> Exception:
        """The error that the turn ended with, and what the turn had come to."""
        if isinstance(error, PeerError) and error.outcome is None:
            error.outcome = self._outcome_of(v1.PromptResponse(cast("Any", "error")))
        return error

    # Cancelling

    def request_cancel(self, meta: dict[str, Json] | None = None) -> None:
        """Ask the agent to stop, without waiting; does nothing the second time or after the end."""
        if self.cancelled or (self.done and not self._session.is_turn(self)):
            return
        self.cancelled = True
        self._session.cancel_turn(self, meta)

    async def cancel(self, deadline: float | None, meta: dict[str, Json] | None = None) -> Outcome:
        """Ask the agent to stop and wait for the end; past the deadline, restart the agent."""
        self.request_cancel(meta)
        if deadline is not None and not await within(deadline, self._wait_for_end()):
            self.answered(v1.PromptResponse("cancelled"))
            await self._session.restart_agent(f"{self._session.id}: the agent ignored session/cancel")
        return await self.wait()

    async def leave(self) -> None:
        """Cancel the turn if it still runs, and wait a bounded time for its end."""
        if not self.done:
            self.request_cancel()
            await within(LEAVE_WITHIN, self._finished.wait())
