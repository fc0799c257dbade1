"""An answer that grows in the chat: posted with its first words, then edited.

Chats limit how often a bot may edit, and how long a message may be. So one edit at a time is under way, with all that
has come by then; after it the bot pauses; and a long answer goes on in another message.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

from room import Room

LONGEST = 3_500
"""Characters of one message."""


class GrowingMessage:
    """An answer while it grows: `async with GrowingMessage(...) as answer: answer.add("Hello")`."""

    def __init__(self, room: Room, conversation: str, pause: float) -> None:
        self._room = room
        self._conversation = conversation
        self._pause = pause
        self._text = ""
        self._shown: list[tuple[str, str]] = []
        """The id and the text of each message that is in the chat."""
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self._showing = asyncio.Lock()

    def add(self, text: str) -> None:
        """The answer goes on with this text."""
        self._text += text
        self._changed.set()

    async def cut(self) -> None:
        """Show all of it now; what is added later is another message."""
        await self._show()
        seen = sum(len(part) for _, part in self._shown)
        self._text, self._shown = self._text[seen:], []

    async def __aenter__(self) -> Self:
        self._sending = asyncio.create_task(self._send())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._changed.set()
        await self._sending

    async def _send(self) -> None:
        while not self._ended.is_set():
            await self._changed.wait()
            self._changed.clear()
            await self._show()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), self._pause)
        await self._show()

    async def _show(self) -> None:
        async with self._showing:
            parts = [self._text[at : at + LONGEST] for at in range(0, len(self._text), LONGEST)]
            for number, part in enumerate(parts):
                if number == len(self._shown):
                    self._shown.append((await self._room.post(self._conversation, part), part))
                elif self._shown[number][1] != part:
                    message = self._shown[number][0]
                    await self._room.edit(self._conversation, message, part)
                    self._shown[number] = (message, part)
