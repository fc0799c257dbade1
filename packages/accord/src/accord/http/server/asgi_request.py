"""One request in progress, as ASGI's `receive` and `send`. HTTP/1.1 and HTTP/2 share it.

    got (a part of the body) ──▶ receive ──▶ the application ──▶ send ──▶ respond      one call for each part
    leave (the client has gone, or the response is complete) ──▶ receive: http.disconnect

The subclass of each protocol encodes the response and decides when to read on.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from email.utils import formatdate

from accord.http.server.asgi import Event


class AsgiRequest(ABC):
    """One request and its response."""

    def __init__(self, *, has_body: bool) -> None:
        self.is_answered = False
        """Whether the application has sent the whole response."""
        self.is_whole = not has_body
        """Whether the body has arrived completely."""
        self._parts: list[bytes] = []
        self._size = 0
        self._told_a_part = self._told_whole = False
        self._gone = False
        self._waiter: asyncio.Future[None] | None = None
        self._start: Event | None = None
        self._on_leave: Callable[[bool], None] | None = None

    def got(self, part: bytes, *, is_over: bool) -> int:
        """Add a part of the body; returns how many bytes wait for the application."""
        self._parts.append(part)
        self._size += len(part)
        self.is_whole = is_over
        self._wake()
        return self._size

    def leave(self) -> None:
        """End the request: the client has left, or the response is complete."""
        self._gone = True
        self._wake()
        if (do := self._on_leave) is not None:
            self._on_leave = None
            do(self.is_sent)

    @property
    def is_sent(self) -> bool:
        """Whether the whole response is written."""
        return self.is_answered

    def on_leave(self, do: Callable[[bool], None]) -> None:
        """Call this with whether the response is sent when the request has ended, or now if it has."""
        if self._gone:
            do(self.is_sent)
        else:
            self._on_leave = do

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def body_at_once(self) -> bytes | None:
        """Take the whole body if it has arrived and no part of it was taken; None otherwise."""
        return None if self._told_a_part or not self.is_whole or self._gone else self._take()

    def _take(self) -> bytes:
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._taken(self._size)
        self._size = 0
        self._told_a_part, self._told_whole = True, self.is_whole
        return body

    async def receive(self) -> Event:
        """Wait for the next event: a part of the body, or the end of the request."""
        while True:
            if not self._told_whole and (self._parts or self.is_whole):
                return {"type": "http.request", "body": self._take(), "more_body": not self.is_whole}
            if self._gone:
                return {"type": "http.disconnect"}
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    async def send(self, event: Event) -> None:
        """Send the start of the response, or a part of its body. After `leave` it does nothing."""
        if self._gone:
            return
        if event["type"] == "http.response.start":
            self._start = event  # written together with the first part of the body
            return
        await self._respond(event.get("body", b""), more=event.get("more_body", False))

    @abstractmethod
    def _taken(self, size: int) -> None:
        """Note that the application has taken so many bytes of the body."""

    @abstractmethod
    async def _respond(self, body: bytes, *, more: bool) -> None:
        """Write a part of the response; waits while the client does not read."""


class _Clock:
    """The Date header, computed once a second."""

    def __init__(self) -> None:
        self.until = 0.0
        self.text = b""


_clock = _Clock()


def date() -> bytes:
    """The value of the Date header now."""
    now = asyncio.get_running_loop().time()
    if now >= _clock.until:
        _clock.text, _clock.until = formatdate(usegmt=True).encode(), now + 1.0
    return _clock.text
