"""The built-in agent's memory of a session, and its pace of speaking."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from accord import Turn

PACE = 0.03
"""Seconds between two words, so that people can watch them arrive."""


class Memory(Struct):
    """Kept in `session.state`, and with the session in its store."""

    name: str | None = None
    """The name that the user gave."""
    pace: float = PACE


def memory_of(turn: Turn) -> Memory:
    memory: Memory = turn.session.state
    return memory


async def pause(turn: Turn, beats: int = 1) -> None:
    """Wait as long as it takes to say this many words."""
    await asyncio.sleep(memory_of(turn).pace * beats)


async def words_so_far(turn: Turn) -> int:
    """Words that were received, thought and said in this session: the demo counts them as tokens."""
    history = await turn.session.history()
    return sum(len(message.text.split()) for message in history.messages)
