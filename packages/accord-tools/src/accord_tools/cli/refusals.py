"""Permission where no user can be asked: what `--allow` grants, and a word about what it refuses.

`--non-interactive deny` (the default) goes on after a refusal. `--non-interactive fail` ends the turn at the first one,
and the command with an exit code of its own: a job in CI then does not look as if it had done its work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from accord.printable import label

if TYPE_CHECKING:
    from accord import PermissionQuestion
    from accord.services.permissions.question import Ask, Choice

TOLD = 5
"""Refusals that are told one by one."""
TITLE = 100


class Refusals:
    """Answers requests for permission without a user, and counts those that it refuses."""

    def __init__(self, allows: Ask, note: Callable[[str], None], *, fails: bool) -> None:
        self.count = 0
        self.end_turn: Callable[[], None] | None = None
        """Asks the running turn to stop."""
        self.fails = fails
        self._allows = allows
        self._note = note

    def answer(self, question: PermissionQuestion) -> Choice:
        """For `Permissions(ask)`."""
        allowed = self._allows(question)
        assert isinstance(allowed, bool)
        if not allowed:
            self._refused(question)
        return allowed

    def close(self) -> None:
        """Tell how many refusals were not told one by one."""
        if self.count > TOLD:
            self._note(f"accord run: refused {self.count - TOLD:,} more requests")

    def _refused(self, question: PermissionQuestion) -> None:
        self.count += 1
        if self.count <= TOLD:
            self._note(f"accord run: refused {describe(question)}; {remedy(question)} would allow it")
        if self.fails and self.end_turn is not None:
            self.end_turn()


def describe(question: PermissionQuestion) -> str:
    """What an agent asked for, safe for a terminal."""
    call = question.tool_call
    return f"({call.kind}) {label(question.title, TITLE) or 'a request without a title'}"


def remedy(question: PermissionQuestion) -> str:
    """The options that would allow it."""
    from accord.services.permissions.question import allow_reads

    return "--allow reads" if allow_reads(question) else "--allow all, or a rule of --policy FILE,"
