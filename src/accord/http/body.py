"""The body of a POST: read within its bounds of size and time, or passed over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from accord.http.judging import Headers, Refusal
from accord.http.limits import Limits
from accord.http.quota import Bytes
from accord.transports.closing import within

SLOWEST = 1024
"""Bytes a second that a body has to come with, beyond `Limits.arrival`."""

PASSING = 2.0
"""Seconds spent on a body that nobody wants, so that its sender reads the answer and not a broken connection."""

DIGITS = 18


class Body:
    """One body, as it comes from an ASGI server."""

    def __init__(
        self,
        headers: Headers,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        limits: Limits,
        together: Bytes,
    ) -> None:
        self.size = 0
        """Bytes that have come."""
        self._declared = headers.get("content-length", "")
        self._receive = receive
        self._limits = limits
        self._is_over = False
        self._together = together
        """What the bodies of all requests take."""
        self._kept = 0

    async def read(self) -> bytes:
        """All of it; raises Refusal."""
        if self._declared.isdecimal() and (len(self._declared) > DIGITS or int(self._declared) > self._limits.body):
            raise self._too_large()
        parts: list[bytes] = []
        loop = asyncio.get_running_loop()
        latest = loop.time() + self._limits.arrival
        try:
            async with asyncio.timeout_at(latest) as patience:
                while not self._is_over:
                    parts.append(part := await self._next())
                    self._keep(part)
                    if self.size > self._limits.body:
                        raise self._too_large()
                    patience.reschedule(latest + self.size / SLOWEST)
        except TimeoutError:
            raise Refusal(408, "the body did not come in time") from None
        return b"".join(parts)

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._is_over = True
            raise Refusal(400, "the body is not whole")
        self._is_over = not message.get("more_body")
        part: bytes = message.get("body", b"")
        self.size += len(part)
        return part

    def _keep(self, part: bytes) -> None:
        if not self._together.has_room(len(part)):
            raise Refusal(503, "the server has too many bodies to keep: send this again later")
        self._kept += len(part)
        self._together.add(len(part))

    def release(self) -> None:
        """The request is over: its body is kept no longer."""
        self._together.remove(self._kept)
        self._kept = 0

    def _too_large(self) -> Refusal:
        return Refusal(413, f"a message has at most {self._limits.body:,} bytes")

    @property
    def is_over(self) -> bool:
        """Whether nothing more of it will come."""
        return self._is_over

    async def pass_over(self) -> None:
        """Take what still comes of it, for a moment."""
        await within(PASSING, self._rest())

    async def _rest(self) -> None:
        try:
            while not self._is_over:
                await self._next()
        except Refusal:
            return
