"""The memory that the request bodies of one server share: which of them wait for room, and which give way.

    request ──▶ Bodies.share ──▶ Share.take_now, before the body is read ──▶ Share.release, when the request ends
                                       │ no room: Share.wait, the body stays unread
                                       └ others wait: the share held longest gives way

A body takes room for all of it before it is read, so bodies that are read never wait for each other. It takes as much
as its Content-Length says, or as much as the largest body has if it says nothing.

A share may be held for long: its client sends slowly, or its agent reads nothing. So once another body waits, the share
that was taken first gives way, though not within its first seconds: its request is refused, and its client can repeat
it. Small bodies have half as much room again for themselves, so that large ones do not hold up ordinary messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from accord.http.server.validation import Refusal

SMALL = 64 * 1024
"""Bytes of the largest body that takes room of its own kind."""

HELD = 5.0
"""Seconds that a share is held at least before it gives way."""

QUEUE = 256
"""Bodies that may wait for room. Each has one read of its bytes in memory."""

Result = TypeVar("Result")


class Bodies:
    """The room of one server, for small bodies and for large ones."""

    def __init__(self, most: int) -> None:
        self._small = Room(most // 2)
        self._large = Room(most)

    @property
    def size(self) -> int:
        """Bytes that are taken."""
        return self._small.size + self._large.size

    @property
    def waiting(self) -> int:
        """How many bodies wait for room."""
        return self._small.waiting + self._large.waiting

    def share(self, size: int) -> Share:
        """A share for a body of this size, not taken yet."""
        return Share(self._small if size <= SMALL else self._large, size)


class Room:
    """So many bytes, taken in the order in which they are asked for."""

    def __init__(self, most: int) -> None:
        self.size = 0
        self._most = most
        self._held: dict[Share, float] = {}
        """When each share was taken, the earliest first; those that give way are left out."""
        self._queue: dict[Share, asyncio.Future[None]] = {}
        self._pressing: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many shares wait."""
        return len(self._queue)

    def take_now(self, share: Share) -> bool:
        """Take this share if there is room and no other waits; whether it was taken."""
        if self._queue or not self._fits(share):
            return False
        self._hold(share)
        return True

    async def wait_for(self, share: Share) -> None:
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

    def release(self, share: Share, size: int) -> None:
        """Give back so many bytes of this share."""
        self.size -= size
        if share.size == size:
            self._held.pop(share, None)
        self._serve()

    def _fits(self, share: Share) -> bool:
        return not self.size or self.size + share.size <= self._most

    def _hold(self, share: Share) -> None:
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
        """Let the share that was taken first give way once its time is over, if others wait."""
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


class Share:
    """The room of one body."""

    __slots__ = ("_deadline", "_room", "gives_way", "is_taken", "size")

    def __init__(self, room: Room, size: int) -> None:
        self.size = size
        self.is_taken = False
        self.gives_way = False
        """Whether this body must be refused: others wait for its room."""
        self._room = room
        self._deadline: asyncio.Timeout | None = None

    def take_now(self) -> bool:
        """Take the room if it is free; whether it was taken."""
        return self._room.take_now(self)

    async def wait(self) -> None:
        """Wait for the room, and take it. Raises Refusal if too many wait already."""
        await self._room.wait_for(self)

    def shrink(self, size: int) -> None:
        """Keep only so many bytes."""
        if size < self.size:
            self._room.release(self, self.size - size)
            self.size = size

    def release(self) -> None:
        """Give the room back; idempotent."""
        if self.is_taken:
            self.is_taken = False
            self._room.release(self, self.size)

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
        """Move the deadline of `during`, unless the share gives way."""
        if not self.gives_way:
            self._reschedule(until)

    def give_way(self) -> None:
        """End `during`, now or when it begins."""
        self.gives_way = True
        self._reschedule(0)

    def _reschedule(self, until: float) -> None:
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(until)
