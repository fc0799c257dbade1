"""Standard output that may be slow, or close, without holding up anything else.

A thread writes, so that the event loop goes on hearing the agent and Ctrl-C. Whoever prints waits while more than a
little is unwritten: that is how a slow reader of our output slows the agent down.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections import deque

ENOUGH = 64 * 1024
"""Bytes that may be unwritten before who prints waits."""


class Output:
    """Writes to a descriptor in the order of `write`."""

    def __init__(self, fd: int) -> None:
        self.closed = asyncio.Event()
        """Set when nobody reads our output any more."""
        self.unwritten = 0
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._work: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._busy = False
        self._less = asyncio.Event()
        # A daemon: one that is stuck in writing must not keep the program.
        threading.Thread(target=self._write_all, name="accord output", daemon=True).start()

    async def write(self, data: bytes) -> None:
        if not data or self.closed.is_set():
            return
        self._waiting.append(data)
        self.unwritten += len(data)
        self._hand_over()
        while self.unwritten > ENOUGH and not self.closed.is_set():
            await self._change()

    async def flush(self) -> None:
        """Wait until all is written, or nobody reads it."""
        while self.unwritten and not self.closed.is_set():
            await self._change()

    async def _change(self) -> None:
        self._less.clear()
        await self._less.wait()

    def _hand_over(self) -> None:
        if not self._busy and self._waiting:
            self._busy = True
            self._work.put(b"".join(self._waiting))
            self._waiting.clear()

    def _write_all(self) -> None:
        while True:
            data = memoryview(self._work.get())
            size, problem = len(data), False
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError:
                problem = True
            try:
                self._loop.call_soon_threadsafe(self._written, size, problem)
            except RuntimeError:  # the loop is closed: nobody waits
                return

    def _written(self, size: int, problem: bool) -> None:
        self._busy = False
        self.unwritten -= size
        if problem:
            self.unwritten = 0
            self._waiting.clear()
            self.closed.set()
        self._less.set()
        self._hand_over()
