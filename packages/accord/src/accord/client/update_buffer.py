"""`UpdateBuffer`: updates that have arrived and were not read yet, in order, counted in bytes.

    put ──▶ [update, update, ...] ──▶ get      the count goes into the connection's `ReadPause`, which may stop reading

Past the connection's mark, adjacent text chunks of one message are merged, so that a slow reader costs no more than the
text itself. Past the hard limit all updates are dropped, and the reader gets an Overflow.

While a reader waits, the connection keeps reading even if other readers are slow. The same holds while a task awaits
the end without reading; updates past the mark are then dropped.

`UnknownSessionUpdates` has the updates of sessions that are not known yet: agents send updates before the answer to
`session/new`, and some sessions never become known.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import contextmanager
from typing import Any

from msgspec import Raw

from accord.engine.flow_control import ReadPause
from accord.engine.lanes import WEIGHT
from accord.engine.outgoing import PendingRequest
from accord.errors import Overflow
from accord.session import updates
from accord.session.values import JoinedText

CHUNKS = (updates.AgentMessageChunk, updates.AgentThoughtChunk, updates.UserMessageChunk)


class _Merged:
    """Adjacent chunks of one message, merged because the reader is slow."""

    __slots__ = ("cls", "message_id", "text")

    def __init__(self, first: updates.ContentChunk) -> None:
        self.cls: Any = type(first)
        self.message_id = first.message_id
        self.text = JoinedText()

    def chunk(self) -> updates.ContentChunk:
        chunk: updates.ContentChunk = self.cls.of(self.text.read(), self.message_id)
        return chunk


class UpdateBuffer:
    """A queue for one reader."""

    __slots__ = (
        "_awaiting",
        "_dropped",
        "_finished",
        "_has_reader",
        "_intake",
        "_items",
        "_limit",
        "_news",
        "_reads_on",
        "_waiting",
        "size",
    )

    def __init__(self, intake: ReadPause | None, limit: int) -> None:
        self.size = 0
        self._items: deque[tuple[Any, int]] = deque()
        self._intake = intake
        """Pauses reading; None if these updates must never pause it."""
        self._limit = limit
        self._news: asyncio.Future[None] | None = None
        self._finished = False
        self._dropped: str | None = None
        self._waiting = 0
        self._has_reader = False
        self._awaiting = 0
        """How many tasks wait for the end without reading."""
        self._reads_on = False

    def put(self, update: Any, size: int) -> None:
        """Add an update of this many bytes; raises Overflow past the limit."""
        if self._finished or self._dropped:
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
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
        if self.size > self._limit:
            self._overflow()
        elif self._reads_on and intake is not None and self.size > intake.mark:
            self.drop(
                "the updates of a Reply that was awaited instead of read were dropped; read it before awaiting it"
            )

    def _merge(self, update: Any, size: int) -> int:
        """Merge this text into the last one if both are plain chunks of one message; returns the size left to add."""
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
        self.drop(f"more than {self._limit:,} bytes of updates were not read; read faster, or raise Limits.reply")
        raise Overflow(self._dropped)

    def drop(self, why: str) -> None:
        """Drop all updates; the reader gets an Overflow with this text."""
        self._dropped = why
        self._items.clear()
        self._resize(-self.size)
        if self._news is not None:
            self._wake()

    def finish(self) -> None:
        """Note that no more updates will come. The remaining ones no longer pause reading."""
        if not self._finished:
            self._finished = True
            self._has_reader = True
            if self._reads_on:
                self._balance()
            if (size := self.size) and self._intake is not None:
                self._intake.unread_resized(-size)
            self._intake = None
            if self._news is not None:
                self._wake()

    def now(self) -> Any:
        """The next update if there is one, else None; raises Overflow if updates were dropped."""
        if not self._items:
            if self._dropped is not None:
                raise Overflow(self._dropped)
            return None
        item, size = self._items.popleft()
        self.size -= size
        if self._intake is not None:
            self._intake.unread_resized(-size)
        return item.chunk() if isinstance(item, _Merged) else item

    async def get(self, pending: PendingRequest[Any] | None = None) -> Any:
        """Wait for the next update; None after the last. A handler that called this waits for it."""
        self._has_reader = True
        if self._reads_on:
            self._balance()
        while not (self._items or self._finished or self._dropped):
            if self._news is None or self._news.done():
                self._news = asyncio.get_running_loop().create_future()
            intake = self._intake
            self._waiting += 1
            if intake is not None:
                intake.wait()
            if pending is not None and pending.holding_up is not None:
                pending.holding_up.begins_to_wait(pending)
            try:
                await asyncio.shield(self._news)
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._news = None
                if intake is not None:
                    intake.waited()
                if pending is not None and pending.holding_up is not None:
                    pending.holding_up.no_longer_waits(pending)
        return self.now()

    @contextmanager
    def awaiting_end(self) -> Generator[None]:
        """Count a task that waits for the end; while it does so without a reader, unread updates do not pause the
        connection.
        """
        self._awaiting += 1
        self._balance()
        try:
            yield
        finally:
            self._awaiting -= 1
            self._balance()

    def _balance(self) -> None:
        reads_on = self._awaiting > 0 and not self._has_reader
        if reads_on != self._reads_on and self._intake is not None:
            self._reads_on = reads_on
            (self._intake.wait if reads_on else self._intake.waited)()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _resize(self, by: int) -> None:
        self.size += by
        if self._intake is not None:
            self._intake.unread_resized(by)


def _is_plain(update: Any) -> bool:
    if not isinstance(update, CHUNKS) or update.meta is not None or not isinstance(update.content, updates.TextContent):
        return False
    return update.content.annotations is None and update.content.meta is None


class UpdateListeners:
    """The readers of the updates of one session or subagent outside of turns, each with a buffer."""

    def __init__(self, limit: int) -> None:
        self.buffers: list[UpdateBuffer] = []
        self._limit = limit

    def put(self, update: Any, size: int) -> None:
        """Give all readers an update of this many bytes."""
        for buffer in list(self.buffers):
            try:
                buffer.put(update, size)
            except Overflow:
                self.buffers.remove(buffer)  # it raises the error to its reader

    async def read(self, earlier: Iterable[tuple[Any, int]] = (), *, is_open: bool) -> AsyncGenerator[Any]:
        """Iterate over these updates and those to come, until `finish`."""
        buffer = UpdateBuffer(None, self._limit)
        for update, size in earlier:
            buffer.put(update, size)
        if not is_open:
            buffer.finish()
        self.buffers.append(buffer)
        try:
            while (update := await buffer.get()) is not None:
                yield update
        finally:
            if buffer in self.buffers:
                self.buffers.remove(buffer)

    def finish(self) -> None:
        """Note that no more updates will come."""
        for buffer in list(self.buffers):
            buffer.finish()


log = logging.getLogger("accord")


class UnknownSessionUpdates:
    """Updates that came before their session was known, by session."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._kept: dict[updates.SessionId, list[tuple[updates.Update, bytes | Raw, int]]] = {}

    def keep(self, session_id: updates.SessionId, update: updates.Update, params: bytes | Raw) -> None:
        """Keep an update, and drop those of the oldest session while there are too many."""
        size = len(memoryview(params)) + WEIGHT
        self._kept.setdefault(session_id, []).append((update, params, size))
        self.size += size
        while self.size > self._limit:
            oldest = next(iter(self._kept))
            log.warning("dropped %d updates of session %s, which is not open here", len(self.take(oldest)), oldest)

    def take(self, session_id: updates.SessionId) -> list[tuple[updates.Update, bytes | Raw]]:
        """Remove and return the updates of this session, in the order of arrival."""
        kept = self._kept.pop(session_id, [])
        self.size -= sum(size for _, _, size in kept)
        return [(update, params) for update, params, _ in kept]
