"""One request over HTTP/2, and what waits of its response."""

from __future__ import annotations

import asyncio
from typing import Protocol

from accord._internal.light_event import LightEvent
from accord.http.h1 import Fields
from accord.http.server.asgi_request import AsgiRequest, date


class Http2Shell(Protocol):
    """What a request needs from its connection."""

    def acknowledge(self, number: int, counted: int) -> None:
        """Let the client send as much again."""
        ...

    def write(self, request: Http2Request) -> None:
        """Write as much of the response as there is room for."""
        ...


class Http2Request(AsgiRequest):
    """One request over HTTP/2, and its response until it is written."""

    def __init__(self, connection: Http2Shell, number: int, *, is_head: bool, has_body: bool) -> None:
        super().__init__(has_body=has_body)
        self.number = number
        """The number of its stream."""
        self.waiting = bytearray()
        """The part of the response's body that is not written."""
        self.has_begun = False
        """Whether the header of the response is written."""
        self.waits_since = 0.0
        """When the response last got on."""
        self._connection = connection
        self._is_head = is_head
        self._is_ended = False
        self._counted = 0
        self._written = LightEvent()
        self._clock = asyncio.get_running_loop().time

    # The body

    def count(self, counted: int) -> None:
        """Count received bytes, as flow control does, until the application takes them."""
        self._counted += counted

    def _taken(self, size: int) -> None:  # noqa: ARG002
        counted, self._counted = self._counted, 0
        self._connection.acknowledge(self.number, counted)

    # The response

    async def _respond(self, body: bytes, *, more: bool) -> None:
        if not self._is_head:
            self.waiting += body
        self.is_answered = not more
        self.waits_since = self._clock()
        self._connection.write(self)
        if more and self.has_output:
            self._written.clear()
            await self._written.wait()

    @property
    def has_output(self) -> bool:
        """Whether something of the response can be written."""
        return not self._gone and (not self.has_begun or bool(self.waiting) or self.needs_end)

    @property
    def needs_end(self) -> bool:
        """Whether the response is written but for its end."""
        return self.is_answered and not self.waiting and not self._is_ended

    @property
    def is_sent(self) -> bool:
        """Whether the response is written to its end."""
        return self._is_ended

    def take_head(self) -> Fields | None:
        """The header of the response if it is not written, as fields."""
        start, self._start = self._start, None  # a stream stays open for hours
        if self.has_begun or start is None:
            return None
        self.has_begun = True
        if self.needs_end:
            self._is_ended = True
        return [(b":status", b"%d" % start["status"]), *start["headers"], (b"date", date())]

    def take(self, size: int) -> bytes:
        """The next bytes of the body, at most `size`."""
        data = bytes(self.waiting[:size])
        del self.waiting[:size]
        self.waits_since = self._clock()
        if not self.waiting:
            self._is_ended = self.is_answered
            self._written.set()
        return data

    def take_end(self) -> None:
        """Note that the end of the response is written."""
        self._is_ended = True

    def leave(self) -> None:
        super().leave()
        self.waiting.clear()
        self._written.set()
