"""A compaction: the agent replaces the older part of its context with a summary, and the user sees that it does.

    async with session.compaction() as compaction:
        async for text in summarized(history):
            await compaction.summary(text)

The wire has an update for the status and one for each part of the summary. A summary belongs to a compaction that is
completed, so one that fails or is cancelled takes back what was told of it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

from msgspec import UNSET

from accord.agent.told_errors import error_for
from accord.agent.updates import SessionUpdates
from accord.arguments import check_text, content_block
from accord.errors import ConnectionClosed, StoreError
from accord.schema import v1


class RunningCompaction:
    """A compaction of the agent's context, from its beginning to its end; `session.compaction()` makes it."""

    def __init__(self, updates: SessionUpdates, compaction_id: v1.CompactionId) -> None:
        self.id = compaction_id
        """The compaction's id, which the client knows as well."""
        self.is_shown = updates.client_shows("session.compaction")
        """Whether the client shows compactions; it is told nothing otherwise."""
        self.status: v1.CompactionStatus = "in_progress"
        """How it stands: `in_progress`, `completed`, `failed` or `cancelled`."""
        self._updates = updates
        self._has_summary = False

    def __repr__(self) -> str:
        return f"RunningCompaction({self.id!r}, {self.status})"

    async def summary(self, content: str | v1.ContentBlock) -> None:
        """Show the next part of the summary: text, in Markdown, or any other content."""
        block = content_block("compaction.summary()", content)
        if self.status != "in_progress":
            raise RuntimeError(f"this compaction is {self.status}; its summary is complete")
        self._has_summary = True
        await self._send(v1.CompactionSummaryChunk(self.id, block))

    async def fail(self, reason: str) -> None:
        """End it as failed, for this reason, which the user reads."""
        check_text("compaction.fail()", reason)
        await self._end("failed", reason)

    async def __aenter__(self) -> Self:
        await self._send(v1.CompactionUpdate(self.id, "in_progress"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.status != "in_progress":
            return
        if error is None:
            await self._end("completed")
            return
        with suppress(ConnectionClosed, StoreError):  # the error of the block says more
            if isinstance(error, asyncio.CancelledError):
                await self._end("cancelled")
            else:
                await self._end("failed", error_for(error).message)

    async def _end(self, status: v1.CompactionStatus, reason: str | None = None) -> None:
        self.status = status
        taken_back = None if self._has_summary and status != "completed" else UNSET
        await self._send(v1.CompactionUpdate(self.id, status, taken_back, UNSET if reason is None else reason))

    async def _send(self, update: v1.CompactionUpdate | v1.CompactionSummaryChunk) -> None:
        if self.is_shown:
            await self._updates.send(update)
