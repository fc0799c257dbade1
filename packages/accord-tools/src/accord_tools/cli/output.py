"""Standard output and standard error, either of which can be slow or closed without blocking the event loop.

A thread writes, so that the event loop keeps reading from the agent and reacts to Ctrl-C. Output to the two streams
appears in the order of the calls, which matters if both are one terminal. `write` waits while more than `ENOUGH` bytes
are unwritten: so a slow reader of our output slows the agent down.

A terminal gets only harmless characters, and nothing while a question is open there: an agent's text could look like a
part of the question. That text is held back, within the same limit, and printed after the answer.

Standard output is the result: if it cannot be written, the command ends. Standard error is secondary (`aside`): if it
cannot be written, the rest of it is dropped, and `problem_aside` is the reason.
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import threading
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from operator import itemgetter

from accord.printable import Printable

ENOUGH = 64 * 1024
"""Bytes that may be unwritten before `write` waits."""
MOST_ASIDE = 1024 * 1024
"""Bytes that may be unwritten before secondary output is dropped."""
SOON = 2.0
"""Seconds that a question waits for output into a pipe or a file."""


class Output:
    """Writes to two descriptors, in the order of the calls of `put` and `aside`."""

    def __init__(self, fd: int, fd_aside: int | None = None) -> None:
        self.closed = asyncio.Event()
        """Set when nothing can be written to standard output any more; `problem` is the reason."""
        self.problem: OSError | None = None
        self.problem_aside: OSError | None = None
        self.unwritten = 0
        self._fd = fd
        self._fd_aside = fd_aside
        self._is_terminal = os.isatty(fd)
        self._printable = Printable() if self._is_terminal else None
        self._holds = self._is_terminal or (fd_aside is not None and os.isatty(fd_aside))
        self._held = 0
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._work: queue.SimpleQueue[list[tuple[int, bytes]]] = queue.SimpleQueue()
        self._queued = self._done = 0
        """Bytes that were passed to `put` and `aside`, and bytes that were written or dropped."""
        self._busy = False
        self._change = asyncio.Event()
        # A daemon: a write that is stuck must not keep the program from ending.
        threading.Thread(target=self._write_all, name="accord output", daemon=True).start()

    async def write(self, data: bytes) -> None:
        """Write to standard output; waits while too much is unwritten."""
        self.put(data)
        await self.room()

    def put(self, data: bytes) -> None:
        """Write to standard output, without waiting; the caller waits for `room` afterwards."""
        if self._printable is not None:
            data = self._printable.add(data.decode("utf-8", "replace")).encode("utf-8", "replace")
        if data and not self.closed.is_set():
            self._queue(self._fd, data)

    async def room(self) -> None:
        """Wait while too much is unwritten."""
        while self.unwritten > ENOUGH and not self.closed.is_set():
            await self._changed()

    def aside(self, data: bytes) -> None:
        """Write to standard error, without waiting; the caller has made the text safe for a terminal."""
        if self._fd_aside is not None and self.problem_aside is None and self.unwritten < MOST_ASIDE:
            self._queue(self._fd_aside, data)

    @property
    def is_held(self) -> bool:
        """Whether output is held back."""
        return self._held > 0

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Hold output back during this block. Earlier output is finished first."""
        before = self._queued
        with suppress(TimeoutError):
            async with asyncio.timeout(None if self._is_terminal else SOON):
                while self._done < before and not self.closed.is_set():
                    await self._changed()
        self._held += 1
        try:
            while self._holds and self._busy and not self.closed.is_set():
                await self._changed()
            yield
        finally:
            self._held -= 1
            self._hand_over()

    async def flush(self) -> None:
        """Wait until everything is written or writing has failed, even while a question is open."""
        self._is_over = True
        self._hand_over()
        while self.unwritten and not self.closed.is_set():
            await self._changed()

    async def _changed(self) -> None:
        self._change.clear()
        await self._change.wait()

    def _queue(self, fd: int, data: bytes) -> None:
        self._waiting.append((fd, data))
        self.unwritten += len(data)
        self._queued += len(data)
        self._hand_over()

    def _hand_over(self) -> None:
        if not self._busy and self._waiting and (self._is_over or not self._held or not self._holds):
            self._busy = True
            self._work.put(_joined(self._waiting))
            self._waiting.clear()

    def _write_all(self) -> None:
        while True:
            work = self._work.get()
            problems: dict[int, OSError] = {}
            for fd, data in work:
                if fd in problems:
                    continue
                try:
                    _write(fd, data)
                except OSError as error:
                    problems[fd] = error
                    if fd == self._fd:
                        break
            try:
                self._loop.call_soon_threadsafe(self._written, sum(len(data) for _, data in work), problems)
            except RuntimeError:  # the loop is closed
                return

    def _written(self, size: int, problems: dict[int, OSError]) -> None:
        self._busy = False
        self.unwritten -= size
        self._done += size
        if self._fd in problems:
            self.problem = problems[self._fd]
            self._done += self.unwritten
            self.unwritten = 0
            self._waiting.clear()
            self.closed.set()
        self.problem_aside = self.problem_aside or problems.get(-1 if self._fd_aside is None else self._fd_aside)
        self._change.set()
        self._hand_over()


def _joined(waiting: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the waiting output, with adjacent writes to the same descriptor joined."""
    return [(fd, b"".join(data for _, data in group)) for fd, group in groupby(waiting, itemgetter(0))]


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:  # the descriptor is shared with a program that made it non-blocking
            select.select([], [fd], [])
