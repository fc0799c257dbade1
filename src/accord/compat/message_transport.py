"""`MessageTransport`: frames over an object of the program that moves whole messages, as dictionaries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import msgspec

from accord.schema import codec
from accord.transports.base import HIGH_WATER, End, Receiver, Transport
from accord.transports.closing import to_the_end, within


@runtime_checkable
class Messages(Protocol):
    """Moves messages as dictionaries: the official SDK's interface of a transport."""

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; raises what prevents it."""
        ...

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        ...

    async def close(self) -> None:
        """End both directions."""
        ...


class MessageTransport(Transport):
    """Frames over a `Messages` object: one task reads from it, and one writes to it."""

    name = "messages"

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue()
        self._unsent = 0
        self._is_full = False
        self._receiver: Receiver | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: asyncio.Task[None] | None = None
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._end: End | None = None
        self.error: Exception | None = None
        """What broke the transport; None if it ended by itself, or goes on."""

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._tasks = [
            *self._tasks,
            asyncio.create_task(self._read(receiver), name=f"read {self.name}"),
        ]

    def send(self, frames: Sequence[bytes]) -> None:
        if self._end is not None:
            return
        if not any(task.get_name() == "write messages" for task in self._tasks):
            self._tasks.append(asyncio.create_task(self._write(), name="write messages"))
        for frame in frames:
            self._waiting.put_nowait(frame)
            self._unsent += len(frame)
        if self._unsent > HIGH_WATER and not self._is_full and self._receiver is not None:
            self._is_full = True
            self._receiver.paused()

    @property
    def unsent(self) -> int:
        return self._unsent

    async def flush(self) -> None:
        await self._waiting.join()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    async def close(self, grace: float = 2.0) -> End:
        self._closing = self._closing or asyncio.create_task(self._close(grace), name=f"close {self.name}")
        await to_the_end(self._closing)
        return self._end or End("closed")

    async def _close(self, grace: float) -> None:
        try:
            await within(grace, self.flush())
        finally:
            for task in self._tasks:
                task.cancel()
            with suppress(Exception):
                await self._messages.close()
            self._finish(End("closed"))

    async def _read(self, receiver: Receiver) -> None:
        try:
            while (message := await self._next()) is not None:
                receiver.received([msgspec.json.encode(message)])
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._broke(error)
        else:
            self._finish(End("peer_closed"))

    async def _next(self) -> dict[str, Any] | None:
        await self._may_read.wait()
        return await self._messages.receive()

    async def _write(self) -> None:
        while True:
            frame = await self._waiting.get()
            try:
                await self._messages.send(codec.loads(frame))
            except asyncio.CancelledError:
                raise
            except Exception as error:
                self._broke(error)
            finally:
                self._unsent -= len(frame)
                self._waiting.task_done()
            if self._is_full and self._unsent < HIGH_WATER // 4 and self._receiver is not None:
                self._is_full = False
                self._receiver.resumed()

    def _broke(self, error: Exception) -> None:
        self.error = error
        self._finish(End("broken", f"the transport broke: {error or type(error).__name__}"))

    def _finish(self, end: End) -> None:
        if self._end is None:
            self._end = end
            if self._receiver is not None:
                self._receiver.ended(end)
