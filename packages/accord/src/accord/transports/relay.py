"""Joins two transports: each frame that arrives on one goes out on the other, unread and unchanged.

    await relay(StdioTransport.standard(), WebSocketTransport("wss://agents.example/acp"))

Each side is read only as fast as the other accepts frames, and when one ends, both are closed. A frame above the limit
cannot be forwarded, because its content was not kept: the side that waits for its answer gets an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from accord.errors import INVALID_REQUEST, ConnectionClosed
from accord.jsonrpc.line_frames import Oversized
from accord.jsonrpc.wire_messages import encode_error
from accord.transports.base import End, Receiver, Transport


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
