"""`View`: shows a turn to the person or program that started the command, as text or as JSON.

`QuestionOrder` lets a question wait for earlier output, and later output wait for the answer. A permission request is
handled the moment it arrives, but the text before it is still on its way through the turn's queue. So everything is
counted on arrival and when it is shown. A request *stops* the display at the first number: the question waits until the
second number has reached it, and no more is shown until the request is answered. Adjacent chunks of text may be joined
in the queue, which is why text counts by its length.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from accord import updates, v1

if TYPE_CHECKING:
    from accord import RemoteSession, ServedSession, Terminal


class QuestionOrder:
    """Counts the arrived and the shown output."""

    def __init__(self, weigh: Callable[[Any], int] | None = None) -> None:
        self._weigh = weigh or _weight
        self._arrived = self._shown = 0
        self._stops: list[int] = []
        self._is_over = False
        self._change = asyncio.Event()

    def arrived(self, update: updates.Update | updates.ToolCallUpdate | None) -> None:
        """Count an update that has arrived; other changes of the state do not count."""
        if update is not None and not _is_of_a_question(update):
            self._arrived += self._weigh(update)

    def was_shown(self, update: Any) -> None:
        """Count an update that was shown."""
        self._shown += self._weigh(update)
        self._change.set()

    def over(self) -> None:
        """Note that no more will arrive, and the rest may be shown."""
        self._is_over = True
        self._change.set()

    @contextmanager
    def stopped(self) -> Generator[None]:
        """During this block, show nothing that arrives from now on."""
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


class Opened(NamedTuple):
    """An open session, and its agent's details."""

    session: RemoteSession
    agent: v1.Implementation | None
    version: int = 1
    """The version of the protocol that the connection speaks."""


MOST_FAILED = 64
"""Failed commands whose endings a view keeps, the newest."""


class FailedCommands:
    """The endings of failed commands that we ran for the agent, by the ids of their terminals."""

    def __init__(self) -> None:
        self._endings: dict[str, str] = {}

    async def watch(self, _session: ServedSession, terminal: Terminal) -> None:
        """Wait for the end of a command."""
        from accord.services import ending_of

        status = await terminal.wait()
        if status.exit_code != 0:
            self._endings[terminal.id] = ending_of(status.exit_code, status.signal)
            for old in list(self._endings)[:-MOST_FAILED]:
                del self._endings[old]

    def ending(self, terminal_id: str) -> str | None:
        """Return how this command ended; None if it has not failed."""
        return self._endings.get(terminal_id)


class TurnView:
    """The common part of the views, which are `Display` and `Events`."""

    keeps_wire = False
    """Whether it needs the updates as the JSON that they came as."""

    shows_subagents = False
    """Whether it shows the work of subagents."""

    def __init__(self, question_order: QuestionOrder | None = None) -> None:
        self.question_order = question_order or QuestionOrder()
        self.failed_commands = FailedCommands()

    def data(self, value: object) -> None:
        """Show the answer as data, where it is not shown as text."""

    def stop(self) -> None:
        """Remove moving parts, because the command ends."""
