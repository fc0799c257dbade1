"""WebSockets on the server's side: upgrades a request to a `Framed` connection.

`websockets` validates the handshake and computes the response; the application decides on access. The application then
takes the socket itself, by an ASGI extension of ours, so that a frame needs no event, no queue and no task.

With other servers and over HTTP/2 it uses ASGI events. There, the request's own task reads (`run`), and a second task
writes from `OutputQueue`; both end with the socket.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from websockets.datastructures import Headers
from websockets.http11 import Request
from websockets.server import ServerProtocol

from accord._internal.tasks import LightEvent, first_of, within
from accord.http.h1 import Fields, RequestHead, head_bytes, status_line
from accord.http.server.asgi import OWN_SOCKET, Application, Event
from accord.http.server.http1_server import scope_of_head
from accord.http.server.server_limits import SILENT_PINGS, ServerLimits
from accord.http.server.unanswered_requests import UnansweredRequests
from accord.transports import End, Receiver, Transport
from accord.transports.socket_buffers import OutputQueue
from accord.transports.websocket_frames import ABNORMAL, GOING_AWAY, INTERNAL_ERROR, NORMAL, TOO_BIG
from accord.transports.websocket_transport import DrainProgress, Framed

log = logging.getLogger("accord.http")


class ServerSocket(Framed):
    """A WebSocket that a client has opened, with the server's limits."""

    __slots__ = (  # noqa: SIM905 - as a list, each name would take a line
        "calls id limits owner received sent why _agent_reads _on_lost _reading _refusals_wait _waits_since"
    ).split()

    def __init__(self, limits: ServerLimits, on_lost: Callable[[], None]) -> None:
        super().__init__(
            limit=limits.body,
            is_client=False,
            ping_every=limits.heartbeat,
            pings=SILENT_PINGS,
            high_water=limits.unread,
            first=limits.first,
        )
        self.id = self.owner = self.why = ""
        """The id and the owner of the connection, and why it is closed."""
        self.limits = limits
        self.calls = UnansweredRequests(limits.sessions, limits.requests)
        self.received = self.sent = 0
        """Bytes of messages."""
        self._on_lost = on_lost
        self._waits_since = asyncio.get_running_loop().time()
        self._reading = DrainProgress()
        self._agent_reads = True
        self._refusals_wait = False
        """Whether reading has stopped because the client reads no refusals."""

    def send(self, frames: Sequence[bytes]) -> None:
        super().send(frames)
        for frame in frames:
            self.calls.websocket_sent(frame)
            self.sent += len(frame)

    def _deliver(self, messages: Sequence[bytes], receiver: Receiver) -> None:
        if not self.received:
            self._frames.opened()
        passed: list[bytes] = []
        for frame in messages:
            self.received += len(frame)
            if (refusal := self.calls.websocket_received(frame)) is None:
                passed.append(frame)
            else:
                self.send([refusal])
        if len(passed) < len(messages) and self._full:
            self._refusals_wait = True
            super().pause_reading()
        if passed:
            receiver.received(passed)

    def pause_reading(self) -> None:
        self._agent_reads = False
        super().pause_reading()

    def resume_reading(self) -> None:
        self._agent_reads = True
        if not self._refusals_wait:
            super().resume_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._refusals_wait:
            self._refusals_wait = False
            if self._agent_reads:
                super().resume_reading()

    def _end_of(self, code: int, reason: str) -> End:  # noqa: ARG002
        return End("peer_closed")  # a client may leave with any code

    def _finish(self, end: End) -> None:
        if self._end is None and end.reason == "unresponsive":
            log.info("a WebSocket client answered no ping: its connection is closed")
        super()._finish(end)

    def finish(self, end: End, *, going_away: bool = False) -> None:
        """End the connection; idempotent. `going_away` tells the client that the whole server shuts down."""
        self.hang_up(end, GOING_AWAY if going_away else NORMAL)

    def problem(self, now: float) -> str | None:
        """Return why this connection should be closed, or None; called at intervals."""
        if self._reading.look(self._written, self.unsent) or not self.unsent:
            self._waits_since = now
        elif now - self._waits_since > self.limits.stalled:
            return f"the client read nothing for {self.limits.stalled:g} seconds"
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._on_lost()


class Upgrade:
    """One WebSocket handshake, as ASGI's `receive` and `send`; `on_lost` is called when the socket is closed.

    It ends when the application has taken the socket, so that an open connection keeps nothing of the handshake.
    """

    def __init__(self, socket: asyncio.Transport, head: RequestHead, rest: bytes, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._socket = socket
        self._head = head
        self._rest = rest
        self._accepting: Fields = []
        self._refusal: Event | None = None
        self._asked = False
        self._is_taken = False
        socket.pause_reading()

    async def answer(self, app: Application) -> None:
        """Run the application, which accepts or refuses the handshake and takes the socket."""
        try:
            await self._answer(app)
        except Exception:
            log.exception("serving a WebSocket failed")
            self._socket.abort()
        finally:
            if not self._is_taken:
                self._socket.close()
                self._on_lost()

    async def _answer(self, app: Application) -> None:
        if self._rest or self._head.has_body or not self._head.is_1_1:
            # 4.1: a client "MUST wait for a response from the server before sending any further data".
            self._refuse(400, b"malformed WebSocket handshake")
            return
        response = ServerProtocol().accept(_request(self._head))
        if response.status_code != 101:
            self._socket.write(response.serialize())
            return

        self._accepting = [(name.encode(), value.encode()) for name, value in response.headers.raw_items()]
        scope = scope_of_head(self._head, self._socket, "websocket")
        scope["subprotocols"] = []
        scope["extensions"] = {"websocket.http.response": {}, OWN_SOCKET: self._take}
        await app(scope, self._receive, self._send)

    def _take(self, limits: ServerLimits) -> ServerSocket:
        """Pass the accepted socket to the application."""
        self._is_taken = True
        link = ServerSocket(limits, self._on_lost)
        link.attach(self._socket)
        return link

    async def _receive(self) -> Event:
        if not self._asked:
            self._asked = True
            return {"type": "websocket.connect"}
        return {"type": "websocket.disconnect", "code": 1006}

    async def _send(self, event: Event) -> None:
        match event["type"]:
            case "websocket.accept":
                self._socket.write(head_bytes(status_line(101), [*self._accepting, *event.get("headers", ())]))
            case "websocket.http.response.start":
                self._refusal = event
            case "websocket.http.response.body" if self._refusal is not None:
                self._refuse(self._refusal["status"], event.get("body", b""), self._refusal["headers"])
            case "websocket.close":
                self._refuse(403, b"")
            case other:
                raise RuntimeError(f"unsupported ASGI event {other!r}: use the extension {OWN_SOCKET}")

    def _refuse(self, status: int, body: bytes, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        fields = [*headers, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        self._socket.write(head_bytes(status_line(status), fields) + body)


def _request(head: RequestHead) -> Request:
    fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.fields]
    return Request(head.target.decode("latin-1"), Headers(fields))


class AsgiWebSocket(Transport):
    """A WebSocket whose handshake was accepted, as a transport over ASGI events."""

    name = "websocket"
    id = owner = ""
    """The id and the owner of the connection."""

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
        self._lost = LightEvent()
        """Set when `run` has ended."""
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
        await self._lost.wait()
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
            self._lost.set()

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
        """Return why this connection should be closed, or None."""
        if self.unsent and now - self._taken > self.limits.stalled:
            return f"the client read nothing for {self.limits.stalled:g} seconds"
        return None
