"""The seam between the bot and a chat: what a chat has to offer. Write a `Room` to run the bot elsewhere."""

from collections.abc import Callable
from typing import Protocol

import msgspec


class Message(msgspec.Struct, frozen=True):
    """A message that a person wrote."""

    id: str
    """The same each time the chat delivers this message, and different for every other message."""
    conversation: str
    """Where it was written: each conversation is one session of the agent."""
    author: str
    text: str


class RoomError(Exception):
    """The chat did not take a message."""


class Room(Protocol):
    """A chat: a terminal, Slack, Matrix."""

    async def run(self, deliver: Callable[[Message], None]) -> None:
        """Deliver messages until the chat ends. When `deliver` returns, the message is stored: confirm it only then."""
        ...

    async def post(self, conversation: str, text: str) -> str:
        """Write a message; returns its id. Raises RoomError."""
        ...

    async def edit(self, conversation: str, message: str, text: str) -> None:
        """Replace the text of a message of the bot. Raises RoomError."""
        ...
