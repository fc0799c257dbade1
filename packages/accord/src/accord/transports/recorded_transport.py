"""Records the frames of a transport: for `accord bridge` and `accord serve`, which forward them without a connection.

What is received is `in`, and what is sent is `out`, as the program sees it that holds the transport. Where one file
holds several connections, each has a `link`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from accord.jsonrpc.line_frames import Oversized
from accord.trace import IN, OUT, Observer, TraceEvent
from accord.trace.events import exited
from accord.transports.base import End, Transport
from accord.transports.wrapped import WrappedTransport


class RecordedTransport(WrappedTransport):
    """A transport whose frames an observer sees; what arrives, before its receiver handles it."""

    def __init__(self, transport: Transport, observer: Observer, link: int | None = None) -> None:
        super().__init__(transport)
        self._observer = observer
        self._link = link

    def on_stderr(self, line: str) -> None:
        """Record a line that the agent's process wrote to standard error, which the transport does not carry."""
        self._observer(TraceEvent(time.monotonic(), OUT, stderr=line.rstrip("\n"), link=self._link))

    def on_exit(self, code: int) -> None:
        """Record how the agent's process ended."""
        self._observer(TraceEvent(time.monotonic(), OUT, process=exited(code), link=self._link))

    def send(self, frames: Sequence[bytes]) -> None:
        now = time.monotonic()
        for frame in frames:
            self._observer(TraceEvent(now, OUT, frame, link=self._link))
        self._inner.send(frames)

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        now = time.monotonic()
        for frame in frames:
            if isinstance(frame, Oversized):
                note = f"lost: a message of {frame.length:,} bytes is over the limit"
                self._observer(TraceEvent(now, IN, note=note, link=self._link))
            else:
                self._observer(TraceEvent(now, IN, frame, link=self._link))
        super().received(frames)

    def ended(self, end: End) -> None:
        if end.stderr:
            self._observer(TraceEvent(time.monotonic(), IN, stderr=end.stderr.rstrip("\n"), link=self._link))
        super().ended(end)
