"""`ObservedTransport`: a connection of an observer, of whose messages the agent gets only what `Observing` passes."""

from __future__ import annotations

from collections.abc import Sequence

from accord.http.server.observing import Observing
from accord.jsonrpc.line_frames import Oversized
from accord.transports.transport_interface import Transport
from accord.transports.wrapped_transport import WrappedTransport


class ObservedTransport(WrappedTransport):
    """What an agent has in place of the connection."""

    def __init__(self, link: Transport) -> None:
        super().__init__(link)
        self._observing = Observing()

    def send(self, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self._observing.sent(frame)
        self._inner.send(frames)

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
        self.hold_reading()  # more waits for the observer than should: it sends no more requests to be refused
        super().paused()

    def resumed(self) -> None:
        self.let_read()
        super().resumed()
