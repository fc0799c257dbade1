"""One event stream of the HTTP client: opens it, reads it, and resumes it when it breaks.

open ──▶ refused ──┬──▶ try later (409, 503, ...; 404 for a session that the server does not know yet)
  ▲                └──▶ the connection ends
  │──▶ read ──▶ StreamShell.arrived
  └── broken, ended, silent
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import Protocol

from accord._internal.light_event import LightEvent
from accord.http.client.client_socket import Broken, Response
from accord.http.idle_timer import IdleTimer
from accord.http.sse import EventReader, ServerSentEvent, TooLong
from accord.jsonrpc.wire_messages import ResponseFrame, parse
from accord.transports.transport_interface import End

SILENCE = 45.0
"""Seconds of idle_timer after which a stream counts as broken; our server sends a comment every 15 seconds."""

AWAY = frozenset({502, 503, 504})
"""The statuses with which a server, or a proxy in front of it, refuses for now."""

LONGEST_WISH = 5.0
"""The most seconds of a `Retry-After` that are waited for."""

REFUSAL_SHOWN = 300
"""The most characters of a refusal's text to show."""

log = logging.getLogger("accord.http")


class Backoff:
    """Pauses between attempts that grow longer, until `seconds` are over."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._pause = 0.1

    async def another(self, at_least: float = 0.0) -> bool:
        """Pause before another attempt, for so many seconds at least; False if the time is over."""
        pause = max(self._pause * random.uniform(0.5, 1.0), at_least)
        if self._loop.time() + max(self._pause, pause) > self._until:
            return False
        await asyncio.sleep(pause)
        self._pause = min(2 * self._pause, 5.0)
        return True


class StreamShell(Protocol):
    """What an event stream needs from its transport."""

    name: str
    reconnect_within: float
    """Seconds in which a broken stream is resumed."""
    limit: int
    """The most bytes of a message."""
    may_read: LightEvent
    """Cleared while the receiver takes no messages."""

    @property
    def numbered(self) -> bool:
        """Whether the server numbers its messages."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended, so that nothing is resumed."""
        ...

    async def open_stream(self, key: str | None, last: str | None) -> Response:
        """Send the GET for a stream, resuming after the event id `last` if given; raises Broken."""
        ...

    def arrived(self, events: Sequence[ServerSentEvent], key: str | None) -> None:
        """Handle events from the stream of this session."""
        ...

    async def room(self, last: str | None) -> None:
        """Wait while the stream whose last event this was is too far ahead of the others."""
        ...

    def gone(self, why: str) -> None:
        """End the connection that the server no longer knows."""
        ...

    def finish(self, end: End) -> None:
        """End the connection; idempotent."""
        ...


class EventStream:
    """One event stream, of a session or of the connection (`key` is None)."""

    def __init__(self, transport: StreamShell, key: str | None) -> None:
        self.task: asyncio.Task[None] | None = None
        self.ready = LightEvent()
        """Set when the stream is open, or the server must learn of the session before it opens one."""
        self.is_read = False
        """Whether it is open and being read."""
        self._transport = transport
        self._key = key
        self._last: str | None = None
        self._was_open = False
        self._may_have_begun = False
        """Whether the server may have sent messages on this stream, with or without our knowledge."""
        self._left = False
        self._is_waiting = False
        """Whether it waits for the server."""

    def leave(self) -> None:
        """Stop reading: the session was closed."""
        self._left = True
        if self.task is not None:
            asyncio.get_running_loop().call_soon(self.task.cancel)

    async def run(self) -> None:
        """Read the stream, and resume it when it breaks, until the session or the connection ends."""
        try:
            patience = Backoff(self._transport.reconnect_within)
            while await self._once():
                if self._progress:
                    patience = Backoff(self._transport.reconnect_within)
                if not await patience.another():
                    self._give_up("did not resume a stream in time")
                    return
        except TooLong:
            self._give_up(f"sent a line of more than {self._transport.limit:,} bytes that is not a message")
        finally:
            self.ready.set()

    async def _once(self) -> bool:
        """Open the stream and read it to its end; returns whether to resume it."""
        self._progress = False
        try:
            response = await self._transport.open_stream(self._key, self._resumes_after())
        except Broken as broken:
            self._may_have_begun |= broken.was_sent
            return self._broke(str(broken))
        # A proxy that answers for a server that is away cannot tell whether the server has begun to send.
        self._may_have_begun |= response.status == 200 or response.status in AWAY
        if response.status != 200:
            return self._was_refused(response.status, await self._body(response))
        try:
            self._was_open = self.is_read = True
            self.ready.set()
            await self._read(response)
        except Broken as broken:
            return self._broke(str(broken))
        except TimeoutError:
            return self._broke(f"the server sent nothing for {SILENCE:g} seconds")
        finally:
            self.is_read = False
            await response.close()
        return self._broke("the server ended the stream")

    def _resumes_after(self) -> str | None:
        if self._transport.numbered:
            return (self._last or "0") if self._may_have_begun else None
        return self._last

    async def _read(self, response: Response) -> None:
        events = EventReader(self._transport.limit)
        if not self._transport.numbered:
            await self._read_chunks(response, events, _nothing)
            return
        async with asyncio.timeout(None) as deadline:

            def stop_waiting() -> None:
                if self._is_waiting:
                    deadline.reschedule(0)

            idle_timer = IdleTimer(SILENCE, stop_waiting)
            try:
                await self._read_chunks(response, events, idle_timer.touch)
            finally:
                idle_timer.stop()

    async def _read_chunks(self, response: Response, events: EventReader, touch: Callable[[], None]) -> None:
        while True:
            await self._transport.may_read.wait()
            touch()  # the server was not silent while nothing was read
            self._is_waiting = True
            try:
                chunk = await anext(response.chunks)
            except StopAsyncIteration:
                return
            finally:
                self._is_waiting = False
            self._progress = True
            if found := events.feed(chunk):
                self._last = next((event.id for event in reversed(found) if event.id is not None), self._last)
                self._transport.arrived(found, self._key)
                await self._transport.room(self._last)

    async def _body(self, response: Response) -> bytes:
        try:
            return await response.body(64 * 1024)
        except Broken:
            return b""

    def _broke(self, why: str) -> bool:
        if self._left or self._transport.is_over:
            return False
        if self._was_open and not self._transport.numbered and self._last is None:
            # The server does not number messages, so a loss between two streams could not be detected.
            self._transport.finish(End("peer_closed", f"{self._transport.name}: a stream ended: {why}"))
            return False
        log.info("a stream of %s ended and is resumed: %s", self._transport.name, why)
        return True

    def _was_refused(self, status: int, body: bytes) -> bool:
        if self._key is not None and status == 404:
            # The server must learn of the session before it opens a stream; or the connection has ended, which the
            # connection's own stream reports.
            self.ready.set()
            return not (self._was_open or self._transport.is_over)
        if status in (409, 429) or status in AWAY:
            return not self._transport.is_over
        if status == 404:
            self._transport.gone(shown(status, body))
        else:
            self._transport.finish(End("broken", f"{self._transport.name}: {shown(status, body)}"))
        return False

    def _give_up(self, why: str) -> None:
        if self._key is not None and not self._was_open:
            log.warning("the server never opened the stream of session %s", self._key)
            return
        self._transport.finish(End("broken", f"{self._transport.name} {why}"))


def _nothing() -> None:
    """What is done on a message of a server whose idle_timer says nothing."""


def wished_pause(response: Response) -> float:
    """The seconds that the server asks to wait before another attempt, within `LONGEST_WISH`."""
    wish = response.header("retry-after") or ""
    # The other form is a date (RFC 9110, 10.2.3); servers that are away for seconds do not use it.
    return min(float(wish), LONGEST_WISH) if wish.isascii() and wish.isdecimal() else 0.0


def shown(status: int, body: bytes) -> str:
    """The text of a refusal, for an error message."""
    text = body.decode("utf-8", "replace").strip()
    message = parse(body)
    if isinstance(message, ResponseFrame) and message.error is not None:
        text = message.error.message
    return f"the server answered {status}{': ' if text else ''}{text[:REFUSAL_SHOWN]}"
