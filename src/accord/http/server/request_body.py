"""Reads the body of a POST within limits of size and time, or discards it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from accord.http.server.limits import ServerLimits
from accord.http.server.quota import Bytes
from accord.http.server.validation import Headers, Refusal
from accord.transports.closing import within

SLOWEST = 1024
"""The slowest rate for a body in bytes a second, after `ServerLimits.arrival`."""

PASSING = 2.0
"""Seconds to read a refused body, so that the client gets the response instead of a broken connection."""

DIGITS = 18
"""The most digits of a Content-Length."""


class RequestBody:
    """One request body from an ASGI server."""

    def __init__(
        self,
        headers: Headers,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        limits: ServerLimits,
        together: Bytes,
    ) -> None:
        self.size = 0
        """Bytes that have arrived."""
        self._declared = headers.get("content-length", "")
        self._receive = receive
        self._limits = limits
        self._is_over = False
        self._together = together
        """Counts the bodies of all requests together."""
        self._kept = 0

    async def read(self) -> bytes:
        """Read the whole body; raises Refusal."""
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
            raise Refusal(408, f"the body did not arrive in time: only {self.size:,} bytes were received") from None
        return b"".join(parts)

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._is_over = True
            raise Refusal(400, "the connection closed before the whole body arrived")
        self._is_over = not message.get("more_body")
        part: bytes = message.get("body", b"")
        self.size += len(part)
        return part

    def _keep(self, part: bytes) -> None:
        if not self._together.has_room(len(part)):
            raise Refusal(503, f"request bodies together exceed {self._limits.bodies:,} bytes: try again later")
        self._kept += len(part)
        self._together.add(len(part))

    def release(self) -> None:
        """Stop counting this body: its request has ended."""
        self._together.remove(self._kept)
        self._kept = 0

    def _too_large(self) -> Refusal:
        return Refusal(413, f"message too large: at most {self._limits.body:,} bytes are allowed")

    @property
    def is_over(self) -> bool:
        """Whether the body has arrived completely."""
        return self._is_over

    async def pass_over(self) -> None:
        """Read and discard the rest for `PASSING` seconds at most."""
        await within(PASSING, self._rest())

    async def _rest(self) -> None:
        try:
            while not self._is_over:
                await self._next()
        except Refusal:
            return
