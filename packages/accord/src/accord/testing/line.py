"""One end of a connection on which recorded messages are played: requests with answers, and what arrives otherwise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from accord.errors import ConnectionClosed
from accord.jsonrpc.line_frames import Oversized
from accord.transports.transport_interface import End, Receiver, Transport


class Line(Receiver):
    """Sends and receives messages as JSON objects. Each that is no answer goes to `arrived`."""

    def __init__(self, transport: Transport, arrived: Callable[[dict[str, Any]], None]) -> None:
        self.ended_with: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        """Done when the other side has ended the connection."""
        self._transport = transport
        self._arrived = arrived
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def start(self) -> None:
        """Open the transport."""
        await self._transport.start(self)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        self._transport.send([json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode("utf-8", "replace")])

    def ask(self, method: str, params: Any) -> asyncio.Future[dict[str, Any]]:
        """Send a request; the answer is the whole message. It fails with ConnectionClosed if the connection ends."""
        number = len(self._asked) + 1
        self._asked[number] = asyncio.get_running_loop().create_future()
        self._asked[number].add_done_callback(lambda it: it.cancelled() or it.exception())  # others may wait, or no one
        self.send({"id": number, "method": method, **({} if params is None else {"params": params})})
        return self._asked[number]

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        for frame in frames:
            message = None if isinstance(frame, Oversized) else _object(frame)
            if message is None:
                continue
            if "method" in message:
                self._arrived(message)
            elif (waiting := self._asked.get(cast("int", message.get("id")))) is not None and not waiting.done():
                waiting.set_result(message)

    def paused(self) -> None:
        """What is played was recorded, so it is bounded."""

    def resumed(self) -> None:
        """See `paused`."""

    def ended(self, end: End) -> None:
        if not self.ended_with.done():
            self.ended_with.set_result(end)
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(ConnectionClosed(end.reason, end.detail, exit_code=end.exit_code))


def _object(frame: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(frame.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
