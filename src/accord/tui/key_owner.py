"""`KeyOwner`: who takes the keys while a question is open: the question, or the editor. PURE.

A letter of a sentence must not allow anything. An agent chooses when it asks, and a question appears under the
hands of somebody who types. So one rule decides, for every question: it takes keys and clicks once no key has come for
half a second, counted from when it was painted. A key that comes earlier belongs to the editor, and the half second
begins again. A text in the editor keeps the keys there; emptying the editor gives them back, after the same half
second. Tab gives the keys to the other side.

The times are those at which the events came, not those at which they were handled: a chat that was busy must not take
a key of before for an answer.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Owner: TypeAlias = Literal["question", "editor"]

QUIET = 0.5
"""Seconds without a key, after a question was painted, until the question takes keys."""


class KeyOwner:
    """Who takes the keys."""

    def __init__(self) -> None:
        self._question: object = None
        self._quiet_since: float | None = None
        """When the latest key came, or the question was painted; None while it is not painted."""
        self._is_editor_empty = True
        self._wanted: Owner | None = None
        """The side that the user has chosen with tab."""

    def ask(self, question: object) -> None:
        """Take the question that is shown now; None if there is none."""
        if question is not self._question:
            self._question, self._quiet_since, self._wanted = question, None, None

    def paint(self, question: object, now: float) -> None:
        """Note that this question has been painted."""
        if question is self._question and self._quiet_since is None:
            self._quiet_since = now

    def edit(self, *, is_empty: bool) -> None:
        """Note whether the editor is empty."""
        if is_empty and not self._is_editor_empty:
            self._wanted = None
        self._is_editor_empty = is_empty

    def tab(self, now: float) -> None:
        """Give the keys to the other side."""
        if self.is_painted:
            self._wanted = "editor" if self.side == "question" else "question"
            self._quiet_since = now

    def key(self, now: float) -> Owner:
        """Return who takes a key that came at this time. Each one that the editor takes begins the half second."""
        owner = self.owner(now)
        if owner == "editor":
            self.typed(now)
        return owner

    def typed(self, now: float) -> None:
        """Note a key that the editor takes, also because the question has no use for it."""
        if self._quiet_since is not None:
            self._quiet_since = max(now, self._quiet_since)
        if self._wanted == "question":
            self._wanted = None

    @property
    def is_painted(self) -> bool:
        """Whether the question has been painted."""
        return self._quiet_since is not None

    @property
    def side(self) -> Owner:
        """Who takes the keys once it has been quiet."""
        if self._question is None:
            return "editor"
        return self._wanted or ("question" if self._is_editor_empty else "editor")

    def is_quiet(self, now: float) -> bool:
        """Whether no key has come for long enough since the question was painted: then it takes clicks."""
        return self._question is not None and self._quiet_since is not None and now - self._quiet_since >= QUIET

    def owner(self, now: float) -> Owner:
        """Who takes a key that comes now."""
        return self.side if self.is_quiet(now) else "editor"
