"""The ways of working that the user chooses from, and what each asks before. PURE."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct


class Mode(Struct, frozen=True, kw_only=True):
    """One way of working."""

    id: str
    name: str
    description: str
    asks: Collection[str] = ()
    """What is asked before: tools that change `files`, or `anything`."""
    only_reads: bool = False

    def asks_before(self, changes: str) -> bool:
        """Whether the user is asked before something that changes this."""
        return changes in self.asks


MODES = (
    Mode(
        id="ask",
        name="Ask",
        description="Asks before each change of a file and each command.",
        asks=("files", "anything"),
    ),
    Mode(id="edit", name="Edit", description="Changes files by itself; asks before commands.", asks=("anything",)),
    Mode(id="auto", name="Auto", description="Changes files and runs commands without asking."),
    Mode(id="plan", name="Plan", description="Reads only, and makes a plan.", only_reads=True),
)


def mode_of(identifier: str | None) -> Mode:
    """The mode with this id; the first if there is none."""
    return next((mode for mode in MODES if mode.id == identifier), MODES[0])
