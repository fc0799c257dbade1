"""Decides when prompts begin and end in version 2, as far as a session's updates show it. PURE.

Version 2 answers a prompt with a receipt, and reports the work by the session's state. It does not report which prompt
an `idle` belongs to, and the receipt and the updates may come in any order. These are the rules:

- Updates are numbered as they arrive.
- An *end of work* is an `idle` after any other state; or, because some agents leave out `running`, an `idle` with a
  stop reason after an `idle`, if a message of the user was inserted between them. If a prompt waits for its receipt, it
  is enough that the agent spoke between them, or has never told of a state other than `idle`: such agents end their
  work before the receipt. An `idle` after nothing else, such as the one that some agents send after `session/new`, and
  one that repeats the last, for instance to report on background work, end nothing.
- A prompt *begins* where its message was first told of. The receipt names the message. If the message is told of later,
  the prompt begins there; if it never is, the prompt begins where the receipt came.
- A prompt is *done* with the first end of work after its beginning, which may have come before the receipt.
- Some agents never tell of a message, and send the receipt last. So a prompt whose message was not told of when its
  receipt comes is done by the first end of work that has ended no other prompt, if that work began after the prompt was
  sent, and if the agent has left out `running` then or has never told of a prompt's message.

So one end of work can be that of several prompts, when the agent adds a second prompt to its running work; and the end
of work that the agent began itself is not the end of a prompt that still waits.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, Generic, TypeVar

import msgspec

from accord.schema import v2
from accord.schema.base import Unknown
from accord.session import updates

IDLE = "idle"
SPEECH = (v2.AgentMessageChunk, v2.AgentThoughtChunk, v2.AgentMessage)


class UpdateMark(msgspec.Struct, frozen=True):
    """A moment in a session."""

    number: int
    """The number of the update that was the last one then."""
    place: int
    """How many entries the timeline had."""


class WorkEnd(msgspec.Struct, frozen=True):
    """An end of work."""

    began: int
    """The number of the update with which the work began."""
    is_bare: bool
    """Whether the agent left out `running`."""
    at: UpdateMark
    stop_reason: str | None
    """Why the work ended; None if the agent does not report it."""
    error: v2.Error | None
    usage: updates.Usage | None
    meta: dict[str, Any] | None


class TrackedPrompt:
    """A prompt, from sending it until it is done or fails."""

    __slots__ = ("begun", "message_id", "receipt", "sent", "sent_while_idle")

    def __init__(self) -> None:
        self.sent: UpdateMark
        """The time of sending."""
        self.sent_while_idle: bool
        """Whether the agent did nothing when it was sent."""
        self.message_id: str | None = None
        """The id of its message; None before the receipt."""
        self.receipt: UpdateMark | None = None
        """The time of the receipt."""
        self.begun: UpdateMark | None = None
        """The place where its message was first reported; None before."""


PromptT = TypeVar("PromptT", bound=TrackedPrompt)


class V2TurnTracker(Generic[PromptT]):
    """The foreground work of one session, and the prompts that are not done."""

    def __init__(self, timeline: Sized) -> None:
        self._timeline = timeline
        self.number = 0
        """The number of the last update."""
        self.is_working = False
        """Whether the agent works, or waits for the user to continue; also when it lost track of that."""
        self.prompts: list[PromptT] = []
        """The prompts that are not done, in the order in which they were sent."""
        self.spoke = False
        """Whether the agent began a message since the last end of work and the last prompt; the caller may set it."""
        self.tells_messages = False
        """Whether the agent has reported the message of a prompt."""
        self._tells_work = False
        """Whether the agent has reported a state other than `idle`."""
        self._began = 0
        """The number of the update with which the present work began."""
        self._without_receipt = 0
        """How many of the prompts have no receipt."""
        self._inserted = False
        """Whether a message of the user was inserted since the last end of work."""
        self._reported: dict[str, UpdateMark] = {}
        """Where messages of the user were first reported, as long as a prompt has no receipt."""
        self._ends: list[WorkEnd] = []
        """The ends of work, as long as a prompt has no receipt."""
        self._claimable: list[WorkEnd] = []
        """The ends of work that have ended no prompt."""
        self._claimed: WorkEnd | None = None
        """The last end of work that ended a prompt whose message was not reported."""

    @property
    def unclaimed(self) -> int | None:
        """Return the number of the first message of the user that may belong to a prompt without a receipt; None if
        none.
        """
        return min(mark.number for mark in self._reported.values()) if self._reported else None

    # Prompts

    def _now(self) -> UpdateMark:
        return UpdateMark(self.number, len(self._timeline))

    def sent(self, prompt: PromptT) -> None:
        """A prompt was sent."""
        prompt.sent = self._now()
        prompt.sent_while_idle = not self.prompts and not self.is_working
        self.spoke = False
        self.prompts.append(prompt)
        self._without_receipt += 1

    def received_receipt(self, prompt: PromptT, message_id: str) -> WorkEnd | None:
        """Note the receipt of a prompt; returns the end of its work if that has come before."""
        prompt.message_id, prompt.receipt = message_id, self._now()
        self._without_receipt -= prompt in self.prompts  # one that was dropped is not counted
        prompt.begun = self._reported.pop(message_id, None)
        if prompt.begun is not None:
            self.tells_messages = True
            begun = prompt.begun.number
            ended = next((end for end in self._ends if end.at.number > begun), None) if self._ends else None
        else:
            ended = self._claim(prompt)
            self._inserted = self._inserted or ended is None
        if ended is not None:
            if prompt in self.prompts:
                self.prompts.remove(prompt)
            if ended in self._claimable:
                self._claimable.remove(ended)
        self._forget()
        return ended

    def _claim(self, prompt: TrackedPrompt) -> WorkEnd | None:
        """Return the end of work of a prompt whose message was not reported; None if that is still to come."""
        if self._reported:
            return None  # the agent reports messages, and this one will follow
        last = self._claimed
        for end in self._claimable:
            if end.began > prompt.sent.number and (end.is_bare or not self.tells_messages):
                follows = last is not None and last.at.number > prompt.sent.number
                prompt.begun = (
                    UpdateMark(last.at.number + 1, last.at.place) if last is not None and follows else prompt.sent
                )
                self._claimed = end
                return end
        if last is not None and last.at.number > prompt.sent.number and not self.tells_messages:
            prompt.begun = prompt.sent  # it was added to the work of a prompt whose receipt came last as well
            return last
        return None

    def dropped(self, prompt: PromptT) -> None:
        """A prompt was refused, withdrawn, or is not waited for any more."""
        if prompt in self.prompts:
            self.prompts.remove(prompt)
            self._without_receipt -= prompt.receipt is None
        self._forget()

    def drop_all(self) -> list[PromptT]:
        """Forget the agent's work at the end of the connection, and return the prompts that were not done."""
        dropped, self.prompts = self.prompts, []
        self.is_working, self._inserted, self._without_receipt = False, False, 0
        self._forget()
        return dropped

    def _forget(self) -> None:
        """Forget the data that only prompts without a receipt need."""
        if not self._without_receipt and (self._reported or self._ends):
            self._reported.clear()
            self._ends.clear()
            self._claimable.clear()
            self._claimed = None

    # Updates

    def received(self, update: Any) -> tuple[WorkEnd, Sequence[PromptT]] | None:
        """Take the next update, before it is in the timeline.

        Returns the end of work that this update reports, with the prompts that it ends; None for any other update.
        """
        self.number += 1
        kind = update.__class__
        if kind is v2.SessionStateUpdate:
            if update.state == IDLE:
                return self._idle(update)
            self._works()
        elif kind in SPEECH:
            self.spoke = True
        elif kind is v2.UserMessage or kind is v2.UserMessageChunk:
            self._user_message(update.message_id)
        elif kind is Unknown and update.tag == v2.SessionStateUpdate.__struct_config__.tag:
            self._works()
        return None

    def _user_message(self, message_id: str) -> None:
        self._inserted = True
        for prompt in self.prompts:
            if prompt.message_id == message_id:
                if prompt.begun is None:
                    prompt.begun = self._now()
                    self.tells_messages = True
                return
        if self._without_receipt and message_id not in self._reported:
            self._reported[message_id] = self._now()

    def _idle(self, update: v2.SessionStateUpdate) -> tuple[WorkEnd, Sequence[PromptT]] | None:
        is_bare, self.is_working = not self.is_working, False
        if is_bare and (update.stop_reason is None or not self._may_have_worked):
            return None
        self._inserted = self.spoke = False
        began = self.number if is_bare else self._began
        end = WorkEnd(began, is_bare, self._now(), update.stop_reason, update.error, update.usage, update.meta)
        if self._without_receipt:
            self._ends.append(end)
            done = [prompt for prompt in self.prompts if prompt.receipt is not None]
            self.prompts = [prompt for prompt in self.prompts if prompt.receipt is None]
        else:
            done, self.prompts = self.prompts, []
        if self._without_receipt and not done:
            self._claimable.append(end)
        for prompt in done:
            if prompt.begun is None:
                prompt.begun = prompt.receipt
        return end, done

    def _works(self) -> None:
        if not self.is_working:
            self._began = self.number
        self.is_working = self._tells_work = True

    @property
    def _may_have_worked(self) -> bool:
        """Whether the agent may have worked unreported since it was idle."""
        return self._inserted or (self._without_receipt > 0 and (self.spoke or not self._tells_work))
