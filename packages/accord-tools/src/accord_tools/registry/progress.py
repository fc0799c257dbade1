"""`Progress`: what an installation tells while it works. The command line shows it; a program may ignore it."""

from __future__ import annotations


class Progress:
    """Told what an installation does; each method does nothing by default."""

    def step(self, text: str) -> None:
        """A step begins, such as a download."""

    def bytes(self, done: int, total: int | None) -> None:
        """So many bytes of the step are done; `total` is None if it is not known."""

    def waiting(self) -> None:
        """A program that tells nothing is still at work; called a few times a second."""

    def note(self, text: str) -> None:
        """Something that the user should know, such as an older version that was installed instead."""
