"""Turns: the order of a prompt, its updates and its end.

In version 1 the answer to a prompt ends the turn: updates come before it, and a cancelled turn ends as cancelled.

In version 2 the answer is a receipt, and the session's state shows when work begins and ends. The answer and the
updates have no fixed order: the work may end before the answer. So `States` never compares the two. It compares the
states: work begins with `running` (or `requires_action`), and ends with `idle` and a stop reason. A message is
identified by its id, whenever it comes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from accord.errors import AUTH_REQUIRED, INVALID_PARAMS, METHOD_NOT_FOUND, NOT_FOUND, REQUEST_CANCELLED
from accord_check.conversation import MISSING, Exchange, Frame, Message, Update, object_of
from accord_check.passive.observer import Observer
from accord_check.passive.sessions import REPLAYED, replays_past

RACE = 0.5
"""Seconds within which an answer may cross a `session/cancel` on its way."""

_CURRENCY = re.compile(r"[A-Z]{3}")


_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")


class Turns(Observer):
    def begin(self) -> None:
        self._last: dict[str, Exchange] = {}
        """The last answered prompt of each session, if the client has asked nothing about it since."""
        self._was_cancelled: set[int] = set()
        self._closing: set[str] = set()
        """Sessions that the client closes, which ends their turns."""
        self._unasked: list[tuple[Frame, str | None]] = []
        """The answers of turns that ended as cancelled, and that the client did not cancel by a message."""
        self._speakers: dict[tuple[str, str], str] = {}
        self._compactions: dict[tuple[str, Any], Any] = {}

    def frame(self, frame: Frame) -> None:
        # A client that has closed its side has thereby cancelled its turns, and sends nothing more.
        if frame.by == "client" and self._unasked:
            problem = "the turn ended as cancelled, but the client did not cancel it"
            for answered, session_id in self._unasked:
                self.found("lint.prompt.cancelled-unasked", problem, answered, session=session_id)
            self._unasked.clear()

    def request(self, exchange: Exchange) -> None:
        if exchange.by == "client" and exchange.session_id is not None:
            if exchange.method in ("session/close", "session/delete", "logout"):
                self._closing.add(exchange.session_id)
            else:  # messages after any other request may be about that request
                self._last.pop(exchange.session_id, None)
            if exchange.method in ("session/prompt", "session/load", "session/resume"):
                self._closing.discard(exchange.session_id)
            if exchange.method == "session/load":
                self._speakers = {key: by for key, by in self._speakers.items() if key[0] != exchange.session_id}
                self._compactions = {key: by for key, by in self._compactions.items() if key[0] != exchange.session_id}

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        if exchange.method != "session/prompt" or self.conversation.version != 1:
            return
        session = self.conversation.session_of(exchange)
        cancelled = session.cancelled if session is not None else None
        if cancelled is not None and session is not None and session.turns[:1] == [exchange]:
            self._cancelled(exchange, frame, cancelled)
        elif exchange.succeeded and exchange.session_id not in self._closing:
            self.saw("lint.prompt.cancelled-unasked", "agent")
            if exchange.fields.get("stopReason") == "cancelled":
                self._unasked.append((frame, exchange.session_id))
        if exchange.succeeded and isinstance(reason := exchange.fields.get("stopReason"), str):
            verdict = not is_odd_reason(reason) or f"the stop reason is {reason[:60]!r}"
            self.judge("lint.prompt.stop-reason", verdict, frame)
        if exchange.session_id is not None:
            self._last[exchange.session_id] = exchange
            self.saw("prompt.updates-before-answer", "agent")

    def update(self, update: Update) -> None:
        session_id = update.session_id
        if self.conversation.version == 1:
            self._late(update, session_id)
            if update.kind in ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk"):
                self._speaker(update, session_id)
        if update.kind == "usage_update":
            currency = object_of(update.fields.get("cost")).get("currency")
            if isinstance(currency, str):
                wrong = None if _CURRENCY.fullmatch(currency) else f"the currency is {currency!r}"
                self.judge("lint.usage.currency", wrong, update)
        elif update.kind == "compaction_update":
            self._compaction(update, session_id)

    def _late(self, update: Update, session_id: str) -> None:
        last = self._last.get(session_id)
        if update.kind not in REPLAYED or last is None or last.answered is None or update.is_replayed:
            return
        is_cancelled = last.frame.number in self._was_cancelled
        name = "prompt.cancel.updates-before-answer" if is_cancelled else "prompt.updates-before-answer"
        self.found(
            name,
            f"{update.kind} came after the answer of its turn",
            last.answered,
            update,
            same=f"after {last.frame.number}",
        )

    def _cancelled(self, exchange: Exchange, answered: Frame, cancelled: Frame) -> None:
        self._was_cancelled.add(exchange.frame.number)
        self.saw("prompt.cancel.updates-before-answer", "agent")
        places = (cancelled, answered)
        after = answered.time - cancelled.time
        if exchange.error is not MISSING:
            failed = f"the cancelled prompt was answered with the error {exchange.error!r:.120}"
            self.judge("prompt.cancel.errors-hidden", failed, *places)
            return
        self.saw("prompt.cancel.errors-hidden", "agent")
        reason = exchange.fields.get("stopReason")
        if reason != "cancelled" and 0 <= after < RACE and isinstance(reason, str):
            return  # the answer was on its way
        verdict = reason == "cancelled" or f"the cancelled prompt ended with {reason!r} {after:.1f} s later"
        self.judge("prompt.cancel.answers-cancelled", verdict, *places)

    def _speaker(self, update: Update, session_id: str) -> None:
        given = update.fields.get("messageId")
        if not isinstance(given, str):
            return
        by = "user" if update.kind.startswith("user") else "agent"
        first = self._speakers.setdefault((session_id, given), by)
        if update.is_replayed:
            return  # judged as a replay
        verdict = first == by or f"the message id {given!r} is used for a message of the user and of the agent"
        self.judge("message.id.changes", verdict, update)

    def _compaction(self, update: Update, session_id: str) -> None:
        given, status = update.fields.get("compactionId"), update.fields.get("status")
        before = self._compactions.get((session_id, given))
        ended = before in ("completed", "failed", "cancelled")
        verdict = not (ended and status == "in_progress") or f"the compaction {given!r} began again after it had ended"
        self.judge("compaction.own-id", verdict, update)
        verdict = (
            not (status in ("failed", "cancelled") and update.fields.get("summary"))
            or f"a compaction that has the status {status!r} has a summary"
        )
        self.judge("compaction.summary-only-completed", verdict, update)
        if isinstance(given, str):
            self._compactions[session_id, given] = status


def is_odd_reason(reason: str, *more: str) -> bool:
    """Whether a stop reason is not of the protocol. A word in another case has its own finding already."""
    known = [word.replace("_", "") for word in (*_REASONS, *more)]
    return not reason.startswith("_") and re.sub("[_-]", "", reason).lower() not in known


_NEVER_INSERTED = (REQUEST_CANCELLED, INVALID_PARAMS, AUTH_REQUIRED, NOT_FOUND, METHOD_NOT_FOUND)
"""Codes that refuse a prompt for its own reason, and not because the agent is at work."""

ACTIVE = ("running", "requires_action")


@dataclass(slots=True)
class _LiveReplay:
    """The replay of a session at work. Updates that were on their way at the request may come before the
    replayed ones.
    """

    known: frozenset[str]
    """The ids of the user's messages that the client had at the request; one that comes again is replayed."""
    begun_by: Frame | None = None


@dataclass(slots=True)
class _Work:
    """The foreground work of a session, by its states."""

    state: str = ""
    begun_by: Frame | None = None
    """The user's message that was inserted while nothing ran, until the work on it is reported."""
    cancelled: Frame | None = None
    """The cancel by which the running work has not ended yet."""
    last_cancel: Frame | None = None
    echoed: set[str] = field(default_factory=set[str])
    """The ids of the user's messages that were seen in updates."""
    receipts: dict[str, tuple[Exchange, bool]] = field(default_factory=dict[str, tuple[Exchange, bool]])
    """The answered prompts by their message ids, and whether work has ended since."""
    last_state: Frame | None = None
    """The last state update since the session was opened, and since its replay was complete."""
    replay: _LiveReplay | None = None
    """The replay of a session that was at work when it was asked for, until it is complete."""

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE


class States(Observer):
    version = 2

    def begin(self) -> None:
        self._works: dict[str, _Work] = {}
        self._busy: set[int] = set()
        """The numbers of the prompts that were sent while their session was at work."""
        self._closed: dict[str, Frame] = {}

    def request(self, exchange: Exchange) -> None:
        session_id = exchange.session_id
        if exchange.by != "client" or session_id is None:
            return
        work = self._work(session_id)
        if exchange.method == "session/prompt" and work.is_active:
            self._busy.add(exchange.frame.number)
        elif exchange.method == "session/resume":
            work.last_state = None
            is_live = work.is_active and replays_past(exchange)
            work.replay = _LiveReplay(frozenset(work.echoed)) if is_live else None
            self._closed.pop(session_id, None)

    def notification(self, message: Message) -> None:
        if message.method != "session/cancel" or message.session_id is None:
            return
        work = self._work(message.session_id)
        session = self.conversation.session_of(message)
        if work.is_active or work.begun_by is not None or (session is not None and session.turns):
            work.cancelled = work.last_cancel = message.frame

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        session_id = exchange.session_id
        if exchange.by != "client" or session_id is None:
            return
        work = self._work(session_id)
        if exchange.method == "session/prompt":
            if exchange.succeeded:
                self._receipt(exchange, work)
            else:
                self._refused(exchange, frame, work)
        elif exchange.method == "session/resume" and exchange.succeeded:
            work.replay = None
            verdict = work.last_state is not None or "no state_update came before the answer to session/resume"
            self.judge("lint.resume.state-told", verdict, exchange)
        elif exchange.method == "session/close" and exchange.succeeded:
            verdict = not work.is_active or f"session/close was answered while the session was {work.state}"
            self.judge("lint.close.work-ended", verdict, exchange)
            self.saw("lint.close.nothing-after", "agent")
            self._closed[session_id] = frame
            self._works[session_id] = _Work(echoed=work.echoed, receipts=work.receipts)

    def update(self, update: Update) -> None:
        session_id, frame = update.session_id, update.frame
        if (closing := self._closed.get(session_id)) is not None:
            what = f"{update.kind} came after the answer to session/close"
            self.found("lint.close.nothing-after", what, closing, frame, same=session_id)
            return
        work = self._work(session_id)
        if update.kind in ("user_message", "user_message_chunk"):
            self._user_spoke(update, work)
        elif update.kind == "state_update":
            self._state(update, work)
        elif update.kind == "replay_complete" and update.is_replayed:
            work.last_state = None
            if work.replay is not None:
                self.saw("lint.replay.live-held", "agent")
            work.replay = None
        elif (
            update.kind.startswith(("agent_message", "agent_thought"))
            and work.begun_by is not None
            and not update.is_replayed
        ):
            what = f"{update.kind} came before the session was reported to run"
            self.found("lint.work.running-first", what, work.begun_by, frame, same="output")
            work.begun_by = None

    def end(self) -> None:
        for session_id, work in self._works.items():
            for given, (exchange, has_ended) in work.receipts.items():
                if has_ended or given in work.echoed:
                    wrong = f"no user_message has the id {given!r} of the prompt's answer"
                    verdict = given in work.echoed or wrong
                    self.judge("lint.prompt.echoed", verdict, exchange, session=session_id, same="no echo")

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
            verdict = code == REQUEST_CANCELLED or f"a prompt that waited at session/cancel was answered with {code}"
            self.judge("lint.prompt.held-cancelled", verdict, cancelled, frame)
            if not work.is_active and work.begun_by is None:
                work.cancelled = None  # the prompt was all that could be cancelled
        elif exchange.frame.number in self._busy:
            verdict = code in _NEVER_INSERTED or f"a prompt was refused with {code} while the session ran"
            self.judge("lint.prompt.taken-while-busy", verdict, exchange)

    def _user_spoke(self, update: Update, work: _Work) -> None:
        given = update.fields.get("messageId")
        is_new = isinstance(given, str) and given not in work.echoed
        if work.replay is not None and work.replay.begun_by is None and given in work.replay.known:
            work.replay.begun_by = update.frame
        if isinstance(given, str):
            work.echoed.add(given)
        if is_new and not update.is_replayed and not work.is_active:
            work.begun_by = update.frame
            self.saw("lint.work.running-first", "agent")

    def _state(self, update: Update, work: _Work) -> None:
        state, frame = update.fields.get("state"), update.frame
        if not isinstance(state, str):
            return
        work.last_state = frame
        if work.replay is not None and work.replay.begun_by is not None:
            what = f"the state {state[:60]!r} came in the middle of a replay"
            self.found("lint.replay.live-held", what, work.replay.begun_by, frame)
        was_active, work.state = work.is_active, state
        if state in ACTIVE:
            work.begun_by = None
        if state != "idle" or update.is_replayed:
            return
        reason = update.fields.get("stopReason")
        if work.begun_by is not None and reason is not None:
            what = "the work on a prompt ended without a report that it had begun"
            self.found("lint.work.running-first", what, work.begun_by, frame)
        elif not was_active:
            return
        self._ended(update, work)

    def _ended(self, update: Update, work: _Work) -> None:
        frame, reason = update.frame, update.fields.get("stopReason")
        work.begun_by = None
        work.receipts = {given: (exchange, True) for given, (exchange, _) in work.receipts.items()}
        cancelled, work.cancelled = work.cancelled, None
        verdict = isinstance(reason, str) or "the session became idle without a stop reason"
        self.judge("lint.work.stop-reason-told", verdict, frame)
        if not isinstance(reason, str):
            return
        verdict = not is_odd_reason(reason, "error") or f"the stop reason is {reason[:60]!r}"
        self.judge("lint.prompt.stop-reason", verdict, frame)
        if reason == "error":
            has_error = isinstance(update.fields.get("error"), dict)
            self.judge("lint.work.error-told", has_error or "stopReason error has no error", frame)
        if cancelled is not None and not (reason != "cancelled" and frame.time - cancelled.time < RACE):
            late = f"the cancelled work ended with {reason!r}"
            self.judge("lint.work.cancelled-told", reason == "cancelled" or late, cancelled, frame)
