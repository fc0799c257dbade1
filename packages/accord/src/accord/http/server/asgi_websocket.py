"""WebSocket connections over ASGI events, for servers other than our own and for HTTP/2.

The request's own task reads (`run`), and a second task writes what waits in `OutputQueue`; both end with the socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from accord._internal.light_event import LightEvent
from accord._internal.tasks import first_of, within
from accord.http.server.server_limits import ServerLimits
from accord.http.server.unanswered_requests import UnansweredRequests
from accord.transports.socket_buffers import OutputQueue
from accord.transports.transport_interface import End, Receiver, Transport
from accord.transports.websocket_frames import ABNORMAL, GOING_AWAY, INTERNAL_ERROR, NORMAL, TOO_BIG


class AsgiWebSocket(Transport):
    """A WebSocket whose handshake was accepted, as a transport over ASGI events."""

    name = "websocket"

    def __init__(
        self,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
        limits: ServerLimits | None = None,
    ) -> None:
        self.limits = limits or ServerLimits()
        self.calls = UnansweredRequests(self.limits.sessions, self.limits.requests)
        self.received = self.sent = 0
        """Bytes of messages."""
        self.code = 0
        """The close code, or 0 while it is open."""
        self._receive_event = receive
        self._send_event = send
        self._outgoing = OutputQueue(self.limits.unread)
        self._receiver: Receiver | None = None
        self._started = LightEvent()
        self._may_read = LightEvent()
        self._may_read.set()
        self._over = LightEvent()
        self._end: End | None = None
        self._going_away = False
        self._taken = asyncio.get_running_loop().time()
        self._gone = False
        """Whether the client has left, so that no close frame can be sent."""

    # The agent's side: a transport

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._outgoing.start(receiver)
        self._started.set()

    def send(self, frames: Sequence[bytes]) -> None:
        if not self._outgoing.size:
            self._taken = asyncio.get_running_loop().time()
        for frame in frames:
            self.calls.websocket_sent(frame)
        self._outgoing.put(frames)

    @property
    def unsent(self) -> int:
        return self._outgoing.size

    async def flush(self) -> None:
        await self._outgoing.flush()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    async def close(self, grace: float = 2.0) -> End:
        if self._end is None:
            await within(grace, self._outgoing.flush())
        self.finish(End("closed"))
        return self._end or End("closed")

    def finish(self, end: End, *, going_away: bool = False) -> None:
        """End the connection; idempotent. `going_away` tells the client that the whole server shuts down."""
        if self._end is None:
            self._end = end
            self._going_away = going_away
            self._over.set()
            self._outgoing.give_up()
            if self._receiver is not None:
                self._receiver.ended(end)

    # The socket's side

    async def run(self) -> None:
        """Read and write until the connection ends, then close the socket."""
        try:
            await first_of(self._read(), self._write(), self._over.wait())
            if not self._gone:
                if not self.code:
                    self.code = GOING_AWAY if self._going_away else INTERNAL_ERROR if self.why else NORMAL
                closing = {"type": "websocket.close", "code": self.code, "reason": self.why}
                await within(1.0, self._send_event(closing))
        finally:
            self.finish(End("peer_closed"))

    async def _read(self) -> None:
        await self._started.wait()
        while True:
            await self._may_read.wait()
            event = await self._receive_event()
            if event["type"] == "websocket.disconnect":
                self._gone = True
                self.code = event.get("code", ABNORMAL)
                if self.code == ABNORMAL and (reason := event.get("reason")):
                    self.finish(End("unresponsive", reason))
                return
            # Bidirectional Messaging: "Binary frames are ignored."
            text = event.get("text")
            if text is not None and self._end is None and self._receiver is not None:
                await self._received(text.encode("utf-8", "surrogatepass"), self._receiver)

    async def _received(self, frame: bytes, receiver: Receiver) -> None:
        if not self.received and len(frame) > self.limits.first:
            self.code = TOO_BIG
            self.finish(End("broken", f"the client's first message had {len(frame):,} bytes"))
            return
        self.received += len(frame)
        if (refusal := self.calls.websocket_received(frame)) is None:
            receiver.received([frame])
        else:
            if self.unsent > self.limits.unread:  # a client that reads no refusals gets no more of them
                await self._outgoing.flush()
            self.send([refusal])

    async def _write(self) -> None:
        while frames := await self._outgoing.take():
            for frame in frames:
                await self._send_event({"type": "websocket.send", "text": frame.decode("utf-8", "replace")})
                self._outgoing.written(len(frame))
                self.sent += len(frame)
                self._taken = asyncio.get_running_loop().time()

    def problem(self, now: float) -> str | None:
        """Why this connection should be closed, or None."""
        if self.unsent and now - self._taken > self.limits.stalled:
            return f"the client read nothing for {self.limits.stalled:g} seconds"
        return None
