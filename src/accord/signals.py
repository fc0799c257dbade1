"""Handles signals in the event loop, also on Windows, where asyncio cannot."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def on_signals(numbers: Iterable[signal.Signals], do: Callable[[], object]) -> Generator[None]:
    """Call `do` in the event loop for each of these signals inside this block. Only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    taken: list[signal.Signals] = []
    before: dict[signal.Signals, Any] = {}

    def handle(_: int, __: FrameType | None) -> None:
        loop.call_soon_threadsafe(do)

    try:
        for number in numbers:
            try:
                loop.add_signal_handler(number, do)
                taken.append(number)
            except NotImplementedError:  # Windows
                before[number] = signal.signal(number, handle)
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
        for number, handler in before.items():
            signal.signal(number, handler)
