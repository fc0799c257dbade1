"""What a transport is: something that carries frames both ways until it ends, once.

A `Transport` pushes what arrives into one `Receiver`, from the event loop's own callbacks and with no task between:

    start(receiver)   ->  received([frame, ...])     any number of times, in order, never re-entrantly
                          paused() / resumed()       our own output: past the high-water mark, and below it again
                          ended(End(...))            exactly once, after the last frame

The other way, `send` queues frames and never waits. Who must wait looks at `paused` and `resumed`, or awaits `flush`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import msgspec

from accord.errors import ConnectionClosed, EndReason
from accord.jsonrpc.frames import Oversized

HIGH_WATER = 1024 * 1024
"""Bytes of output that may wait before `paused()`; `resumed()` comes at a quarter of it."""


class End(msgspec.Struct, frozen=True):
    """Why a link ended, as far as its transport can tell."""

    reason: EndReason
    detail: str = ""
    exit_code: int | None = None
    stderr: str = ""

    def error(self) -> ConnectionClosed:
        """This end as the exception that waiting requests get; a new one each time, as tracebacks grow."""
        return ConnectionClosed(self.reason, self.detail, exit_code=self.exit_code, stderr=self.stderr)


class Receiver(Protocol):
    """Who a transport delivers to. None of these may raise."""

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        """Frames, in the order of the wire: all that one read brought."""
        ...

    def paused(self) -> None:
        """More than the high-water mark of our output is waiting."""
        ...

    def resumed(self) -> None:
        """There is room for output again."""
        ...

    def ended(self, end: End) -> None:
        """Nothing will be received any more. Where only the input has ended, what is owed can still be sent."""
        ...


class Transport(ABC):
    """One link's way to the other side."""

    name: str
    """What people see in errors and traces: `stdio`, `process gemini --acp`, `memory`."""

    why = ""
    """What the other side is told when the link is closed, where there are words for it on the wire."""

    @abstractmethod
    async def start(self, receiver: Receiver) -> None:
        """Open the way; raises ConnectionClosed (or OSError's kind of trouble as one) when it cannot be opened."""

    @abstractmethod
    def send(self, frames: Sequence[bytes]) -> None:
        """Queue these frames, in this order. Never waits, never raises; dropped once nobody can get them any more."""

    @property
    @abstractmethod
    def unsent(self) -> int:
        """How many bytes of output are waiting here."""

    @abstractmethod
    async def flush(self) -> None:
        """Return when nothing is waiting here, or when it will never be written."""

    @abstractmethod
    def pause_reading(self) -> None:
        """Stop taking input, so that the other side feels it. What was already read still arrives."""

    @abstractmethod
    def resume_reading(self) -> None: ...

    @abstractmethod
    async def close(self, grace: float = 2.0) -> End:
        """End the link: flush while the other side still reads, then close; bounded by about `grace` a step.

        Idempotent: a second call, also at the same time, waits for the first. A cancellation of the caller does not
        leave it half done. Returns how the link ended; `ended()` has been called by then.
        """
