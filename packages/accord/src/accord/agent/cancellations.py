"""`Cancellations`: what a client of version 2 may cancel by itself: tool calls and terminals that offer it."""

from __future__ import annotations

from collections.abc import Callable


class Cancellations:
    """The single things of one session that the client may cancel now."""

    def __init__(self) -> None:
        self._offered: dict[tuple[str, str], Callable[[], None]] = {}

    def offer(self, kind: str, id: str, cancel: Callable[[], None]) -> None:  # noqa: A002
        """Let the client cancel this `tool_call` or `terminal`; `cancel` must return at once."""
        self._offered[kind, id] = cancel

    def withdraw(self, kind: str, id: str) -> None:  # noqa: A002
        """It has ended."""
        self._offered.pop((kind, id), None)

    def cancel(self, kind: str, id: str) -> bool:  # noqa: A002
        """Cancel this thing; False if it is unknown, has ended, or cannot be cancelled."""
        cancel = self._offered.get((kind, id))
        if cancel is None:
            return False
        cancel()
        return True
