"""`ScopedAnswers`: the user's answers that hold for longer than one question, and where they hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from accord.services.permissions.question import PermissionQuestion
from accord.services.permissions.remembered import RememberedAnswers, covered
from accord.services.service import ServedSession

Scope: TypeAlias = Literal["session", "folder", "everywhere"]

SCOPES: dict[Scope, str] = {
    "session": "in this session",
    "folder": "in this folder, also in later chats",
    "everywhere": "in every folder, also in later chats",
}
"""Where an answer may hold, in words."""


class HeldAnswer(NamedTuple):
    """An answer that holds until its session ends."""

    session_id: str
    kind: str
    what: str
    allowed: bool


class ScopedAnswers(RememberedAnswers):
    """Answers for a session, which are kept here, and for a folder or everywhere, which are kept in the user's file.

    An "always" that an agent offers goes into the file only if `remembers` says so: the agent keeps it by itself.
    """

    def __init__(self, path: str | Path | None = None, *, remembers: bool = False) -> None:
        super().__init__(path)
        self._remembers = remembers
        self._held: dict[tuple[str, str, str], bool] = {}

    def keep(self, question: PermissionQuestion, scope: Scope, *, allowed: bool) -> None:
        """Let this answer hold in a scope. Raises OSError or ValueError if it cannot be written."""
        if scope == "session":
            self._held[_place(question.session, question)] = allowed
        else:
            super().remember(question, allowed=allowed, everywhere=scope == "everywhere")

    def recall(self, question: PermissionQuestion) -> bool | None:
        held = self._held.get(_place(question.session, question))
        return super().recall(question) if held is None else held

    def remember(self, question: PermissionQuestion, *, allowed: bool, everywhere: bool = False) -> None:
        if self._remembers:
            super().remember(question, allowed=allowed, everywhere=everywhere)

    def held(self, session_id: str) -> Iterator[HeldAnswer]:
        """The answers that hold in a session."""
        for (name, kind, what), allowed in self._held.items():
            if name == session_id:
                yield HeldAnswer(name, kind, what, allowed)

    def release(self, answer: HeldAnswer) -> None:
        """Forget an answer that holds in a session."""
        self._held.pop((answer.session_id, answer.kind, answer.what), None)


def _place(session: ServedSession, question: PermissionQuestion) -> tuple[str, str, str]:
    return session.id, question.tool_call.kind, covered(question)
