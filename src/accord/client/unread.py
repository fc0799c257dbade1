"""What has come for a reader who has not got to it: updates in order, counted in bytes.

    put ──▶ [update, update, ...] ──▶ get         the count goes into the connection's `Intake`, which may stop reading

Past the intake's mark adjacent text chunks of one message become one, so that a slow reader costs no more than the text
itself. Past the hard limit everything is given up, and the reader is told. A reader who waits makes the connection read
on, whatever others have left unread; so does who awaits the end and never reads, which gives up what is kept past the
mark.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from accord.engine.intake import Intake
from accord.engine.lanes import WEIGHT
from accord.errors import Overflow
from accord.schema import v1
from accord.text import JoinedText

CHUNKS = (v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.UserMessageChunk)


class _Merged:
    """Chunks that nobody read while they were many."""

    __slots__ = ("cls", "message_id", "text")

    def __init__(self, first: v1.ContentChunk) -> None:
        self.cls: Any = type(first)
        self.message_id = first.message_id
        self.text = JoinedText()

    def chunk(self) -> v1.ContentChunk:
        chunk: v1.ContentChunk = self.cls.of(self.text.read(), self.message_id)
        return chunk


class Unread:
    """A queue for one reader."""

    __slots__ = (
        "_awaiting",
        "_finished",
        "_given_up",
        "_has_reader",
        "_impatient",
        "_intake",
        "_items",
        "_limit",
        "_news",
        "_waiting",
        "size",
    )

    def __init__(self, intake: Intake | None, limit: int) -> None:
        self.size = 0
        self._items: deque[tuple[Any, int]] = deque()
        self._intake = intake
        """None where reading never pauses on this account."""
        self._limit = limit
        self._news: asyncio.Future[None] | None = None
        self._finished = False
        self._given_up: str | None = None
        self._waiting = 0
        self._has_reader = False
        self._awaiting = 0
        """Who waits for the end, and does not read."""
        self._impatient = False

    def put(self, update: Any, size: int) -> None:
        """One more. Raises Overflow when it was too much."""
        if self._finished or self._given_up:
            return
        size += WEIGHT
        intake = self._intake
        if intake is not None and self.size > intake.mark and (size := self._merge(update, size)) == 0:
            return
        self._items.append((update, size))
        self.size += size
        if intake is not None:
            intake.unread += size
            if intake.unread > intake.mark or intake.paused:
                intake.decide()
        if self._news is not None:
            self._wake()
        if self.size > self._limit:
            self._overflow()
        elif self._impatient and intake is not None and self.size > intake.mark:
            self.give_up("the updates of a Reply that was awaited and not read were given up")

    def _merge(self, update: Any, size: int) -> int:
        """Join this text with the text before it, if both are plain pieces of one message; what is left to be put."""
        if not _is_plain(update):
            return size
        last, last_size = self._items[-1]
        if isinstance(last, _Merged):
            if last.cls is not type(update) or last.message_id != update.message_id:
                return size
        elif not _is_plain(last) or type(last) is not type(update) or last.message_id != update.message_id:
            return size
        else:
            first, last = last, _Merged(last)
            last.text.add(first.content.text)
        last.text.add(update.content.text)
        added = len(update.content.text.encode("utf-8", "surrogatepass"))
        self._items[-1] = (last, last_size + added)
        self._resize(added)
        if self.size > self._limit:
            self._overflow()
        return 0

    def _overflow(self) -> None:
        self.give_up(f"more than {self._limit:,} bytes of updates waited for their reader")
        raise Overflow(self._given_up)

    def give_up(self, why: str) -> None:
        """Keep nothing of this any more."""
        self._given_up = why
        self._items.clear()
        self._resize(-self.size)
        if self._news is not None:
            self._wake()

    def finish(self) -> None:
        """Nothing more will come. What is left no longer keeps anybody from reading the connection."""
        if not self._finished:
            self._finished = True
            self._has_reader = True
            self._balance()
            size = self.size
            self._resize(-size)
            self._intake, self.size = None, size
            if self._news is not None:
                self._wake()

    def now(self) -> Any:
        """The next one, if it is here; else None."""
        if not self._items:
            if self._given_up is not None:
                raise Overflow(self._given_up)
            return None
        item, size = self._items.popleft()
        self._resize(-size)
        return item.chunk() if isinstance(item, _Merged) else item

    async def get(self, awaited: AbstractContextManager[None] | None = None) -> Any:
        """The next one; None after the last."""
        if not self._has_reader:
            self._has_reader = True
            self._balance()
        while (item := self.now()) is None and not self._finished:
            with awaited or nullcontext():
                await self._wait()
        return item

    @contextmanager
    def awaiting_end(self) -> Generator[None]:
        """While this lasts somebody waits for the end. If nobody reads as well, that must not wait for a reader."""
        self._awaiting += 1
        self._balance()
        try:
            yield
        finally:
            self._awaiting -= 1
            self._balance()

    def _balance(self) -> None:
        impatient = self._awaiting > 0 and not self._has_reader
        if impatient != self._impatient and self._intake is not None:
            self._impatient = impatient
            (self._intake.wait if impatient else self._intake.waited)()

    async def _wait(self) -> None:
        intake = self._intake
        if self._news is None or self._news.done():
            self._news = asyncio.get_running_loop().create_future()
        self._waiting += 1
        if intake is not None:
            intake.wait()
        try:
            await asyncio.shield(self._news)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._news = None
            if intake is not None:
                intake.waited()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _resize(self, by: int) -> None:
        self.size += by
        if self._intake is not None:
            self._intake.unread_resized(by)


def _is_plain(update: Any) -> bool:
    if not isinstance(update, CHUNKS) or update.meta is not None or not isinstance(update.content, v1.TextContent):
        return False
    return update.content.annotations is None and update.content.meta is None
