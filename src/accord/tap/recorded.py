"""Records the frames of a transport: for `accord bridge` and `accord serve`, which forward them without a connection.

What is received is `in`, and what is sent is `out`, as the program sees it that holds the transport. Where one file
holds several connections, each has a `link`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from accord.jsonrpc.frames import Oversized
from accord.tap.exits import exited
from accord.trace import IN, OUT, Observer, TraceEvent
from accord.transports.base import End, Receiver, Transport


class RecordedTransport(Transport):
    """A transport whose frames an observer sees."""

    def __init__(self, transport: Transport, observer: Observer, link: int | None = None) -> None:
        self.name = transport.name
        self._transport = transport
        self._observer = observer
        self._link = link

    def on_stderr(self, line: str) -> None:
        """Record a line that the agent's process wrote to standard error, which the transport does not carry."""
        self._observer(TraceEvent(time.monotonic(), OUT, stderr=line.rstrip("\n"), link=self._link))

    def on_exit(self, code: int) -> None:
        """Record how the agent's process ended."""
        self._observer(TraceEvent(time.monotonic(), OUT, process=exited(code), link=self._link))

    def __setattr__(self, name: str, value: object) -> None:
        if name == "why":  # the reason to send at the end is the transport's
            self._transport.why = str(value)
        else:
            super().__setattr__(name, value)

    async def start(self, receiver: Receiver) -> None:
        await self._transport.start(_RecordedReceiver(receiver, self._observer, self._link))

    def send(self, frames: Sequence[bytes]) -> None:
        now = time.monotonic()
        for frame in frames:
            self._observer(TraceEvent(now, OUT, frame, link=self._link))
        self._transport.send(frames)

    @property
    def unsent(self) -> int:
        return self._transport.unsent

    async def flush(self) -> None:
        await self._transport.flush()

    @property
    def stderr(self) -> str:
        return self._transport.stderr

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    async def close(self, grace: float = 2.0) -> End:
        return await self._transport.close(grace)


class _RecordedReceiver(Receiver):
    """Shows what arrives to the observer, before its receiver handles it."""

    def __init__(self, receiver: Receiver, observer: Observer, link: int | None) -> None:
        self._receiver = receiver
        self._observer = observer
        self._link = link

    def paused(self) -> None:
        self._receiver.paused()

    def resumed(self) -> None:
        self._receiver.resumed()

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        now = time.monotonic()
        for frame in frames:
            if isinstance(frame, Oversized):
                note = f"lost: a message of {frame.length:,} bytes is over the limit"
                self._observer(TraceEvent(now, IN, note=note, link=self._link))
            else:
                self._observer(TraceEvent(now, IN, frame, link=self._link))
        self._receiver.received(frames)

    def ended(self, end: End) -> None:
        if end.stderr:
            self._observer(TraceEvent(time.monotonic(), IN, stderr=end.stderr.rstrip("\n"), link=self._link))
        self._receiver.ended(end)
