"""Reads the body of a POST within limits of size, time and the memory that all bodies share, or discards it.

    request ──▶ BodyMemory.share ──▶ take_now, before the body is read ──▶ release, when the request ends
                                        │ no room: wait, the body stays unread
                                        └ others wait: the share held longest gives way

A body reserves memory for all of it before it is read, so bodies that are being read never wait for each other. It
reserves its Content-Length, or the largest allowed size if it declares none.

A share may be held for long: its client sends slowly, or its agent reads nothing. So once another body waits, the
oldest share gives way, though not within its first seconds: its request is refused, and its client can repeat it. Small
bodies have half as much again for themselves, so that large ones do not delay ordinary messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from hashlib import sha256
from mmap import mmap
from typing import Any, TypeVar

from accord._internal.tasks import within
from accord.http.headers import CONNECTION_ID
from accord.http.server.server_limits import ServerLimits
from accord.http.server.tcp_connection import AsgiRequest
from accord.http.server.validation import Headers, Refusal

SMALL = 64 * 1024
"""The largest body that counts as small."""

HELD = 5.0
"""Seconds that a share is held at least before it gives way."""

QUEUE = 256
"""Bodies that may wait for memory. Each has one read of its bytes in memory."""

Result = TypeVar("Result")


class BodyMemory:
    """The room of one server, for small bodies and for large ones."""

    def __init__(self, most: int) -> None:
        self._small = MemoryPool(most // 2)
        self._large = MemoryPool(most)

    @property
    def size(self) -> int:
        """Bytes that are taken."""
        return self._small.size + self._large.size

    @property
    def waiting(self) -> int:
        """Return how many bodies wait for memory."""
        return self._small.waiting + self._large.waiting

    def share(self, size: int) -> MemoryShare:
        """Return a share for a body of this size, not reserved yet."""
        return MemoryShare(self._small if size <= SMALL else self._large, size)


class MemoryPool:
    """A number of bytes, reserved in the order of the requests."""

    def __init__(self, most: int) -> None:
        self.size = 0
        self._most = most
        self._held: dict[MemoryShare, float] = {}
        """When each share was reserved, the earliest first; those that give way are left out."""
        self._queue: dict[MemoryShare, asyncio.Future[None]] = {}
        self._pressing: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many shares wait."""
        return len(self._queue)

    def take_now(self, share: MemoryShare) -> bool:
        """Reserve this share if there is room and no other waits; returns whether that succeeded."""
        if self._queue or not self._fits(share):
            return False
        self._hold(share)
        return True

    async def wait_for(self, share: MemoryShare) -> None:
        """Take this share when it is its turn. Raises Refusal if too many wait."""
        if len(self._queue) >= QUEUE:
            raise Refusal(503, "too many request bodies wait for room: try again later")
        self._queue[share] = turn = asyncio.get_running_loop().create_future()
        self._press()
        try:
            await turn
        finally:
            self._queue.pop(share, None)
            self._serve()  # if this one waited no longer, the next may fit

    def release(self, share: MemoryShare, size: int) -> None:
        """Release this many bytes of this share."""
        self.size -= size
        if share.size == size:
            self._held.pop(share, None)
        self._serve()

    def _fits(self, share: MemoryShare) -> bool:
        return not self.size or self.size + share.size <= self._most

    def _hold(self, share: MemoryShare) -> None:
        self.size += share.size
        share.is_taken = True
        self._held[share] = asyncio.get_running_loop().time()

    def _serve(self) -> None:
        while self._queue and self._fits(share := next(iter(self._queue))):
            turn = self._queue.pop(share)
            if not turn.done():
                self._hold(share)
                turn.set_result(None)
        self._press()

    def _press(self) -> None:
        """Make the oldest share give way once its time is over, if others wait."""
        if self._pressing is not None:
            self._pressing.cancel()
            self._pressing = None
        if self._queue and self._held:
            loop = asyncio.get_running_loop()
            taken = next(iter(self._held.values()))
            self._pressing = loop.call_at(taken + HELD, self._claim)

    def _claim(self) -> None:
        self._pressing = None
        share = next(iter(self._held))
        del self._held[share]
        share.give_way()
        self._press()


class MemoryShare:
    """The room of one body."""

    __slots__ = ("_deadline", "gives_way", "is_taken", "room", "size")

    def __init__(self, room: MemoryPool, size: int) -> None:
        self.size = size
        self.is_taken = False
        self.gives_way = False
        """Whether this body must be refused: others wait for its room."""
        self.room = room
        self._deadline: asyncio.Timeout | None = None

    def shrink(self, size: int) -> None:
        """Keep only this many bytes."""
        if size < self.size:
            self.room.release(self, self.size - size)
            self.size = size

    def release(self) -> None:
        """Release the memory; idempotent."""
        if self.is_taken:
            self.is_taken = False
            self.room.release(self, self.size)

    async def during(self, work: Awaitable[Result], until: float | None = None) -> Result:
        """Await this while the share is held; raises TimeoutError at this time, and Refusal if it must give way."""
        try:
            async with asyncio.timeout_at(0 if self.gives_way else until) as self._deadline:
                return await work
        except TimeoutError:
            if not self.gives_way:
                raise
        finally:
            self._deadline = None
        # Not raised above: the timeout's error refers to the task whose error this becomes, and so to the body.
        raise Refusal(503, "the server needs the room of this body for others: try again later")

    def put_off(self, until: float) -> None:
        """Extend the deadline of `during`, unless the share gives way."""
        if not self.gives_way:
            self._reschedule(until)

    def give_way(self) -> None:
        """End `during`, now or when it begins."""
        self.gives_way = True
        self._reschedule(0)

    def _reschedule(self, until: float) -> None:
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(until)


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
        bodies: BodyMemory,
        own: AsgiRequest | None = None,
        *,
        digest: str | None = None,
    ) -> None:
        self._own = own
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
        self.is_over = False
        """Whether the body has arrived completely."""
        self._share = bodies.share(int(declared) if is_declared and not self._is_too_large else self._most)

    async def read(self) -> bytes:
        """Read the whole body; raises Refusal."""
        if self._is_too_large:
            raise self._too_large()
        if not self._share.room.take_now(self._share):
            await self._wait_for_room()
        data = None if self._own is None else self._own.body_at_once()
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
            await self._share.during(self._share.room.wait_for(self._share), latest)
        except TimeoutError:
            raise Refusal(503, f"other request bodies take {self._limits.bodies:,} bytes: try again later") from None

    async def _whole(self, latest: float) -> bytes:
        first = await self._part()
        return first if self.is_over else await self._gathered(first, latest)

    async def _gathered(self, first: bytes, latest: float) -> bytes:
        # The allocator keeps the memory of a growing buffer for long. This memory is returned at once, whatever
        # happens to the request, and is never larger than what has arrived.
        with mmap(-1, max(1, self._share.size)) as kept:
            kept.write(first)
            while not self.is_over:
                self._share.put_off(latest + self.size / SLOWEST)
                kept.write(await self._part())
            return kept[: self.size]

    async def _part(self) -> bytes:
        part = await self._next()
        self._check()
        return part

    def _count(self, part: bytes, *, is_over: bool) -> None:
        self.is_over = is_over
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
            self.is_over = True
            raise Refusal(400, "the connection closed before the whole body arrived")
        part: bytes = message.get("body", b"")
        self._count(part, is_over=not message.get("more_body"))
        return part

    def release(self) -> None:
        """Release the memory of this body: its request has ended."""
        self._share.release()

    def _too_large(self) -> Refusal:
        first = "" if self._most == self._limits.body else " for the first message of a connection"
        return Refusal(413, f"message too large: at most {self._most:,} bytes are allowed{first}")

    async def pass_over(self) -> None:
        """Read and discard the rest for `PASSING` seconds at most."""
        await within(PASSING, self._rest())

    async def _rest(self) -> None:
        try:
            while not self.is_over:
                await self._next()
        except Refusal:
            return
