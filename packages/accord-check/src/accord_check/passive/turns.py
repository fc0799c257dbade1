"""Turns: updates stand before their answer, a cancelled turn ends as cancelled, and messages keep their ids."""

from __future__ import annotations

import re
from typing import Any, cast

from accord_check.conversation import MISSING, Exchange, Frame, Update
from accord_check.passive.observer import Observer
from accord_check.passive.sessions import REPLAYED

RACE = 0.5
"""Seconds in which an answer may cross a `session/cancel` on its way."""

_CURRENCY = re.compile(r"[A-Z]{3}")


_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")


class Turns(Observer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._last: dict[str, Exchange] = {}
        """The last answered prompt of each session about which the client has asked nothing since."""
        self._was_cancelled: set[int] = set()
        self._closing: set[str] = set()
        """Sessions that the client closes, which ends their turns."""
        self._unasked: list[tuple[Frame, str | None]] = []
        """The answers of turns that ended as cancelled, and that the client did not cancel by a message."""
        self._speakers: dict[tuple[str, str], str] = {}
        self._compactions: dict[tuple[str, Any], Any] = {}

    def frame(self, frame: Frame) -> None:
        # A client that has closed its side has cancelled its turns by that, and says nothing more.
        if frame.by == "client" and self._unasked:
            problem = "the turn ended as cancelled, but the client did not cancel it"
            for answered, session_id in self._unasked:
                self.found("lint.prompt.cancelled-unasked", problem, answered, session=session_id)
            self._unasked.clear()

    def request(self, exchange: Exchange) -> None:
        if exchange.by == "client" and exchange.session_id is not None:
            if exchange.method in ("session/close", "session/delete", "logout"):
                self._closing.add(exchange.session_id)
            else:  # what comes after any other request may be about that request
                self._last.pop(exchange.session_id, None)
            if exchange.method in ("session/prompt", "session/load", "session/resume"):
                self._closing.discard(exchange.session_id)
            if exchange.method == "session/load":
                self._speakers = {key: by for key, by in self._speakers.items() if key[0] != exchange.session_id}
                self._compactions = {key: by for key, by in self._compactions.items() if key[0] != exchange.session_id}

    def answer(self, exchange: Exchange) -> None:
        if exchange.method != "session/prompt" or exchange.answered is None or self.conversation.version != 1:
            return
        session = self.conversation.session_of(exchange)
        cancelled = session.cancelled if session is not None else None
        if cancelled is not None and session is not None and session.turns[:1] == [exchange]:
            self._cancelled(exchange, exchange.answered, cancelled)
        elif exchange.succeeded and exchange.session_id not in self._closing:
            self.saw("lint.prompt.cancelled-unasked", "agent")
            if exchange.fields.get("stopReason") == "cancelled":
                self._unasked.append((exchange.answered, exchange.session_id))
        if exchange.succeeded:
            self._reason(exchange, exchange.answered)
        if exchange.session_id is not None:
            self._last[exchange.session_id] = exchange
            self.saw("prompt.updates-before-answer", "agent")

    def update(self, update: Update) -> None:
        session_id = update.told.session_id
        if update.told.by != "agent" or session_id is None:
            return
        if self.conversation.version == 1:
            self._late(update, session_id)
            if update.kind in ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk"):
                self._speaker(update, session_id)
        if update.kind == "usage_update":
            cost = update.fields.get("cost")
            currency = cast("dict[str, Any]", cost).get("currency") if isinstance(cost, dict) else None
            if isinstance(currency, str):
                wrong = None if _CURRENCY.fullmatch(currency) else f"the currency is {currency!r}"
                self.judge("lint.usage.currency", wrong, update.told.frame)
        elif update.kind == "compaction_update":
            self._compaction(update, session_id)

    def _late(self, update: Update, session_id: str) -> None:
        last = self._last.get(session_id)
        replays = update.session is not None and update.session.replay is not None
        if update.kind not in REPLAYED or last is None or last.answered is None or replays:
            return
        is_cancelled = last.frame.number in self._was_cancelled
        name = "prompt.cancel.updates-before-answer" if is_cancelled else "prompt.updates-before-answer"
        self.found(
            name,
            f"{update.kind} came after the answer of its turn",
            last.answered,
            update.told.frame,
            same=f"after {last.frame.number}",
            session=session_id,
        )

    def _cancelled(self, exchange: Exchange, answered: Frame, cancelled: Frame) -> None:
        self._was_cancelled.add(exchange.frame.number)
        self.saw("prompt.cancel.updates-before-answer", "agent")
        places = (cancelled, answered)
        after = answered.time - cancelled.time
        if exchange.error is not MISSING:
            failed = f"the cancelled prompt was answered with the error {exchange.error!r:.120}"
            self.judge("prompt.cancel.errors-hidden", failed, *places, session=exchange.session_id)
            return
        self.saw("prompt.cancel.errors-hidden", "agent")
        reason = exchange.fields.get("stopReason")
        if reason != "cancelled" and 0 <= after < RACE and isinstance(reason, str):
            return  # the answer was on its way
        wrong = None if reason == "cancelled" else f"the cancelled prompt ended with {reason!r} {after:.1f} s later"
        self.judge("prompt.cancel.answers-cancelled", wrong, *places, session=exchange.session_id)

    def _reason(self, exchange: Exchange, answered: Frame) -> None:
        reason = exchange.fields.get("stopReason")
        if isinstance(reason, str):
            problem = f"the stop reason is {reason[:60]!r}" if is_odd_reason(reason) else None
            self.judge("lint.prompt.stop-reason", problem, answered, session=exchange.session_id)

    def _speaker(self, update: Update, session_id: str) -> None:
        given = update.fields.get("messageId")
        if not isinstance(given, str):
            return
        by = "user" if update.kind.startswith("user") else "agent"
        first = self._speakers.setdefault((session_id, given), by)
        session = update.session
        if session is not None and session.replay is not None:
            return  # judged as a replay
        wrong = None if first == by else f"the message id {given!r} is used for a message of the user and of the agent"
        self.judge("message.id.changes", wrong, update.told.frame, session=session_id)

    def _compaction(self, update: Update, session_id: str) -> None:
        given, status = update.fields.get("compactionId"), update.fields.get("status")
        before = self._compactions.get((session_id, given))
        ended = before in ("completed", "failed", "cancelled")
        wrong = (
            f"the compaction {given!r} began again after it had ended" if ended and status == "in_progress" else None
        )
        self.judge("compaction.own-id", wrong, update.told.frame, session=session_id)
        left = (
            f"a compaction that has the status {status!r} has a summary"
            if status in ("failed", "cancelled") and update.fields.get("summary")
            else None
        )
        self.judge("compaction.summary-only-completed", left, update.told.frame, session=session_id)
        if isinstance(given, str):
            self._compactions[session_id, given] = status


def is_odd_reason(reason: str, *more: str) -> bool:
    """Whether a stop reason is not of the protocol. A word in another case has a finding of its own already."""
    known = [word.replace("_", "") for word in (*_REASONS, *more)]
    return not reason.startswith("_") and re.sub("[_-]", "", reason).lower() not in known
