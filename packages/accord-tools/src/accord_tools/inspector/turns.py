"""Turns and sessions as the index finds them. PURE.

A *turn* begins with a prompt and ends with its stop reason: the answer to the prompt in version 1, an idle state in
version 2. What comes before the first prompt, or with `session/load`, belongs to a turn without a prompt (`replay`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Any, Literal

TurnKind = Literal["opening", "prompt", "replay"]


class Turn:
    """The part of a session from one prompt to the next."""

    __slots__ = ("begin", "end", "ended_at", "error", "first", "kind", "number", "session", "stop")

    def __init__(self, number: int, session: int, kind: TurnKind, first: int, begin: float) -> None:
        self.number = number
        """Its place among all turns of the trace."""
        self.session = session
        self.kind: TurnKind = kind
        self.first = first
        """The row of its prompt, or of its first message."""
        self.begin = begin
        self.end: int | None = None
        """The row that ends it; None while it goes on."""
        self.ended_at: float | None = None
        self.stop = ""
        """Its stop reason."""
        self.error = False
        """Whether its prompt was answered with an error."""

    def finish(self, row: int, time: float, stop: str, *, error: bool = False) -> None:
        """End the turn at this row."""
        self.end, self.ended_at, self.stop, self.error = row, time, stop, error

    def plain(self) -> dict[str, Any]:
        """The turn as the page gets it."""
        return {
            "number": self.number,
            "session": self.session,
            "kind": self.kind,
            "first": self.first,
            "last": self.end,
            "begin": self.begin,
            "end": self.ended_at,
            "stop": self.stop,
            "error": self.error,
        }


SETTINGS = (
    "current_mode_update",
    "config_option_update",
    "available_commands_update",
    "plan",
    "usage_update",
    "session_info_update",
)
"""Updates that replace what was before as a whole, so that the last one before a turn is all that the turn needs."""


class SessionRows:
    """What the index knows of one session."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.count = 0
        """How many messages it has."""
        self.turns: list[Turn] = []
        self._firsts = array("I")
        self.settings: dict[str, array[int]] = {}
        """The rows of each kind of update in `SETTINGS`."""
        self.openings = array("I")
        """The rows of the answers that opened the session, with its modes and options."""

    def add_turn(self, turn: Turn) -> None:
        """Begin a turn."""
        self.turns.append(turn)
        self._firsts.append(turn.first)

    def turn_at(self, row: int) -> Turn | None:
        """The turn that a row belongs to; None before the first."""
        place = bisect_right(self._firsts, row) - 1
        return self.turns[place] if place >= 0 else None

    def next_turn(self, turn: Turn) -> Turn | None:
        """The turn after this one."""
        place = bisect_right(self._firsts, turn.first)
        return self.turns[place] if place < len(self.turns) else None

    def note_setting(self, update: str, row: int) -> None:
        """Note the row of an update that replaces a setting."""
        if update not in self.settings:
            self.settings[update] = array("I")
        self.settings[update].append(row)

    def setting_before(self, update: str, row: int) -> int | None:
        """The last row before this one that replaces a setting."""
        rows = self.settings.get(update)
        place = bisect_right(rows, row - 1) - 1 if rows else -1
        return rows[place] if rows and place >= 0 else None

    def plain(self) -> dict[str, Any]:
        """The session as the page gets it."""
        return {"number": self.number, "name": self.name, "count": self.count, "turns": len(self.turns)}
