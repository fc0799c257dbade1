"""The transport interface: carries frames in both directions until it ends, once.

A `Transport` pushes what arrives into one `Receiver`, from the event loop's own callbacks and with no task between:

    start(receiver)   ->  received([frame, ...])     any number of times, in order, never re-entrantly
                          paused() / resumed()       our own output: past the high-water mark, and below it again
                          ended(End(...))            exactly once, after the last frame

In the other direction `send` queues frames and never waits. To wait for room, use `paused`/`resumed` or await `flush`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import msgspec

from accord.errors import ConnectionClosed, EndReason
from accord.jsonrpc.line_frames import Oversized

HIGH_WATER = 64 * 1024
"""Bytes of waiting output at which `paused()` is called; at a quarter of it `resumed()` follows.

As much as a pipe holds. With 1 MiB, what waits leaves the processor's caches, and updates take a quarter more time.
"""


class End(msgspec.Struct, frozen=True):
    """Why a connection ended, as far as its transport knows."""

    reason: EndReason
    detail: str = ""
    exit_code: int | None = None
    stderr: str = ""

    def error(self) -> ConnectionClosed:
        """A new exception for a waiting request: shared ones would collect tracebacks."""
        return ConnectionClosed(self.reason, self.detail, exit_code=self.exit_code, stderr=self.stderr)


class Receiver(Protocol):
    """The consumer of a transport's frames. Its methods must not raise."""

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        """Take the frames of one read, in the order of the wire."""
        ...

    def paused(self) -> None:
        """More output is waiting than the high-water mark allows."""
        ...

    def resumed(self) -> None:
        """There is room for output again."""
        ...

    def ended(self, end: End) -> None:
        """No more frames follow. If only the input has ended, answers can still be sent."""
        ...


class Transport(ABC):
    """One connection to the other side."""

    name: str
    """The name in errors and traces: `stdio`, `process gemini --acp`, `memory`."""

    why = ""
    """The reason to send when the connection is closed, on transports that carry one."""

    @abstractmethod
    async def start(self, receiver: Receiver) -> None:
        """Open the connection. Raises ConnectionClosed if that fails, also for an OSError."""

    @abstractmethod
    def send(self, frames: Sequence[bytes]) -> None:
        """Queue these frames, in this order. Never waits or raises; after the end they are dropped."""

    @property
    @abstractmethod
    def unsent(self) -> int:
        """The number of bytes of output that wait."""

    @abstractmethod
    async def flush(self) -> None:
        """Wait until all output is written, or can no longer be written."""

    @property
    def stderr(self) -> str:
        """The end of what the other side wrote to standard error until now; empty unless it is our process."""
        return ""

    @abstractmethod
    def pause_reading(self) -> None:
        """Stop reading, so that the other side must wait. Frames that were read already still arrive."""

    @abstractmethod
    def resume_reading(self) -> None:
        """Read again."""

    @abstractmethod
    async def close(self, grace: float = 2.0) -> End:
        """Close the connection: flush while the other side reads, then close. Each step takes about `grace` at most.

        Idempotent: a second call, also at the same time, waits for the first. A cancellation of the caller does not
        leave it half done. Returns how the link ended; `ended()` has been called by then.
        """
