"""A TCP connection of the server, for either HTTP: the interface for its listener, its requests, and its end.

    got (a part of the body) ──▶ receive ──▶ the application ──▶ send ──▶ respond      one call for each part
    leave (the client has gone, or the response is complete) ──▶ receive: http.disconnect

`AsgiRequest` is one request in progress; HTTP/1.1 and HTTP/2 encode its response and decide when to read on.

Closing a socket with unread input resets the connection, and the client may then never see the response that was sent
to it. So `close_after_reading` sends our end first, and closes a moment later.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from accord._internal.tasks import Tasks
from accord.http.server.asgi import OWN_REQUEST, Application, Event, Scope
from accord.http.server.server_limits import ServerLimits
from accord.transports.socket_buffers import SharedBufferProtocol
from accord.transports.websocket_transport import DrainProgress

if TYPE_CHECKING:
    from accord.http.h1 import RequestHead


log = logging.getLogger("accord.http")


class ConnectionServer(ABC):
    """Counts the connections of a server, runs their requests, and ends them. A connection is identified by its
    protocol.
    """

    def __init__(self, app: Application, limits: ServerLimits) -> None:
        self.app = app
        """The application that answers requests."""
        self.limits = limits
        """The server's limits."""
        self.is_ending = False
        """Whether the server is shutting down, so that connections close after their last response."""
        self._tasks = Tasks(asyncio.get_running_loop())
        self._connections: set[TcpConnection] = set()
        """The connections that speak HTTP."""

    @abstractmethod
    def takes(self, connection: TcpConnection) -> bool:
        """Count this connection, unless the server ends or has `ServerLimits.sockets` of them; whether it was."""

    def forget(self, connection: TcpConnection) -> None:
        """Count this connection no longer: it has ended, or became a WebSocket or HTTP/2."""
        self._connections.discard(connection)

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this for a request; the server waits for it when it ends."""
        self._tasks.start(work, "accord http request")

    @abstractmethod
    def speak_http2(self, connection: TcpConnection, transport: asyncio.Transport, data: bytes) -> None:
        """Speak HTTP/2 on this connection; `data` is what was received on it."""

    @abstractmethod
    def upgrade(self, connection: TcpConnection, transport: asyncio.Transport, head: RequestHead, rest: bytes) -> None:
        """Make this connection a WebSocket, if the application accepts it; `rest` is the data after the request."""


class TcpConnection(SharedBufferProtocol):
    """One connection that speaks HTTP, until it ends or is handed over."""

    _transport: asyncio.Transport

    def __init__(self, server: ConnectionServer) -> None:
        self._server = server
        self._limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._is_leaving = False
        """Whether received bytes are ignored from now on."""
        self._written = 0
        self._drain = DrainProgress()
        self._reads_since = self._loop.time()
        """When the client last read something."""

    def _abort_if_stalled(self, now: float) -> bool:
        """Abort if the client has read none of the waiting output for `ServerLimits.stalled` seconds; returns whether
        it has.
        """
        unread = self._transport.get_write_buffer_size()
        if not unread or self._drain.look(self._written, unread):
            self._reads_since = now
        if now - self._reads_since <= self._limits.stalled:
            return False
        log.info("a client read none of its responses for %g seconds: its connection is closed", self._limits.stalled)
        self._transport.abort()
        return True

    def _begin_request(self, request: AsgiRequest, scope: Scope) -> None:
        """Let the application answer a request."""
        scope["extensions"][OWN_REQUEST] = request
        self._server.start_task(self._answer(request, scope))

    async def _answer(self, request: AsgiRequest, scope: Scope) -> None:
        try:
            await self._server.app(scope, request.receive, request.send)
            if request.later is not None:
                del scope
                await request.later
        except Exception:
            log.exception("serving a request failed")
        finally:
            self._application_ended(request)

    @abstractmethod
    def _application_ended(self, request: Any) -> None:
        """The application has returned, or failed, whether it has answered or not."""

    @abstractmethod
    def end(self) -> None:
        """Close the connection once no request is in progress."""

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()


LINGERING = 1.0
"""Seconds that a client has to read the last bytes."""


def close_after_reading(transport: asyncio.Transport) -> None:
    """Close the transport once the client had time to read; TLS cannot send an end first, and is closed at once."""
    if not transport.can_write_eof():
        transport.close()
        return
    try:
        transport.write_eof()
    except OSError:  # the client has reset the connection, and we do not know it yet
        transport.abort()
        return
    asyncio.get_running_loop().call_later(LINGERING, transport.close)


class AsgiRequest(ABC):
    """One request and its response."""

    __slots__ = (  # noqa: SIM905 - as a list, each name would take a line
        "_gone _has_passed_part _has_passed_whole _on_leave _parts _size _start _waiter is_answered is_sent is_whole "
        "later"
    ).split()

    def __init__(self, *, has_body: bool) -> None:
        self.is_answered = False
        """Whether the application has sent the whole response."""
        self.is_sent = False
        """Whether the whole response is written."""
        self.is_whole = not has_body
        """Whether the body has arrived completely."""
        self._parts: list[bytes] = []
        self._size = 0
        self._has_passed_part = self._has_passed_whole = False
        self._gone = False
        self.later: Awaitable[None] | None = None
        """Continues the response when the application has returned."""
        self._waiter: asyncio.Future[None] | None = None
        self._start: Event | None = None
        self._on_leave: Callable[[bool], None] | None = None

    def got(self, part: bytes, *, is_over: bool) -> int:
        """Add a part of the body; returns how many bytes wait for the application."""
        self._parts.append(part)
        self._size += len(part)
        self.is_whole = is_over
        self._wake()
        return self._size

    def leave(self) -> None:
        """End the request: the client has left, or the response is complete."""
        self._gone = True
        self._wake()
        if (do := self._on_leave) is not None:
            self._on_leave = None
            do(self.is_sent)

    def on_leave(self, do: Callable[[bool], None]) -> None:
        """Call this with whether the response is sent when the request has ended, or now if it has."""
        if self._gone:
            do(self.is_sent)
        else:
            self._on_leave = do

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def body_at_once(self) -> bytes | None:
        """Return the whole body if it has arrived and no part of it was taken; None otherwise."""
        return None if self._has_passed_part or not self.is_whole or self._gone else self._take()

    def _take(self) -> bytes:
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._taken(self._size)
        self._size = 0
        self._has_passed_part, self._has_passed_whole = True, self.is_whole
        return body

    async def receive(self) -> Event:
        """Wait for the next event: a part of the body, or the end of the request."""
        while True:
            if not self._has_passed_whole and (self._parts or self.is_whole):
                return {"type": "http.request", "body": self._take(), "more_body": not self.is_whole}
            if self._gone:
                return {"type": "http.disconnect"}
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    async def send(self, event: Event) -> None:
        """Send the start of the response, or a part of its body. After `leave` it does nothing."""
        if self._gone:
            return
        if event["type"] == "http.response.start":
            self._start = event  # written together with the first part of the body
            return
        await self._respond(event.get("body", b""), more=event.get("more_body", False))

    @abstractmethod
    def _taken(self, size: int) -> None:
        """Note that the application has taken this many bytes of the body."""

    @abstractmethod
    async def _respond(self, body: bytes, *, more: bool) -> None:
        """Write a part of the response; waits while the client does not read."""


class _Clock:
    """The Date header, computed once a second."""

    def __init__(self) -> None:
        self.until = 0.0
        self.text = b""


_clock = _Clock()


def date() -> bytes:
    """The value of the Date header now."""
    now = asyncio.get_running_loop().time()
    if now >= _clock.until:
        _clock.text, _clock.until = formatdate(usegmt=True).encode(), now + 1.0
    return _clock.text
