"""Terminals as the transcript shows them, whoever runs the command: we, or the agent in one of two ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accord.extensions import DisplayTerminal, DisplayTerminals
from accord.schema import v1
from accord.services.terminals.terminal import Terminal, ending_of
from accord.state import SessionState

KEPT = 64
"""Commands that run here whose output is kept for a conversation, the newest."""


@dataclass(frozen=True)
class TerminalView:
    """A terminal as it stands now."""

    text: str
    ending: str | None
    is_good: bool
    command: str | None


def of_lent(terminal: Terminal) -> TerminalView:
    """A command that runs on the user's machine for the agent."""
    status = terminal.exit_status
    ending = None if status is None else ending_of(status.exit_code, status.signal)
    is_good = status is None or status.exit_code == 0
    return TerminalView(terminal.text, ending, is_good, " ".join(terminal.command))


def of_display(terminal: DisplayTerminal) -> TerminalView:
    """A command that the agent runs and reports in `_meta`."""
    ending = ending_of(terminal.exit_code, terminal.signal) if terminal.has_ended else None
    return TerminalView(terminal.text, ending, terminal.exit_code in (None, 0) and not terminal.signal, None)


def of_version_2(terminal: Any) -> TerminalView:
    """A terminal of an agent that speaks version 2."""
    status = terminal.exit_status
    code, signal = getattr(status, "exit_code", None), getattr(status, "signal", None)
    ending = None if status is None else ending_of(code, signal)
    return TerminalView(terminal.text, ending, code in (None, 0) and not signal, terminal.command)


class ConversationTerminals:
    """The terminals of one conversation, by their ids."""

    def __init__(self) -> None:
        self._lent: dict[str, Terminal] = {}
        self._display = DisplayTerminals()
        self._changed: set[str] = set()

    def add(self, terminal: Terminal) -> None:
        """Show the output of a command that runs here for the agent."""
        self._lent[terminal.id] = terminal
        for old in list(self._lent)[:-KEPT]:
            del self._lent[old]

    def mark(self, terminal_id: str) -> None:
        """Note that a terminal has more output, or has ended."""
        self._changed.add(terminal_id)

    def updated(self, update: object, state: SessionState) -> None:
        """Take what an update says about terminals."""
        self._changed.update(self._display.add(update))
        if state.terminals and isinstance(changed := getattr(update, "terminal_id", None), str):
            self._changed.add(changed)

    def take_changed(self) -> Sequence[str]:
        """The terminals that have changed since the last call."""
        changed, self._changed = list(self._changed), set()
        return changed

    def find(self, terminal_id: str, state: SessionState) -> TerminalView | None:
        """A terminal as it stands."""
        if (lent := self._lent.get(terminal_id)) is not None:
            return of_lent(lent)
        if (display := self._display.get(terminal_id)) is not None:
            return of_display(display)
        told = state.terminals.get(v1.TerminalId(terminal_id))
        return None if told is None else of_version_2(told)

    @property
    def running(self) -> list[Terminal]:
        """The commands that run here for the agent now."""
        return [it for it in self._lent.values() if it.exit_status is None]
