"""`WrappedTransport`: a transport around another one, which it is like but for what a subclass changes."""

from __future__ import annotations

from collections.abc import Sequence

from accord.jsonrpc.line_frames import Oversized
from accord.transports.base import End, Receiver, Transport


class WrappedTransport(Transport, Receiver):
    """To who holds it, a transport; to the transport within, the receiver. Each call goes through to the other side.

    holder ──▶ send, close, ... ──▶ the transport within
    holder ◀── received, ended, ... ◀── the transport within
    """

    def __init__(self, inner: Transport) -> None:
        self.name = inner.name
        self._inner = inner
        self._receiver: Receiver | None = None
        """Who holds it, from `start` on."""
        self._receiver_reads = True
        """Whether the holder wants to read."""
        self._is_held = False

    # The transport

    @property
    def why(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
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
        """Read nothing until `let_read`, whatever the holder wants: for a reason of the subclass."""
        self._is_held = True
        self._inner.pause_reading()

    def let_read(self) -> None:
        """Read again after `hold_reading`, if the holder wants to."""
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
