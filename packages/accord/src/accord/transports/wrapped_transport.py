"""Transports around other transports: wrapped, recorded, inspected before they start, and joined in pairs.

- `WrappedTransport` is like the transport within, but for what a subclass changes.
- `FirstFrame` lets its holder look at the first frame before it is decided who receives it.
- `RecordedTransport` shows an observer each frame that passes, for programs that forward frames without a connection.
  What is received is `in`, and what is sent is `out`. Where one file holds several connections, each has a `link`.
- `relay` joins two transports: each frame that arrives on one goes out on the other, unread and unchanged.

    await relay(StdioTransport.standard(), WebSocketTransport("wss://agents.example/acp"))

A relay reads each side only as fast as the other accepts frames, and closes both when one ends. It cannot forward a
frame above the limit, because its content was not kept: the side that waits for its answer gets an error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from accord._internal.tasks import LightEvent
from accord.errors import INVALID_REQUEST, ConnectionClosed
from accord.jsonrpc.line_frames import Oversized
from accord.jsonrpc.wire_messages import encode_error
from accord.trace import IN, OUT, Observer, TraceEvent, exit_event
from accord.transports import End, Receiver, Transport


class WrappedTransport(Transport, Receiver):
    """A transport to its holder; a receiver to the transport within. Each call is passed on to the other side.

    holder ──▶ send, close, ... ──▶ the transport within
    holder ◀── received, ended, ... ◀── the transport within
    """

    def __init__(self, inner: Transport) -> None:
        self.name = inner.name
        self._inner = inner
        self._receiver: Receiver | None = None
        """The holder's receiver, from `start` on."""
        self._receiver_reads = True
        """Whether the holder wants to read."""
        self._is_held = False

    # The transport

    @property
    def why(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The reason to send when the connection is closed, on transports that carry one."""
        return self._inner.why

    @why.setter
    def why(self, why: str) -> None:
        self._inner.why = why

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        await self._inner.start(self)

    def send(self, frames: Sequence[bytes]) -> None:
        self._inner.send(frames)

    @property
    def unsent(self) -> int:
        return self._inner.unsent

    async def flush(self) -> None:
        await self._inner.flush()

    @property
    def stderr(self) -> str:
        return self._inner.stderr

    def pause_reading(self) -> None:
        self._receiver_reads = False
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._receiver_reads = True
        if not self._is_held:
            self._inner.resume_reading()

    def hold_reading(self) -> None:
        """Read nothing until `let_read`, even if the holder wants to: a subclass has its own reason."""
        self._is_held = True
        self._inner.pause_reading()

    def let_read(self) -> None:
        """Resume reading after `hold_reading`, if the holder wants to."""
        self._is_held = False
        if self._receiver_reads:
            self._inner.resume_reading()

    async def close(self, grace: float = 2.0) -> End:
        return await self._inner.close(grace)

    # The receiver

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        if self._receiver is not None:
            self._receiver.received(frames)

    def paused(self) -> None:
        if self._receiver is not None:
            self._receiver.paused()

    def resumed(self) -> None:
        if self._receiver is not None:
            self._receiver.resumed()

    def ended(self, end: End) -> None:
        if self._receiver is not None:
            self._receiver.ended(end)


class FirstFrame(WrappedTransport):
    """Wraps a transport; `first` comes before `start`."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self._held_back: list[bytes | Oversized] = []
        self._end: End | None = None
        self._arrived = LightEvent()

    async def first(self) -> bytes | None:
        """Open the connection, and wait for the first frame; None if there is none, or if it is too long."""
        await self._inner.start(self)
        await self._arrived.wait()
        frame = self._held_back[0] if self._held_back else None
        return frame if isinstance(frame, bytes) else None

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        kept, self._held_back = self._held_back, []
        if kept:
            receiver.received(kept)
        if self._end is not None:
            receiver.ended(self._end)
        else:
            self._inner.resume_reading()

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        if self._receiver is not None:
            self._receiver.received(frames)
            return
        self._inner.pause_reading()
        self._held_back += frames
        self._arrived.set()

    def ended(self, end: End) -> None:
        self._end = end
        self._arrived.set()
        super().ended(end)


class RecordedTransport(WrappedTransport):
    """A transport whose frames an observer sees; incoming ones, before its receiver handles them."""

    def __init__(self, transport: Transport, observer: Observer, link: int | None = None) -> None:
        super().__init__(transport)
        self._observer = observer
        self._link = link

    def on_stderr(self, line: str) -> None:
        """Record a line that the agent's process wrote to standard error, which the transport does not carry."""
        self._observer(TraceEvent(time.monotonic(), OUT, stderr=line.rstrip("\n"), link=self._link))

    def on_exit(self, code: int) -> None:
        """Record how the agent's process ended."""
        self._observer(TraceEvent(time.monotonic(), OUT, process=exit_event(code), link=self._link))

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


class Side(Receiver):
    """Receives from one transport and sends on the other."""

    def __init__(self, mine: Transport, other: Transport, ended: asyncio.Future[tuple[Transport, End]]) -> None:
        self._mine = mine
        self._other = other
        self._ended = ended
        self._early: list[bytes] | None = []
        """Frames that arrived before the other side was open; None once it is."""

    def open(self) -> None:
        """Start forwarding: the other side is open."""
        early, self._early = self._early, None
        self._other.send(early or [])

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        whole: list[bytes] = []
        for frame in frames:
            if isinstance(frame, Oversized):
                self._refuse(frame)
            else:
                whole.append(frame)
        if self._early is None:
            self._other.send(whole)
        else:
            self._early += whole

    def _refuse(self, frame: Oversized) -> None:
        problem = f"Invalid request: a message of {frame.length:,} bytes is over the limit"
        waiting = self._other if frame.has_id and not frame.has_method else self._mine
        waiting.send([encode_error(frame.id, INVALID_REQUEST, problem)])

    def paused(self) -> None:
        self._other.pause_reading()

    def resumed(self) -> None:
        self._other.resume_reading()

    def ended(self, end: End) -> None:
        if not self._ended.done():
            self._ended.set_result((self._mine, end))


async def relay(near: Transport, far: Transport, grace: float = 2.0) -> tuple[Transport, End]:
    """Join two transports until one ends; returns which one, and its end.

    Raises ConnectionClosed if one cannot be opened. `grace` is passed to `Transport.close`.
    """
    ended: asyncio.Future[tuple[Transport, End]] = asyncio.get_running_loop().create_future()
    from_near, from_far = Side(near, far, ended), Side(far, near, ended)
    try:
        try:
            await far.start(from_far)
        except ConnectionClosed:
            near.why = "the agent could not be started"
            raise
        await near.start(from_near)
        from_near.open()
        from_far.open()
        first, end = await ended
        if first is far:
            if end.reason in ("process_ended", "peer_closed"):
                end = await far.close(grace)  # its stderr is complete by then
            # The stderr is for the operator, so it is left out for the other side.
            near.why = str(ConnectionClosed(end.reason, end.detail, exit_code=end.exit_code))
    finally:
        await _close_both(near, far, grace)
    return first, end


async def _close_both(near: Transport, far: Transport, grace: float) -> None:
    closing = [asyncio.ensure_future(transport.close(grace)) for transport in (near, far)]
    try:
        await asyncio.gather(*closing, return_exceptions=True)
    finally:
        await asyncio.gather(*closing, return_exceptions=True)
