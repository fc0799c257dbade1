"""`Turn`: a prompt and the work on it, in either version of the protocol.

In version 1 the answer to the prompt ends the turn. In version 2 the answer is a receipt, and the turn ends with the
first idle state that ends work; it may come before the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accord_check.conversation import MISSING, Exchange, Frame, object_of


@dataclass(slots=True, frozen=True)
class State:
    """A state of a session that the agent has told."""

    frame: Frame
    state: str
    reason: str | None
    error: Any = MISSING


class Turn:
    """A prompt that was sent; it has the members of an `Exchange` that say how it ended."""

    def __init__(self, exchange: Exchange, states: Sequence[State] | None) -> None:
        self.exchange = exchange
        self.method = exchange.method
        self.frame = exchange.frame
        self._states = states
        """The states of the session, as they come; None in version 1."""

    @property
    def end(self) -> State | None:
        """The state that ended the work, in version 2."""
        runs = False
        for told in self._states or ():
            if told.frame.number < self.frame.number:
                continue
            if told.state == "idle" and (runs or told.reason is not None):
                return told
            runs = runs or told.state in ("running", "requires_action")
        return None

    @property
    def is_refused(self) -> bool:
        """Whether the prompt was answered with an error."""
        return self.exchange.answered is not None and not self.exchange.succeeded

    @property
    def is_over(self) -> bool:
        if self._states is None or self.is_refused:
            return self.exchange.answered is not None
        return self.exchange.answered is not None and self.end is not None

    @property
    def answered(self) -> Frame | None:
        """The frame that ended the turn; None while it runs."""
        if not self.is_over:
            return None
        return self.exchange.answered if self.end is None else self.end.frame

    @property
    def reason(self) -> Any:
        """The stop reason; None if there is none."""
        return self.exchange.fields.get("stopReason") if self._states is None else self.end and self.end.reason

    @property
    def error(self) -> Any:
        """The error that ended the turn; `MISSING` if it did not fail."""
        failed = self.end is not None and self.end.reason == "error"
        if failed and self.end is not None:
            return object_of(self.end.error) or {"code": None, "message": "no error was told"}
        return self.exchange.error

    @property
    def succeeded(self) -> bool:
        return self.is_over and self.error is MISSING
