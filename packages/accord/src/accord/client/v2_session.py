"""`V2Session`: the turns of a session whose agent speaks version 2.

    prompt ──▶ Reply ◀── receipt     `V2TurnTracker` decides where the turn begins and which `idle` ends it
    update ──▶ `V2TurnTracker`, then folded into `state` ──▶ every open turn, or `updates()`

Several turns may be open at once, and each gets every update from its beginning on. Updates while none is open are from
work that the agent began itself, or from background work: `updates()` has them.
"""

# The private members of a session and a reply are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Raw

from accord.client.remote_session import RemoteSession, SessionSetup
from accord.client.reply import Outcome, Reply, UpdateBuffer
from accord.client.v2_turn_tracker import TrackedPrompt, V2TurnTracker, WorkEnd
from accord.errors import INTERNAL_ERROR, REQUEST_CANCELLED, Overflow, PeerError
from accord.schema import codec, v1, v2
from accord.schema.base import JsonObject
from accord.schema.sendable import check_meta

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent

log = logging.getLogger("accord")

STREAMED = (v2.AgentMessageChunk, v2.AgentThoughtChunk)
"""The updates that make up most of the traffic."""
PROMPT = v2.PromptRequest.__method__
UNKNOWN_REASON = "unknown"
"""The stop reason of work whose agent does not report one."""


class _HeldUpdate(NamedTuple):
    """An update that may belong to a prompt whose receipt has not arrived."""

    number: int
    update: Any
    size: int


class _OpenTurn(TrackedPrompt):
    """A turn that is not done, and the updates that may turn out to be its own."""

    __slots__ = ("copy", "kept", "turn")

    def __init__(self, turn: Reply) -> None:
        super().__init__()
        self.turn = turn
        self.kept: deque[_HeldUpdate] = deque()
        """Updates that may belong to it, if its message was among them."""
        self.copy: int | None = None
        """The place of the prompt in the timeline, if it is shown before the agent reports it."""


class V2Session(RemoteSession):
    """A `RemoteSession` of version 2."""

    _answers_are_receipts = True
    _update_type = v2.SessionUpdate

    def __init__(self, remote: RemoteAgent, session_id: v1.SessionId, setup: SessionSetup) -> None:
        super().__init__(remote, session_id, setup)
        self._tracker: V2TurnTracker[_OpenTurn] = V2TurnTracker(self.state)
        self._only: Reply | None = None
        """The only open turn, if only that turn and the state need its updates."""

    # Turns

    def _send(self, turn: Reply) -> None:
        # A prompt with a key of the caller may be another attempt, whose message exists already.
        is_shown_at_once = not self._tracker.prompts and turn._idempotency_key is None
        peer = self._remote.peer
        key = turn._idempotency_key = turn._idempotency_key or os.urandom(16).hex()
        posted = peer.post(v2.PromptRequest(self.id, turn._prompt, key, meta=turn._meta))
        turn._sent(posted, UpdateBuffer(peer.connection.read_pause, self._remote._limits.reply))
        opened = _OpenTurn(turn)
        self._tracker.sent(opened)
        self._note_only()
        if is_shown_at_once:
            opened.copy = self.state.add_prompt_copy(turn._prompt)
            turn._begins_at = opened.copy + 1
        posted.then(partial(self._receipt, opened))

    def _receipt(self, opened: _OpenTurn, result: v2.PromptResponse | Exception) -> None:
        turn = opened.turn
        if isinstance(result, Exception):
            self._tracker.dropped(opened)
            if opened.copy is not None:
                self.state.drop_prompt(opened.copy)
            self._close_turn(opened, _as_v1(result))
            self._remote._failed(self.id, result)
            return
        end = self._tracker.received_receipt(opened, result.message_id)
        turn._was_inserted(result.message_id)
        if opened.copy is not None:
            self.state.name_prompt(opened.copy, result.message_id)
        if opened.kept:
            begun = self._tracker.number if opened.begun is None else opened.begun.number
            for kept in opened.kept:
                if kept.number >= begun:
                    self._give(turn, kept.update, kept.size)
            opened.kept.clear()
            self._note_only()
        if end is not None:
            self._forget_updates(end)
            self._done(opened, end)
        elif turn._cancelled:
            self._tell_to_cancel()

    def _done(self, opened: _OpenTurn, end: WorkEnd) -> None:
        begun = opened.begun
        if begun is not None:
            opened.turn._begins_at = begun.place
            if end.stop_reason == "refusal":
                if opened.copy is not None:  # the agent's own messages may be between it and its turn
                    self.state.refuse(opened.copy, opened.copy + 1)
                self.state.refuse(begun.place, end.at.place)
        self._close_turn(opened, _result_of(end), end.at.place)

    def _close_turn(self, opened: _OpenTurn, result: v1.PromptResponse | Exception, ends_at: int | None = None) -> None:
        self._note_only()
        opened.turn._answered(result, ends_at)
        if isinstance(result, PeerError):
            self._remote._failed(self.id, result)
        if self._idle_waiters:
            self._settle()

    def _note_only(self) -> None:
        """Note whether the updates to come concern one turn alone, which is how most turns are."""
        prompts = self._tracker.prompts
        is_simple = len(prompts) == 1 and not (prompts[0].kept or prompts[0].turn._keeps_wire)
        self._only = prompts[0].turn if is_simple else None

    def _is_turn(self, turn: Reply) -> bool:
        """Whether the agent may still work on the turn's prompt."""
        return any(opened.turn is turn for opened in self._tracker.prompts)

    @property
    def is_busy(self) -> bool:
        """Whether the agent works, or a prompt is not done."""
        return bool(self._tracker.prompts or self._late.waiting or self._tracker.is_working)

    # Cancelling

    async def cancel(self, *, meta: JsonObject | None = None) -> Outcome | None:
        """Cancel the agent's work and all prompts, and wait for the end of the first one; None without one."""
        check_meta("session.cancel(meta=...)", meta)
        turns = [*self._current_turns(), *self._late.waiting]
        if not turns:
            if self._tracker.is_working:
                self._tell_to_cancel(meta)
                await self.idle()
            return None
        for turn in turns:
            turn._cancelled = True
        self._late.end(v1.PromptResponse("cancelled"))
        self._tell_to_cancel(meta)
        return await turns[0].cancel()

    def _cancel_turn(self, turn: Reply, meta: JsonObject | None = None) -> None:
        """Cancel one turn: withdraw its prompt, or stop the foreground work that it has become a part of."""
        opened = next((it for it in self._tracker.prompts if it.turn is turn), None)
        if opened is None:  # it waits for the agent's restart
            self._late.end(v1.PromptResponse("cancelled"))
            return
        is_waiting = opened.receipt is None
        if is_waiting:
            turn._withdraw()
        if not is_waiting or (opened.sent_while_idle and self._tracker.is_working):
            # An agent may send the receipt last: work that began after this prompt was sent is its own.
            self._tell_to_cancel(meta)

    def _tell_to_cancel(self, meta: JsonObject | None = None) -> None:
        # prompt-lifecycle, Cancellation: the agent withdraws its own questions; those of background work stay open.
        if self._remote.peer.connection.is_open:
            self._remote.peer.tell(v2.CancelSessionNotification(self.id, meta=meta))
            if not self._tracker.is_working and any(it.receipt is not None for it in self._tracker.prompts):
                # An agent need not send `idle` for work that it has not begun, or has ended without our noticing. It
                # has received the cancellation when it answers a later request, with a result or an error.
                asked = self._remote.peer.post(v2.ListSessionsRequest(str(self.cwd)))
                asked.then(lambda _: self._cancelled_without_work())
        self.state.cancel_unfinished()

    def _cancelled_without_work(self) -> None:
        """End the cancelled prompts that the agent does not work on."""
        if self._tracker.is_working:
            return  # an `idle` will follow
        for opened in [it for it in self._tracker.prompts if it.turn._cancelled and it.receipt is not None]:
            self._tracker.dropped(opened)
            self._close_turn(opened, v1.PromptResponse("cancelled"))

    # Updates

    def _received(self, update: Any, params: bytes | Raw) -> None:
        """Take an update of this session, with the JSON of its notification's params."""
        size = len(params) if params.__class__ is bytes else len(memoryview(params))
        tracker, only, ended = self._tracker, self._only, None
        turns = tracker.prompts
        if update.__class__ in STREAMED:
            tracker.number += 1
            tracker.spoke = True
        else:
            ended = tracker.received(update)
        try:
            shown = self.state.add(update, size)
            if only is None or shown is not None:
                self._deliver(turns, (update,) if shown is None else shown, size, params)
            else:
                try:  # as in `_give`: a further call would cost each chunk 3 %
                    only._unread.put(update, size)
                except Overflow as overflow:
                    only._overflowed(overflow)
        finally:  # an observer that raises must not leave a turn without its end
            if ended is not None:
                end, done = ended
                if done:
                    self._forget_updates(end)
                for opened in done:
                    self._done(opened, end)
            if self._idle_waiters and not tracker.is_working:
                self._settle()

    def _deliver(self, turns: Sequence[_OpenTurn], shown: Sequence[Any], size: int, params: bytes | Raw) -> None:
        """Pass an update to the open turns that it belongs to, and keep it for those that it may belong to."""
        if not turns:
            for each in shown:
                self._received_outside(each, size)
        is_alone = len(turns) == 1
        tells = self._tracker.tells_messages
        for opened in list(turns):
            turn = opened.turn
            updates = [codec.update_json(params)] if turn._keeps_wire else shown
            if is_alone or opened.begun is not None or not (tells or opened.receipt is None):
                if opened.kept:
                    self._give_updates(opened)
                for each in updates:
                    self._give(turn, each, size)
            elif opened.receipt is None and not (tells and self._tracker.unclaimed is None):
                opened.kept += [_HeldUpdate(self._tracker.number, each, size) for each in updates]

    def _forget_updates(self, end: WorkEnd) -> None:
        """Forget updates that cannot belong to the waiting prompts: they came from work that has ended."""
        for opened in self._tracker.prompts:
            first = self._tracker.unclaimed or end.at.number + 1
            while opened.kept and opened.begun is None and opened.kept[0].number < first:
                opened.kept.popleft()

    def _give_updates(self, opened: _OpenTurn) -> None:
        for kept in opened.kept:
            self._give(opened.turn, kept.update, kept.size)
        opened.kept.clear()
        self._note_only()

    def _current_turns(self) -> Sequence[Reply]:
        """The turns that updates belong to now: all that are open."""
        return [opened.turn for opened in self._tracker.prompts]

    # Life

    def _opened(self, response: Any) -> None:
        """Take the settings that the agent opened the session with."""
        self.state.set_config(response.config_options)
        if response.available_commands:
            self.state.add(v2.AvailableCommandsUpdate(response.available_commands))
        self._meta = response.meta or {}
        self._is_open = True

    def _replayed(self) -> None:
        """Note the answer to the request for a replay; warn if the agent did not report the replay as complete."""
        if self.state.history_length is None:
            log.warning("%s did not say where the replay of session %s ends: it may be cut off", self.agent, self.id)

    def _connection_ended(self, error: Exception) -> None:
        """Fail the turns whose prompts the agent had accepted; the others have failed with their requests."""
        for opened in self._tracker.drop_all():
            self._close_turn(opened, error)

    async def _ended(self) -> None:
        """End the session here: it was closed, or its connection has ended for good."""
        self._turns.extend(opened.turn for opened in self._tracker.drop_all())
        self._note_only()
        await super()._ended()


def _result_of(end: WorkEnd) -> v1.PromptResponse | PeerError:
    """The end of a turn as an agent of version 1 would have answered it."""
    if end.stop_reason != "error":
        reason: Any = UNKNOWN_REASON if end.stop_reason is None else end.stop_reason
        return v1.PromptResponse(reason, end.usage, meta=end.meta)
    if end.error is None:
        return PeerError(PROMPT, INTERNAL_ERROR, "the agent does not say why it failed")
    return PeerError(PROMPT, end.error.code, end.error.message, end.error.data)


def _as_v1(error: Exception) -> v1.PromptResponse | Exception:
    """The refusal of a prompt; one that was withdrawn before it began is cancelled."""
    if isinstance(error, PeerError) and error.code == REQUEST_CANCELLED:
        return v1.PromptResponse("cancelled")
    return error
