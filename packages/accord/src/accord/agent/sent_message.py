"""`SentMessage`: a message of the agent that was sent whole, and may be replaced or taken back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from accord.arguments import content_block
from accord.dialects.dialect import Dialect
from accord.schema import v1


class SentMessage:
    """A message of the agent that can be replaced later.

    >>> async def work(turn):
    ...     message = await turn.message("Searching ...")
    ...     await message.replace("Found 3 places.")

    Version 1 has no word for that: there, what replaces it is a message of its own.
    """

    def __init__(self, send: Callable[[Any], Awaitable[None]], dialect: Dialect, new_id: Callable[[], str]) -> None:
        self._send = send
        self._dialect = dialect
        self._new_id = new_id
        self._was_sent = False
        self.id = v1.MessageId(new_id())
        """The message's id; with version 1, that of the latest message."""

    async def replace(self, *content: str | v1.ContentBlock) -> None:
        """Say this in its place."""
        blocks = message_blocks("message.replace()", content)
        if self._was_sent and not self._dialect.replaces_messages:
            self.id = v1.MessageId(self._new_id())
        self._was_sent = True
        await self._put(blocks)

    async def clear(self) -> bool:
        """Take back what it says. False, and nothing sent, with version 1, where what was said stays."""
        if self._dialect.replaces_messages:
            await self._put(())
        return self._dialect.replaces_messages

    async def _put(self, blocks: Sequence[v1.ContentBlock]) -> None:
        for update in self._dialect.message(self.id, blocks):
            await self._send(update)


def message_blocks(call: str, content: Sequence[str | v1.ContentBlock]) -> list[v1.ContentBlock]:
    """What a message says; raises ValueError for a message that says nothing."""
    if not content:
        raise ValueError(f"{call} needs text or a content block; clear() takes a message back")
    return [content_block(call, it) for it in content]
