"""Ctrl-C, once and again: the first asks politely, the second ends at once, the third does not even wait for that."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from accord.cli.endings import INTERRUPTED


class Interrupts:
    """What Ctrl-C does now."""

    def __init__(self) -> None:
        self.count = 0
        self.politely: Callable[[], None] | None = None
        """Asks what runs to end; None while there is nothing that could be asked."""
        self.at_once: Callable[[], None] = _nothing
        """Makes what must end anyhow end without patience."""
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
            os._exit(INTERRUPTED)  # the guard of an agent's process ends it


@contextmanager
def interrupts() -> Generator[Interrupts]:
    """While this lasts, Ctrl-C goes here."""
    made, loop = Interrupts(), asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, made.interrupt)
    except NotImplementedError:  # Windows
        signal.signal(signal.SIGINT, lambda _number, _frame: loop.call_soon_threadsafe(made.interrupt) and None)
        try:
            yield made
        finally:
            signal.signal(signal.SIGINT, before)
        return
    try:
        yield made
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _nothing() -> None: ...
