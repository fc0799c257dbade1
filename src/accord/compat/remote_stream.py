"""`RemoteStream`: our transport to an agent behind a URL, with the official SDK's interface of a transport.

A connection of ours takes the transport out of the stream (`handed_over`), so its frames go to the engine as they are.
A program that calls `send` and `receive` itself gets each message as a dictionary. The first of the two decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from accord.errors import ConnectionClosed, DecodeError
from accord.jsonrpc.frames import Oversized
from accord.schema import codec
from accord.transports.base import End, Receiver, Transport


class AcpHttpStatusError(RuntimeError):
    """The server has refused a message with this status."""

    def __init__(self, status_code: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status_code


class RemoteStream:
    """Moves messages to an agent behind a URL and back. It has the methods `send`, `receive` and `close`.

    `take_refusal` gives the status with which the server has refused a message since the last call.
    """

    def __init__(self, transport: Transport, take_refusal: Callable[[], int | None] = lambda: None) -> None:
        self._transport = transport
        self._take_refusal = take_refusal
        self._arrived = _Arrived()
        self._starting: asyncio.Task[None] | None = None
        self._is_taken = False

    async def open(self) -> None:
        """Open the link; raises ConnectionError if that fails. `send` and `receive` do it as well."""
        self._starting = self._starting or asyncio.create_task(
            self._transport.start(self._arrived), name=f"open {self._transport.name}"
        )
        try:
            await asyncio.shield(self._starting)
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from error

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; raises AcpHttpStatusError if the server refuses it, ConnectionError after the end."""
        await self.open()
        if self._arrived.end is not None:
            raise ConnectionError(f"the transport is closed: {self._arrived.end.detail or self._arrived.end.reason}")
        self._transport.send([msgspec.json.encode(message)])
        await self._transport.flush()
        if (status := self._take_refusal()) is not None:
            raise AcpHttpStatusError(status, f"{self._transport.name} refused a message with status {status}")

    async def receive(self) -> dict[str, Any] | None:
        """The next message, which is an object of JSON; None at the end."""
        await self.open()
        while (frame := await self._arrived.next()) is not None:
            message = None if isinstance(frame, Oversized) else object_in(frame)
            if message is not None:
                return message
        return None

    async def close(self, grace: float = 2.0) -> None:
        """End both directions; `grace` is how many seconds a step of it may take."""
        if self._starting is not None and self._starting.done() and not self._starting.cancelled():
            if self._starting.exception() is None:
                await self._transport.close(grace)
        elif self._starting is not None:
            self._starting.cancel()
        self._arrived.ended(End("closed"))

    def handed_over(self) -> Transport:
        """The transport, for a connection of ours; raises RuntimeError if another connection has it."""
        if self._is_taken:
            raise RuntimeError(f"{self._transport.name} belongs to a connection already: make a stream for each one")
        self._is_taken = True
        return _HandedOver(self, self._transport, self._arrived)


def object_in(frame: bytes) -> dict[str, Any] | None:
    """The JSON object in this text; None if it is anything else."""
    try:
        value = codec.loads(frame)
    except DecodeError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


class _Arrived(Receiver):
    """Keeps what arrives until `next` or a connection takes it."""

    def __init__(self) -> None:
        self.end: End | None = None
        self._receiver: Receiver | None = None
        self._frames: asyncio.Queue[bytes | Oversized | None] = asyncio.Queue()

    async def next(self) -> bytes | Oversized | None:
        """The next frame; None at the end, again and again."""
        if self.end is not None and self._frames.empty():
            return None
        return await self._frames.get()

    def give_to(self, receiver: Receiver) -> None:
        """Give this receiver what is waiting, and what arrives from now on."""
        self._receiver = receiver
        waiting = [frame for frame in self._taken() if frame is not None]
        if waiting:
            receiver.received(waiting)
        if self.end is not None:
            receiver.ended(self.end)

    def _taken(self) -> Sequence[bytes | Oversized | None]:
        return [self._frames.get_nowait() for _ in range(self._frames.qsize())]

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        if self._receiver is not None:
            self._receiver.received(frames)
            return
        for frame in frames:
            self._frames.put_nowait(frame)

    def paused(self) -> None:
        if self._receiver is not None:
            self._receiver.paused()

    def resumed(self) -> None:
        if self._receiver is not None:
            self._receiver.resumed()

    def ended(self, end: End) -> None:
        if self.end is not None:
            return
        self.end = end
        self._frames.put_nowait(None)
        if self._receiver is not None:
            self._receiver.ended(end)


class _HandedOver(Transport):
    """The transport of a stream, which may be open already. Frames that are sent before it is open wait here."""

    def __init__(self, stream: RemoteStream, transport: Transport, arrived: _Arrived) -> None:
        self.name = transport.name
        self._stream = stream
        self._transport = transport
        self._arrived = arrived
        self._waiting: list[bytes] = []
        self._open = asyncio.Event()

    async def start(self, receiver: Receiver) -> None:
        self._arrived.give_to(receiver)
        try:
            await self._stream.open()
        except ConnectionError as error:  # a connection that opens in a task learns of its end from the receiver
            self._arrived.ended(End("broken", str(error)))
        else:
            self._transport.send(self._waiting)
        self._waiting = []
        self._open.set()

    def send(self, frames: Sequence[bytes]) -> None:
        if self._open.is_set():
            self._transport.send(frames)
        else:
            self._waiting += frames

    @property
    def unsent(self) -> int:
        return self._transport.unsent if self._open.is_set() else sum(map(len, self._waiting))

    async def flush(self) -> None:
        await self._open.wait()
        await self._transport.flush()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    async def close(self, grace: float = 2.0) -> End:
        self._open.set()
        await self._stream.close(grace)
        return self._arrived.end or End("closed")
