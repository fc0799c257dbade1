"""Terminals as the transcript shows them, whoever runs the command: we, or the agent in one of two ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accord.extensions import DisplayTerminal
from accord.services.terminals.terminal import Terminal


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
    ending = None if status is None else _ending(status.exit_code, status.signal)
    is_good = status is None or status.exit_code == 0
    return TerminalView(terminal.text, ending, is_good, " ".join(terminal.command))


def of_display(terminal: DisplayTerminal) -> TerminalView:
    """A command that the agent runs and reports in `_meta`."""
    ending = _ending(terminal.exit_code, terminal.signal) if terminal.has_ended else None
    return TerminalView(terminal.text, ending, terminal.exit_code in (None, 0) and not terminal.signal, None)


def of_version_2(terminal: Any) -> TerminalView:
    """A terminal of an agent that speaks version 2."""
    status = terminal.exit_status
    code, signal = getattr(status, "exit_code", None), getattr(status, "signal", None)
    ending = None if status is None else _ending(code, signal)
    return TerminalView(terminal.text, ending, code in (None, 0) and not signal, terminal.command)


def _ending(code: int | None, signal: str | None) -> str:
    if signal:
        return f"ended by {signal[:40]}"
    return "ended" if code is None else f"exit code {code}"
