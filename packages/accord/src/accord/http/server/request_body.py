"""Reads the body of a POST within limits of size and time, or discards it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from hashlib import sha256
from mmap import mmap
from typing import Any, TypeVar

from accord._internal.tasks import within
from accord.http.headers import CONNECTION_ID
from accord.http.server.limits import ServerLimits
from accord.http.server.room import Bodies
from accord.http.server.validation import Headers, Refusal

SLOWEST = 1024
"""The slowest rate for a body in bytes a second, after `ServerLimits.arrival`."""

PASSING = 2.0
"""Seconds to read a refused body, so that the client gets the response instead of a broken connection."""

DIGITS = 18
"""The most digits of a Content-Length."""

Result = TypeVar("Result")


class RequestBody:
    """One request body from an ASGI server."""

    def __init__(
        self,
        headers: Headers,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        limits: ServerLimits,
        bodies: Bodies,
        at_once: Callable[[], bytes | None] | None = None,
        *,
        digest: str | None = None,
    ) -> None:
        self._at_once = at_once
        self._signed_digest = digest
        """The SHA-256 that the sender has signed, if it has."""
        self._digest = None if digest is None else sha256()
        self.size = 0
        """Bytes that have arrived."""
        self._most = limits.body if headers.get(CONNECTION_ID) else limits.first
        declared = headers.get("content-length", "")
        is_declared = declared.isdecimal()
        self._is_too_large = is_declared and (len(declared) > DIGITS or int(declared) > self._most)
        self._receive = receive
        self._limits = limits
        self._is_over = False
        self._share = bodies.share(int(declared) if is_declared and not self._is_too_large else self._most)

    async def read(self) -> bytes:
        """Read the whole body; raises Refusal."""
        if self._is_too_large:
            raise self._too_large()
        if not self._share.take_now():
            await self._wait_for_room()
        data = None if self._at_once is None else self._at_once()
        if data is None:
            data = await self._read_in_time()
        else:
            self._count(data, is_over=True)
            self._check()
        if self._digest is not None and self._digest.hexdigest() != self._signed_digest:
            raise Refusal(403, "the body is not the one that was signed")
        self._share.shrink(self.size)
        return data

    async def _read_in_time(self) -> bytes:
        latest = asyncio.get_running_loop().time() + self._limits.arrival
        try:
            return await self._share.during(self._whole(latest), latest)
        except TimeoutError:
            raise Refusal(408, f"the body did not arrive in time: only {self.size:,} bytes were received") from None

    async def _wait_for_room(self) -> None:
        latest = asyncio.get_running_loop().time() + self._limits.arrival
        try:
            await self._share.during(self._share.wait(), latest)
        except TimeoutError:
            raise Refusal(503, f"other request bodies take {self._limits.bodies:,} bytes: try again later") from None

    async def _whole(self, latest: float) -> bytes:
        first = await self._part()
        return first if self._is_over else await self._gathered(first, latest)

    async def _gathered(self, first: bytes, latest: float) -> bytes:
        # What the allocator gives for a growing buffer stays ours for long. This memory goes back at once, whatever
        # becomes of the request, and takes no more of it than has arrived.
        with mmap(-1, max(1, self._share.size)) as kept:
            kept.write(first)
            while not self._is_over:
                self._share.put_off(latest + self.size / SLOWEST)
                kept.write(await self._part())
            return kept[: self.size]

    async def _part(self) -> bytes:
        part = await self._next()
        self._check()
        return part

    def _count(self, part: bytes, *, is_over: bool) -> None:
        self._is_over = is_over
        self.size += len(part)
        if self._digest is not None:
            self._digest.update(part)

    def _check(self) -> None:
        if self.size > self._most:
            raise self._too_large()
        if self.size > self._share.size:
            raise Refusal(400, f"the body is longer than its Content-Length of {self._share.size:,} bytes")

    async def held_during(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Await this while the body is in memory; raises Refusal if others need its room."""
        return await self._share.during(work)

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._is_over = True
            raise Refusal(400, "the connection closed before the whole body arrived")
        part: bytes = message.get("body", b"")
        self._count(part, is_over=not message.get("more_body"))
        return part

    def release(self) -> None:
        """Give back the room of this body: its request has ended."""
        self._share.release()

    def _too_large(self) -> Refusal:
        first = "" if self._most == self._limits.body else " for the first message of a connection"
        return Refusal(413, f"message too large: at most {self._most:,} bytes are allowed{first}")

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
