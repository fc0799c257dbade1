"""Single requests to an ASGI application of this program, without a socket.

A program of the official SDK may stand between its own web framework and the server: it reads a request, calls a
method of `AcpServer`, and sends what that returns. The application answers here as it answers an ASGI server, so both
ways have the same checks, limits and streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from accord.transports.closing import first_of, to_the_end

Application = Callable[..., Awaitable[None]]

AHEAD = 16
"""Pieces of a stream that may wait for the program to take them."""


class Exchange:
    """One request to an application, and its answer."""

    def __init__(self, method: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self._scope = {"type": "http", "method": method, "path": "/", "headers": raw}
        self._unread: bytes | None = body
        self._has_left = asyncio.Event()
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue(AHEAD)
        """The body of the answer; None at its end."""
        self.status = 0
        """The status of the answer; 0 before it arrives."""
        self.headers: dict[str, str] = {}
        """The headers of the answer."""

    async def run(self, application: Application) -> None:
        """Let the application answer."""
        try:
            await application(self._scope, self._receive, self._send)
        finally:
            await self._put(None)

    def leave(self) -> None:
        """Take no more of the answer."""
        self._has_left.set()

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._unread is not None:
            body, self._unread = self._unread, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._has_left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {_capitalized(name): value.decode("latin-1") for name, value in message["headers"]}
        elif piece := message.get("body", b""):
            await self._put(piece)

    async def _put(self, piece: bytes | None) -> None:
        if not self._has_left.is_set():
            await first_of(self.pieces.put(piece), self._has_left.wait())


async def body_of(exchange: Exchange, application: Application) -> AsyncGenerator[bytes]:
    """Send a request; the body of its answer, piece by piece. The application learns when the program takes no more."""
    running = asyncio.create_task(exchange.run(application), name="accord compat request")
    try:
        while (piece := await exchange.pieces.get()) is not None:
            yield piece
        await running
    finally:
        exchange.leave()
        await to_the_end(running)


def _capitalized(name: bytes) -> str:
    return "-".join(word.capitalize() for word in name.decode("latin-1").split("-"))
