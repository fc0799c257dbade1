"""A transport over a WebSocket after its handshake, for both ends.

    send ──▶ texts ──▶ socket              no task between; one write for all messages of a call
    socket ──▶ Frames.feed ──▶ receiver    all messages of one read in one call

The client's end is `websocket.WebSocketTransport`, the server's end is `http.server.websocket.ServerSocket`. Each end
sends a ping after a time of silence, and answers the peer's pings.

While reading is paused, a peer that has disconnected is noticed all the same (`reading.HangUp`). The client then reads
the server's earlier messages. The server ends the connection: nobody waits for such a client's requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from accord._internal.tasks import LightEvent, to_the_end, within
from accord.transports import HIGH_WATER, End, Receiver, Transport
from accord.transports.descriptors import HangUp
from accord.transports.socket_buffers import SharedBufferProtocol
from accord.transports.websocket_frames import (
    ABNORMAL,
    BINARY,
    CLOSE,
    GOING_AWAY,
    INTERNAL_ERROR,
    KEEPALIVE_FAILED,
    NO_STATUS,
    NORMAL,
    PING,
    PONG,
    TEXT,
    TOO_BIG,
    Frames,
    Violation,
    closed_with,
    closing,
    control,
    masking,
    texts,
)

log = logging.getLogger("accord")

LINGERING = 1.0
"""The least seconds for the peer to send its close frame, and to read ours."""


class DrainProgress:
    """Whether the peer drains our backlog between two checks.

    Bytes sent while there is no backlog prove nothing: the operating system accepts megabytes for a vanished peer.
    """

    __slots__ = ("_taken", "_waited")

    def __init__(self) -> None:
        self._waited = False
        self._taken = 0

    def look(self, written: int, waiting: int) -> bool:
        """Return whether the backlog of the last check has shrunk; `written` counts all bytes ever written."""
        taken = written - waiting
        takes = self._waited and taken > self._taken
        self._waited, self._taken = waiting > 0, taken
        return takes


class Framed(SharedBufferProtocol, Transport):
    """One end of a WebSocket. `attach` passes it the socket, `start` the receiver."""

    __slots__ = (  # noqa: SIM905 - as a list, each name would take a line
        "code _alive _beat _closing _drained _early _end _frames _full _got_close _hang_up _has_ignored _high_water"
        " _ignores_input _limit _loop _lost _mask _ping_every _pings _pong_ends _progress _reads _receiver _sent_close"
        " _socket _unanswered _unanswered_ping _written"
    ).split()

    name = "websocket"

    def __init__(
        self,
        *,
        limit: int,
        is_client: bool,
        ping_every: float | None,
        pings: int = 1,
        high_water: int = HIGH_WATER,
        first: int | None = None,
    ) -> None:
        self.code = 0
        """The close code, or 0 while the connection is open."""
        self._limit = limit
        self._ping_every = ping_every
        self._pings = pings
        """How many pings in a row may stay unanswered."""
        self._high_water = high_water
        self._frames = Frames(limit, masked=not is_client, first=first)
        self._mask = masking() if is_client else None
        self._receiver: Receiver | None = None
        self._end: End | None = None
        self._full = False
        self._reads = True
        self._hang_up: HangUp | None = None
        """Watches whether the peer has disconnected, while reading is paused."""
        self._drained = LightEvent()
        self._lost = LightEvent()
        """Set when the socket is closed."""
        self._closing: asyncio.Task[None] | None = None
        self._sent_close: int | None = None
        self._has_ignored = False
        self._got_close = LightEvent()
        self._alive = True
        """Whether anything was received since the last check."""
        self._unanswered = 0
        self._ignores_input = False
        """Whether received bytes are ignored from now on."""
        self._beat: asyncio.TimerHandle | None = None
        self._written = 0
        """Bytes written to the socket."""
        self._pong_ends = 0
        """The count of written bytes after the latest pong."""
        self._unanswered_ping: bytes | None = None
        """The payload of the latest ping, while the previous pong waits to be sent."""
        self._progress = DrainProgress()

    def attach(self, socket: asyncio.Transport, rest: bytes = b"") -> None:
        """Take over this socket; `rest` are bytes received after the handshake. Nothing is read before `start`."""
        self._loop = asyncio.get_running_loop()
        self._socket = socket
        socket.pause_reading()
        socket.set_write_buffer_limits(self._high_water, self._high_water // 4)
        socket.set_protocol(self)
        self._early = rest

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        if self._end is not None:
            self._loop.call_soon(receiver.ended, self._end)
            return
        self._expect_life()
        self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if self._early:
            early, self._early = self._early, b""
            self.data_received(early)
        if self._reads and not self._socket.is_closing():
            self._socket.resume_reading()

    # Out

    def send(self, frames: Sequence[bytes]) -> None:
        if frames and self._end is None:
            self._write(texts(frames, self._mask))
            if self._unanswered_ping is not None:
                self._answer_ping(self._unanswered_ping)
            if not self._full and self._socket.get_write_buffer_size() > self._high_water:
                self._full = True
                if self._receiver is not None:
                    self._receiver.paused()

    def _write(self, data: bytes) -> None:
        self._written += len(data)
        self._socket.write(data)

    @property
    def unsent(self) -> int:
        return 0 if self._lost.is_set() else self._socket.get_write_buffer_size()

    async def flush(self) -> None:
        while self.unsent and self._end is None:
            self._drained.clear()
            self._socket.set_write_buffer_limits(0)  # so that `resume_writing` is called when nothing is left
            await self._drained.wait()

    def resume_writing(self) -> None:
        self._drained.set()
        if not self._lost.is_set():
            self._socket.set_write_buffer_limits(self._high_water, self._high_water // 4)
            if self._unanswered_ping is not None:
                self._answer_ping(self._unanswered_ping)
        if self._full:
            self._full = False
            if self._receiver is not None and self._end is None:
                self._receiver.resumed()

    # In

    def pause_reading(self) -> None:
        self._reads = False
        if not self._socket.is_closing():
            self._socket.pause_reading()
            if self._hang_up is None:
                gone = self.resume_reading if self._mask is not None else self._socket.abort
                self._hang_up = HangUp(self._socket.get_extra_info("socket").fileno(), gone)

    def _stop_watching(self) -> None:
        if self._hang_up is not None:
            self._hang_up.stop()
            self._hang_up = None

    def resume_reading(self) -> None:
        self._stop_watching()
        self._reads = self._alive = True  # while reading was paused, nothing could arrive
        if self._receiver is not None and not self._socket.is_closing():
            self._socket.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            return
        self._alive = True
        broken: Violation | None = None
        try:
            arrived = self._frames.feed(data)
        except Violation as violation:
            arrived, broken = violation.before, violation
        try:
            self._arrived(arrived)
        except Violation as violation:
            broken = violation
        if broken is not None:
            self._fail(broken)

    def _arrived(self, arrived: Sequence[tuple[int, bytes]]) -> None:
        messages = [payload for kind, payload in arrived if kind == TEXT]  # "Binary frames are ignored."
        if messages and self._end is None and self._receiver is not None:
            self._deliver(messages, self._receiver)
        if len(messages) != len(arrived):
            self._controls(arrived)

    def _deliver(self, messages: Sequence[bytes], receiver: Receiver) -> None:
        receiver.received(messages)

    def _controls(self, arrived: Sequence[tuple[int, bytes]]) -> None:
        ping: bytes | None = None
        for kind, payload in arrived:
            if kind == PING:
                ping = payload
            elif kind == BINARY:
                self._ignored_binary()
            elif kind == CLOSE and not self._got_close.is_set():
                self._closed_by_peer(*closed_with(payload))
        if ping is not None and self._sent_close is None:
            self._answer_ping(ping)

    def _ignored_binary(self) -> None:
        # Without this note, the author of a peer that sends binary frames would never learn why they are ignored.
        if not self._has_ignored:
            self._has_ignored = True
            log.warning("%s sent a binary frame, which is ignored; messages must be text frames", self.name)

    def _closed_by_peer(self, code: int, reason: str) -> None:
        self._got_close.set()
        self.code = self.code or code
        self._send_close(NORMAL if code == NO_STATUS else code)
        self._finish(self._end_of(code, reason))
        self._socket.close()

    def _answer_ping(self, payload: bytes) -> None:
        """Send a pong, or remember this ping until the previous pong was sent.

        RFC 6455, 5.5.3: answering the latest ping is enough. So a peer that pings and does not read makes one pong
        wait, and a peer that reads a large backlog slowly still gets its pongs.
        """
        if self._sent_close is not None or self._lost.is_set():
            self._unanswered_ping = None
        elif self._written - self.unsent < self._pong_ends:
            self._unanswered_ping = payload
            self._socket.set_write_buffer_limits(0)  # so that `resume_writing` is called when nothing is left
        else:
            self._unanswered_ping = None
            self._write(control(PONG, payload, self._mask))
            self._pong_ends = self._written

    def _fail(self, violation: Violation) -> None:
        self._send_close(violation.code, str(violation))
        if violation.code == TOO_BIG:
            self._finish(End("broken", f"{self.name} sent a message of more than {self._frames.limit:,} bytes"))
        else:
            self._finish(End("broken", f"{self.name} broke the WebSocket protocol: {violation}"))
        # Do not close at once: unread input would reset the connection before the peer reads our close frame.
        self._ignores_input = True
        self._frames.drop()
        self._socket.resume_reading()
        if self._socket.can_write_eof():
            self._socket.write_eof()
        self._loop.call_later(LINGERING, self._socket.abort)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        self._lost.set()
        self._frames.drop()  # free half a message now instead of at the next garbage collection
        self._got_close.set()
        self._drained.set()
        if self._beat is not None:
            self._beat.cancel()
        self.code = self.code or ABNORMAL
        reason = (getattr(exc, "strerror", None) or str(exc)) if exc is not None else ""
        self._finish(self._end_of(ABNORMAL, reason))

    def _end_of(self, code: int, reason: str) -> End:
        """The end of the connection when the peer closed it with this code, or left without one."""
        if code in (NORMAL, GOING_AWAY, NO_STATUS):
            return End("peer_closed")
        return End(
            "peer_closed" if code == INTERNAL_ERROR else "broken",
            f"{self.name} closed the connection with code {code}{f': {reason}' if reason else ''}",
        )

    # Keep-alive

    def _expect_life(self) -> None:
        if self._ping_every is not None and not self._lost.is_set():
            self._beat = self._loop.call_later(self._ping_every, self._look_for_life)

    def _look_for_life(self) -> None:
        # A peer that reads our output is alive, even if a ping waits after megabytes of it.
        takes = self._progress.look(self._written, self.unsent)
        if self._alive or not self._reads or takes:
            self._alive = False
            self._unanswered = 0
            if not self._reads:
                # The answer stays unread. But a peer that has disconnected resets the connection, which `HangUp`
                # notices; its own end may wait endlessly after unread data.
                self._ping()
        elif self._unanswered < self._pings:
            self._unanswered += 1
            self._ping()
        else:
            self._send_close(KEEPALIVE_FAILED)
            seconds = (self._ping_every or 0) * self._pings
            self._finish(End("unresponsive", f"{self.name} did not answer a ping within {seconds:g} seconds"))
            self._socket.abort()
            return
        self._expect_life()

    def _ping(self) -> None:
        if self._end is None:
            self._write(control(PING, b"", self._mask))

    # The end

    def _send_close(self, code: int, reason: str = "") -> None:
        if self._sent_close is None and not self._lost.is_set():
            self._sent_close = code
            self.code = self.code or code
            self._write(control(CLOSE, closing(code, reason), self._mask))

    def _finish(self, end: End) -> None:
        if self._end is None:
            self._end = end
            self._drained.set()
            if self._receiver is not None:
                self._receiver.ended(end)

    async def close(self, grace: float = 2.0) -> End:
        if hasattr(self, "_socket"):
            self._closing = self._closing or asyncio.create_task(self._close(grace), name=f"close {self.name}")
            await to_the_end(self._closing)
        return self._end or End("closed")

    async def _close(self, grace: float) -> None:
        try:
            if self._end is None:
                await within(grace, self.flush())
            self.hang_up(End("closed"))
            if self._ignores_input:
                await within(LINGERING, self._lost.wait())
            else:
                await within(max(grace, LINGERING), self._got_close.wait())
            self._socket.close()
            await within(LINGERING, self._lost.wait())
        finally:
            if not self._lost.is_set():
                self._socket.abort()
            await self._lost.wait()

    def hang_up(self, end: End, code: int = NORMAL) -> None:
        """Send a close frame after the waiting output; idempotent."""
        if self.why and code == NORMAL:
            self._send_close(INTERNAL_ERROR, self.why)
        else:
            self._send_close(code)
        self._finish(end)
        if not self._socket.is_closing():
            self._socket.resume_reading()  # the peer's close frame may come after unread messages
