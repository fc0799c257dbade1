"""Lets a question wait for what came before it, and what came after it wait for the answer.

A permission request is handled the moment it arrives, but the text before it is still on its way through the turn's
queue. So everything is counted when it arrives and when it was shown. A request *stops* the display at the first
number: the question waits until the second number has reached it, and no more is shown until the request is answered.
Adjacent chunks of text may be joined in the queue, which is why text counts by its length.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from accord import v1


class CatchingUp:
    """Counts what has arrived and what was shown."""

    def __init__(self, weigh: Callable[[Any], int] | None = None) -> None:
        self._weigh = weigh or _weight
        self._arrived = self._shown = 0
        self._stops: list[int] = []
        self._is_over = False
        self._change = asyncio.Event()

    def arrived(self, update: v1.SessionUpdate | v1.ToolCallUpdate | None) -> None:
        """Count an update that has arrived; other changes of the state do not count."""
        if update is not None and not _is_of_a_question(update):
            self._arrived += self._weigh(update)

    def was_shown(self, update: Any) -> None:
        """Count an update that was shown."""
        self._shown += self._weigh(update)
        self._change.set()

    def over(self) -> None:
        """No more will arrive, and what is left may be shown."""
        self._is_over = True
        self._change.set()

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Inside this context, nothing is shown that arrives from now on."""
        stop = self._arrived
        self._stops.append(stop)
        try:
            yield
        finally:
            self._stops.remove(stop)
            self._change.set()

    async def may_show(self) -> None:
        """Wait until the next update may be shown."""
        while self._stops and min(self._stops) <= self._shown and not self._is_over:
            await self._changed()

    async def wait(self) -> None:
        """Wait until everything that has arrived by now, or before the first stop, was shown."""
        before = min(self._stops, default=self._arrived)
        while self._shown < before and not self._is_over:
            await self._changed()

    async def _changed(self) -> None:
        self._change.clear()
        await self._change.wait()


def _is_of_a_question(update: Any) -> bool:
    """Whether this came with a permission request: it has no tag, and is not displayed as an update."""
    return isinstance(update, msgspec.Struct) and update.__struct_config__.tag is None


def _weight(update: Any) -> int:
    content = update.content if isinstance(update, v1.ContentChunk) else None
    if not isinstance(content, v1.TextContent):
        return 1
    text = content.text  # a character beyond the first 65,536 may come in two halves that are joined in the queue
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
