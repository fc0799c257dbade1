"""The user's answers that hold in later runs, kept only where the user said so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from accord import PermissionQuestion, RememberedAnswers


class KeptAnswers(RememberedAnswers):
    """The file of remembered answers, which gets only those that `keep` was called with before."""

    def __init__(self, note: Callable[[str], None], path: str | Path | None = None) -> None:
        super().__init__(path)
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._to_keep: list[PermissionQuestion] = []

    def keep(self, question: PermissionQuestion) -> None:
        """The answer to this question is to hold in later runs. For `TerminalUser(keep=...)`."""
        self._to_keep.append(question)

    def remember(self, question: PermissionQuestion, *, allowed: bool, everywhere: bool = False) -> None:
        """Remember the answer, if it is to be kept."""
        if not any(question is kept for kept in self._to_keep):
            return
        try:
            super().remember(question, allowed=allowed, everywhere=everywhere)
        except (OSError, ValueError) as error:
            # Answers are written in a thread.
            self._loop.call_soon_threadsafe(self._note, f"accord run: the answer holds for this run only: {error}")
