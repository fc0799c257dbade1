"""`ObservedTransport`: a connection of an observer, of whose messages the agent gets only what `Observing` passes."""

from __future__ import annotations

from collections.abc import Sequence

from accord.http.server.observing import Observing
from accord.jsonrpc.frames import Oversized
from accord.transports.base import Transport
from accord.transports.wrapped import WrappedTransport


class ObservedTransport(WrappedTransport):
    """What an agent has in place of the connection."""

    def __init__(self, link: Transport) -> None:
        super().__init__(link)
        self._observing = Observing()
        self._is_full = False
        """Whether more waits for the observer than should: it then sends no more requests to be refused."""
        self._agent_reads = True

    def send(self, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self._observing.sent(frame)
        self._inner.send(frames)

    def pause_reading(self) -> None:
        self._agent_reads = False
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._agent_reads = True
        if not self._is_full:
            self._inner.resume_reading()

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        for frame in frames:
            if isinstance(frame, Oversized):
                super().received([frame])  # every agent refuses it
                continue
            verdict = self._observing.received(frame)
            if verdict.answer is not None:
                self._inner.send([verdict.answer])
            if verdict.passed is not None:
                super().received([verdict.passed])

    def paused(self) -> None:
        self._is_full = True
        self._inner.pause_reading()
        super().paused()

    def resumed(self) -> None:
        self._is_full = False
        if self._agent_reads:
            self._inner.resume_reading()
        super().resumed()
