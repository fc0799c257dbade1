"""One event stream of the HTTP client: opened, read, and taken up again where it ended.

open ──▶ refused ──┬──▶ later (409, 503, ...; 404 for a session that the server does not know yet)
  ▲                └──▶ the end of the link
  │──▶ read ──▶ transport.arrived
  └── broken, ended, silent
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

from accord.http.events import EventReader, TooLong
from accord.http.exchange import Broken, Response
from accord.jsonrpc.messages import Answer, parse
from accord.transports.base import End

if TYPE_CHECKING:
    from accord.http.transport import HttpTransport

SILENCE = 45.0
"""Seconds without even a sign of life after which a stream counts as broken: our server sends one every 15."""

REFUSAL_SHOWN = 300
"""Characters of a refusal's text that are shown."""

log = logging.getLogger("accord.http")


class Patience:
    """Waits longer from time to time, until it has taken too long."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._pause = 0.1

    async def another(self) -> bool:
        """Wait a moment before another attempt; False if there shall be none."""
        if self._loop.time() + self._pause > self._until:
            return False
        await asyncio.sleep(self._pause * random.uniform(0.5, 1.0))
        self._pause = min(2 * self._pause, 5.0)
        return True


class EventStream:
    """One event stream: opened, read, and opened again where it ended."""

    def __init__(self, transport: HttpTransport, key: str | None) -> None:
        self.task: asyncio.Task[None] | None = None
        self.ready = asyncio.Event()
        """Set once the stream is open, or the server wants to hear of the session first."""
        self.is_read = False
        """Whether it is open, and being read to its end."""
        self._transport = transport
        self._key = key
        self._last: str | None = None
        self._was_open = False
        self._left = False

    def leave(self) -> None:
        """The session was closed: no more is to be read."""
        self._left = True
        if self.task is not None:
            asyncio.get_running_loop().call_soon(self.task.cancel)

    async def run(self) -> None:
        try:
            patience = Patience(self._transport.reconnect_within)
            while await self._once():
                if self._progress:
                    patience = Patience(self._transport.reconnect_within)
                if not await patience.another():
                    self._give_up("could not be read again")
                    return
        except TooLong:
            self._give_up(f"sent a message of more than {self._transport.limit:,} bytes")
        finally:
            self.ready.set()

    async def _once(self) -> bool:
        """Open the stream and read it to its end; whether to do so again."""
        self._progress = False
        try:
            response = await self._transport.open_stream(self._key, self._goes_on_from())
        except Broken as broken:
            return self._broke(str(broken))
        if response.status != 200:
            return self._was_refused(response.status, await self._body(response))
        try:
            self._was_open = self.is_read = True
            self.ready.set()
            await self._read(response)
        except Broken as broken:
            return self._broke(str(broken))
        except TimeoutError:
            return self._broke("nothing was heard any more")
        finally:
            self.is_read = False
            await response.close()
        return self._broke("the server ended the stream")

    def _goes_on_from(self) -> str | None:
        if self._transport.numbered:
            return (self._last or "0") if self._was_open else None
        return self._last

    async def _read(self, response: Response) -> None:
        events = EventReader(self._transport.limit)
        silence = SILENCE if self._transport.numbered else None
        while True:
            await self._transport.may_read.wait()
            try:
                async with asyncio.timeout(silence):
                    chunk = await anext(response.chunks)
            except StopAsyncIteration:
                return
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
            # Nobody could say what was lost between two readings.
            self._transport.finish(End("peer_closed", f"{self._transport.name}: a stream ended: {why}"))
            return False
        log.info("a stream of %s ended, and is taken up again: %s", self._transport.name, why)
        return True

    def _was_refused(self, status: int, body: bytes) -> bool:
        if self._key is not None and status == 404:
            # The server wants to hear of the session before its stream is read; or the connection is over, of which
            # the connection's stream will tell.
            self.ready.set()
            return not (self._was_open or self._transport.is_over)
        if status in (409, 429, 502, 503, 504):
            return not self._transport.is_over
        if status == 404:
            self._transport.gone(shown(status, body))
        else:
            self._transport.finish(End("broken", f"{self._transport.name}: {shown(status, body)}"))
        return False

    def _give_up(self, why: str) -> None:
        if self._key is not None and not self._was_open:
            log.warning("the stream of the session %s was never opened", self._key)
            return
        self._transport.finish(End("broken", f"{self._transport.name} {why}"))


def shown(status: int, body: bytes) -> str:
    """What people see of an answer that is a refusal."""
    text = body.decode("utf-8", "replace").strip()
    message = parse(body)
    if isinstance(message, Answer) and message.error is not None:
        text = message.error.message
    return f"the server answered {status}{': ' if text else ''}{text[:REFUSAL_SHOWN]}"
