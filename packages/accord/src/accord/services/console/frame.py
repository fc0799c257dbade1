"""The frame around a question to the user: what stands in it is an agent's, and only we can draw it. Pure.

    ┌ An agent asks for permission
    │ agent     nice
    │ wants to  execute: clean up
    │ command   rm -rf build
    │ 1. allow once    “Yes”
    ├ 2 more options not shown; /more shows all
    └ Choose 1 to 8, y to allow once, n to reject once:

A question quotes the agent: its title, its command, the names of its options. Each quoted line starts with our bar and
is wrapped before the terminal would wrap it, so that no text can make a line that looks like ours. Each text is cut, so
that the start of the question stays on the screen. A line at the frame's edge, where an agent's text cannot appear,
counts what was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from accord.printable import columns, cut, label, printable, wrapped

COLUMNS = 80
"""Columns of a terminal that does not say how many it has."""
LEAST_COLUMNS, LEAST_NAME = 30, 4

END = "└ "
"""The start of the prompt."""

MORE = "/more"
"""What a user types to see what was cut."""


class Room(NamedTuple):
    """The amount of an agent's text that a question shows."""

    lines: int
    """Of one text."""
    items: int
    """Of one list, such as paths."""
    options: int
    choices: int
    characters: int
    """Of one text; the rest is not processed."""
    name: int
    """Columns of the name of an agent, an option or a choice."""


BRIEF = Room(lines=5, items=3, options=8, choices=50, characters=4_000, name=56)
"""A screen of 24 lines takes all of a permission question."""
FULL = Room(lines=1_000, items=1_000, options=1_000, choices=1_000, characters=64_000, name=1_000)
"""What `/more` shows."""


class Frame:
    """Gathers the lines of a question.

    >>> frame = Frame("An agent asks for permission", BRIEF, 40)
    >>> frame.text("command", "echo one\\necho two")
    >>> print(frame)
    ┌ An agent asks for permission
    │ command  echo one
    │          echo two
    """

    def __init__(self, heading: str, room: Room, width: int) -> None:
        self.room = room
        self._width = max(width, LEAST_COLUMNS) - 1  # terminals differ in what they do at the last column
        self._lines: list[str] = []
        self._rows("┌", "  ", heading)

    def text(self, name: str, text: str) -> None:
        """Add a text of the agent, of any number of lines, after our name for it."""
        self._text(f"{name}  " if name else "", text, self.room.characters, self.room.lines)

    def whole(self, text: str, characters: int) -> None:
        """Add a text of the agent of which no line may be hidden, such as a URL."""
        self._text("", text, characters, characters)

    def _text(self, start: str, text: str, characters: int, most: int) -> None:
        kept = text[:characters]
        lines = list(wrapped(printable(kept), self._inside - len(start)))
        shown = lines[:most]
        for number, line in enumerate(shown):
            self._lines.append(f"│ {start if number == 0 else ' ' * len(start)}{line}")
        left_out = len(text) - len(kept) + sum(len(line) + 1 for line in lines[len(shown) :])
        self.cut(left_out, "character")

    def item(self, start: str, theirs: str, end: str = "") -> None:
        """Add an item of a list: a text of the agent between two of ours, on one line unless all is shown."""
        room = min(self.room.name, self._inside - columns(start) - columns(end))
        if self.room is not FULL:
            self._lines.append(f"│ {start}{label(theirs, max(room, LEAST_NAME))}{end}")
            return
        kept = label(theirs, self.room.name)
        for number, line in enumerate(wrapped(kept, max(self._inside - columns(start) - columns(end), LEAST_NAME))):
            self._lines.append(f"│ {start if number == 0 else ' ' * columns(start)}{line}{end if number == 0 else ''}")

    def code(self, lines: Iterable[str], most: int) -> int:
        """Add lines of the agent that keep their blanks and are cut at the width; returns how many were added."""
        kept = list(islice(lines, most + 1))
        shown = kept if len(kept) <= most else kept[: most - 1]
        for line in shown:
            text = printable(line[: self.room.characters].replace("\n", " ")).expandtabs(4)
            rows = [cut(text, self._inside - 2)] if self.room is not FULL else wrapped(text, self._inside - 2)
            self._lines += [f"│   {row}" for row in rows]
        if len(shown) < len(kept):
            self.say(f"more lines not shown{f'; {MORE} shows all' if self.room is not FULL else ''}")
        return len(shown) + (len(shown) < len(kept))

    def texts(self, name: str, texts: Sequence[str]) -> None:
        """Add a list of the agent, as much of it as there is room for."""
        for number, text in enumerate(texts[: self.room.items]):
            self.item(f"{name}  " if number == 0 else " " * (len(name) + 2), text)
        self.cut(len(texts) - self.room.items, name.strip())

    def cut(self, number: int, what: str) -> None:
        """Add a line at the edge that counts what is not shown."""
        if number > 0:
            hint = f"; {MORE} shows all" if self.room is not FULL else ""
            self.say(f"{number:,} more {what}{'' if number == 1 else 's'} not shown{hint}")

    def say(self, ours: str) -> None:
        """Add a text of ours, at the edge."""
        self._rows("├", "│ ", ours)

    @property
    def rows(self) -> int:
        """How many rows it has so far."""
        return len(self._lines)

    def __str__(self) -> str:
        return "\n".join(self._lines)

    @property
    def _inside(self) -> int:
        return self._width - 2

    def _rows(self, edge: str, continued: str, ours: str) -> None:
        rows: Iterable[str] = wrapped(ours, self._inside)
        for number, row in enumerate(rows):
            self._lines.append(f"{f'{edge} ' if number == 0 else continued}{row}")
