"""Ctrl-C: the first asks the agent to stop, the second ends it at once, the third exits without waiting."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from accord.running import on_signals
from accord_tools.cli.endings import INTERRUPTED


class Interrupts:
    """Counts Ctrl-C, and does what the count asks for."""

    def __init__(self) -> None:
        self.count = 0
        self.politely: Callable[[], None] | None = None
        """Asks the running turn to stop; None while no turn runs."""
        self.at_once: Callable[[], None] = _nothing
        """Ends what runs without a grace period."""
        self._main = asyncio.current_task()

    def interrupt(self) -> None:
        self.count += 1
        if self.count == 1 and self.politely is not None:
            self.politely()
        elif self.count <= 2:
            self.at_once()
            if self._main is not None:
                self._main.cancel()
        else:
            os._exit(INTERRUPTED)  # the guard process ends the agent


@contextmanager
def interrupts() -> Generator[Interrupts]:
    """Handle Ctrl-C inside this context."""
    made = Interrupts()
    with on_signals([signal.SIGINT], made.interrupt):
        yield made


def _nothing() -> None: ...
