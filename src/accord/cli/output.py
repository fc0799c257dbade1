"""Standard output that can be slow or closed without blocking the event loop.

A thread writes, so that the event loop keeps reading from the agent and reacts to Ctrl-C. `write` waits while more
than `ENOUGH` bytes are unwritten: so a slow reader of our output slows the agent down.

A terminal gets only characters that do not act on it, and nothing while a question is open there: an agent's text could
look like a part of the question. That text is kept, within the same bound, and printed after the answer.
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import threading
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from accord.printable import Printable

ENOUGH = 64 * 1024
"""Bytes that may be unwritten before `write` waits."""


class Output:
    """Writes to a descriptor, in the order of the calls of `write`."""

    def __init__(self, fd: int) -> None:
        self.closed = asyncio.Event()
        """Set when nothing can be written any more; `problem` says why."""
        self.problem: OSError | None = None
        self.unwritten = 0
        self._fd = fd
        self._printable = Printable() if os.isatty(fd) else None
        self._held = 0
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._work: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._busy = False
        self._less = asyncio.Event()
        # A daemon: a write that is stuck must not keep the program from ending.
        threading.Thread(target=self._write_all, name="accord output", daemon=True).start()

    async def write(self, data: bytes) -> None:
        if self._printable is not None:
            data = self._printable.add(data.decode("utf-8", "replace")).encode("utf-8", "replace")
        if not data or self.closed.is_set():
            return
        self._waiting.append(data)
        self.unwritten += len(data)
        self._hand_over()
        while self.unwritten > ENOUGH and not self.closed.is_set():
            await self._change()

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Hold output back inside this context. A write to a terminal that is under way is finished first."""
        self._held += 1
        try:
            while self._printable is not None and self._busy and not self.closed.is_set():
                await self._change()
            yield
        finally:
            self._held -= 1
            self._hand_over()

    async def flush(self) -> None:
        """Wait until everything is written or writing has failed, also while a question is open."""
        self._is_over = True
        self._hand_over()
        while self.unwritten and not self.closed.is_set():
            await self._change()

    async def _change(self) -> None:
        self._less.clear()
        await self._less.wait()

    def _hand_over(self) -> None:
        if not self._busy and self._waiting and (self._is_over or not self._held):
            self._busy = True
            self._work.put(b"".join(self._waiting))
            self._waiting.clear()

    def _write_all(self) -> None:
        while True:
            data = memoryview(self._work.get())
            size, problem = len(data), None
            try:
                while data:
                    data = data[self._write_some(data) :]
            except OSError as error:
                problem = error
            try:
                self._loop.call_soon_threadsafe(self._written, size, problem)
            except RuntimeError:  # the loop is closed
                return

    def _write_some(self, data: memoryview) -> int:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:  # the descriptor is shared with a program that made it non-blocking
            select.select([], [self._fd], [])
            return 0

    def _written(self, size: int, problem: OSError | None) -> None:
        self._busy = False
        self.unwritten -= size
        if problem is not None:
            self.problem = problem
            self.unwritten = 0
            self._waiting.clear()
            self.closed.set()
        self._less.set()
        self._hand_over()
