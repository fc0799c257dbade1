"""`Transport`: the interface of an object that moves whole messages, and a pair of them in memory."""

from __future__ import annotations

import asyncio
from typing import Any

from accord.compat.message_transport import Messages as Transport

__all__ = ["Transport", "memory_transport_pair"]


class _MemoryTransport:
    """One end of a pair."""

    def __init__(
        self, incoming: asyncio.Queue[dict[str, Any] | None], outgoing: asyncio.Queue[dict[str, Any] | None]
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._is_closed = False

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; raises ConnectionError after `close`."""
        if self._is_closed:
            raise ConnectionError("the transport is closed")
        self._outgoing.put_nowait(dict(message))

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None once the other end is closed."""
        return await self._incoming.get()

    async def close(self) -> None:
        """End what is sent."""
        if not self._is_closed:
            self._is_closed = True
            self._outgoing.put_nowait(None)


def memory_transport_pair() -> tuple[Transport, Transport]:
    """Two transports: what one sends, the other receives."""
    there: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    back: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    return _MemoryTransport(back, there), _MemoryTransport(there, back)
