"""The order of version 2: a prompt's answer is a receipt, and the session's state says when work begins and ends.

The answer to a prompt and the updates have no fixed order between each other: the work may end before the answer. So
nothing here compares the two. What is compared are the states: work begins with `running` (or `requires_action`), and
ends with `idle` and a stop reason. What a message stands for is known by its id, whenever it comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from accord_check.conversation import Exchange, Frame, Told, Update, object_of
from accord_check.passive.observer import Observer
from accord_check.passive.turns import RACE, is_odd_reason

CANCELLED = -32800
_NEVER_INSERTED = (CANCELLED, -32602, -32000, -32002, -32601)
"""Codes that refuse a prompt for a reason of its own, and not because the agent is at work."""

ACTIVE = ("running", "requires_action")


@dataclass(slots=True)
class _Work:
    """The foreground work of a session, as its states tell it."""

    state: str = ""
    begun_by: Frame | None = None
    """The user's message that was inserted while nothing ran, until the work on it is reported."""
    cancelled: Frame | None = None
    """The cancel that the running work has not ended by yet."""
    last_cancel: Frame | None = None
    echoed: set[str] = field(default_factory=set[str])
    """The ids of the user's messages that were seen in updates."""
    receipts: dict[str, tuple[Exchange, bool]] = field(default_factory=dict[str, tuple[Exchange, bool]])
    """The answered prompts by their message ids, and whether work has ended since."""
    state_told: Frame | None = None
    """The last state update since the session was opened."""

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE


class States(Observer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._works: dict[str, _Work] = {}
        self._busy: set[int] = set()
        """The numbers of the prompts that were sent while their session was at work."""
        self._closed: dict[str, Frame] = {}

    def request(self, exchange: Exchange) -> None:
        session_id = exchange.session_id
        if self.conversation.version != 2 or exchange.by != "client" or session_id is None:
            return
        work = self._work(session_id)
        if exchange.method == "session/prompt" and work.is_active:
            self._busy.add(exchange.frame.number)
        elif exchange.method == "session/resume":
            work.state_told = None
            self._closed.pop(session_id, None)

    def notification(self, told: Told) -> None:
        if self.conversation.version != 2 or told.method != "session/cancel" or told.session_id is None:
            return
        work = self._work(told.session_id)
        session = self.conversation.session_of(told)
        if work.is_active or work.begun_by is not None or (session is not None and session.turns):
            work.cancelled = work.last_cancel = told.frame

    def answer(self, exchange: Exchange) -> None:
        session_id, frame = exchange.session_id, exchange.answered
        if self.conversation.version != 2 or exchange.by != "client" or session_id is None or frame is None:
            return
        work = self._work(session_id)
        if exchange.method == "session/prompt":
            if exchange.succeeded:
                self._receipt(exchange, work)
            else:
                self._refused(exchange, frame, work)
        elif exchange.method == "session/resume" and exchange.succeeded:
            wrong = None if work.state_told is not None else "no state_update came before the answer to session/resume"
            self.judge("lint.resume.state-told", wrong, exchange.frame, frame, session=session_id)
        elif exchange.method == "session/close" and exchange.succeeded:
            still = f"session/close was answered while the session was {work.state}" if work.is_active else None
            self.judge("lint.close.work-ended", still, exchange.frame, frame, session=session_id)
            self.saw("lint.close.nothing-after", "agent")
            self._closed[session_id] = frame
            self._works[session_id] = _Work(echoed=work.echoed, receipts=work.receipts)

    def update(self, update: Update) -> None:
        session_id, frame = update.told.session_id, update.told.frame
        if self.conversation.version != 2 or update.told.by != "agent" or session_id is None:
            return
        if (closing := self._closed.get(session_id)) is not None:
            what = f"{update.kind} came after the answer to session/close"
            self.found("lint.close.nothing-after", what, closing, frame, same=session_id, session=session_id)
            return
        work = self._work(session_id)
        replays = update.session is not None and update.session.replay is not None
        if update.kind in ("user_message", "user_message_chunk"):
            self._user_spoke(update, work, replays=replays)
        elif update.kind == "state_update":
            self._state(update, work, session_id, replays=replays)
        elif update.kind.startswith(("agent_message", "agent_thought")) and work.begun_by is not None and not replays:
            what = f"{update.kind} came before the session was reported to run"
            self.found("lint.work.running-first", what, work.begun_by, frame, same="output", session=session_id)
            work.begun_by = None

    def end(self) -> None:
        for session_id, work in self._works.items():
            for given, (exchange, has_ended) in work.receipts.items():
                if has_ended or given in work.echoed:
                    wrong = f"no user_message has the id {given!r} of the prompt's answer"
                    place = exchange.answered or exchange.frame
                    problem = None if given in work.echoed else wrong
                    self.judge("lint.prompt.echoed", problem, exchange.frame, place, session=session_id, same="no echo")

    def _work(self, session_id: str) -> _Work:
        return self._works.setdefault(session_id, _Work())

    def _receipt(self, exchange: Exchange, work: _Work) -> None:
        given = exchange.fields.get("messageId")
        if isinstance(given, str):
            work.receipts[given] = (exchange, False)
        if exchange.frame.number in self._busy:
            self.saw("lint.prompt.taken-while-busy", "agent")

    def _refused(self, exchange: Exchange, frame: Frame, work: _Work) -> None:
        code, cancelled = object_of(exchange.error).get("code"), work.last_cancel
        if cancelled is not None and exchange.frame.number < cancelled.number:
            wrong = None if code == CANCELLED else f"a prompt that waited at session/cancel was answered with {code}"
            self.judge("lint.prompt.held-cancelled", wrong, cancelled, frame, session=exchange.session_id)
            if not work.is_active and work.begun_by is None:
                work.cancelled = None  # the prompt was all that there was to cancel
        elif exchange.frame.number in self._busy:
            wrong = None if code in _NEVER_INSERTED else f"a prompt was refused with {code} while the session ran"
            self.judge("lint.prompt.taken-while-busy", wrong, exchange.frame, frame, session=exchange.session_id)

    def _user_spoke(self, update: Update, work: _Work, *, replays: bool) -> None:
        given = update.fields.get("messageId")
        is_new = isinstance(given, str) and given not in work.echoed
        if isinstance(given, str):
            work.echoed.add(given)
        if is_new and not replays and not work.is_active:
            work.begun_by = update.told.frame
            self.saw("lint.work.running-first", "agent")

    def _state(self, update: Update, work: _Work, session_id: str, *, replays: bool) -> None:
        state, frame = update.fields.get("state"), update.told.frame
        if not isinstance(state, str):
            return
        work.state_told = frame
        was_active, work.state = work.is_active, state
        if state in ACTIVE:
            work.begun_by = None
        if state != "idle" or replays:
            return
        reason = update.fields.get("stopReason")
        if work.begun_by is not None and reason is not None:
            what = "the work on a prompt ended without a report that it had begun"
            self.found("lint.work.running-first", what, work.begun_by, frame, session=session_id)
        elif not was_active:
            return
        self._ended(update, work, session_id)

    def _ended(self, update: Update, work: _Work, session_id: str) -> None:
        frame, reason = update.told.frame, update.fields.get("stopReason")
        work.begun_by = None
        work.receipts = {given: (exchange, True) for given, (exchange, _) in work.receipts.items()}
        cancelled, work.cancelled = work.cancelled, None
        wrong = None if isinstance(reason, str) else "the session became idle without a stop reason"
        self.judge("lint.work.stop-reason-told", wrong, frame, session=session_id)
        if not isinstance(reason, str):
            return
        odd = f"the stop reason is {reason[:60]!r}" if is_odd_reason(reason, "error") else None
        self.judge("lint.prompt.stop-reason", odd, frame, session=session_id)
        if reason == "error":
            told = isinstance(update.fields.get("error"), dict)
            self.judge("lint.work.error-told", None if told else "stopReason error has no error", frame)
        if cancelled is not None and not (reason != "cancelled" and frame.time - cancelled.time < RACE):
            late = f"the cancelled work ended with {reason!r}"
            self.judge(
                "lint.work.cancelled-told",
                None if reason == "cancelled" else late,
                cancelled,
                frame,
                session=session_id,
            )
