"""HTTP/1.1 as a client, over asyncio's streams: one exchange at a time on each connection. h11 knows the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import h11

from accord.http.exchange import Broken, Response, Wire

READ = 64 * 1024

IDLE = 3.0
"""Seconds after which a connection is not used again: servers close idle ones, many after 5, and a request that
crosses that may have been received or not."""


class Http1:
    """A connection: asks, and reads the answer before it asks again."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=256 * 1024)
        self.busy = False
        self._clock = asyncio.get_running_loop().time
        self._idle_since = self._clock()

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent: the last answer was read, and the server has no reason to hang up."""
        is_fresh = self._clock() - self._idle_since < IDLE
        return not self.busy and is_fresh and self._http.our_state is h11.IDLE and not self._wire.has_ended

    async def request(self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> Response:
        """Send this, and wait for the head of the answer; raises Broken."""
        self.busy = True
        try:
            encoded = [(name.encode(), value.encode()) for name, value in headers]
            head = h11.Request(method=method, target=path, headers=encoded)
            data = [self._http.send(head), self._http.send(h11.Data(data=body)) if body else b""]
            data.append(self._http.send(h11.EndOfMessage()))
            await self._wire.write(b"".join(part or b"" for part in data))
            answer = await self._answer()
        except h11.LocalProtocolError as error:
            raise Broken(f"the request cannot be written: {error}", was_sent=False) from error
        except BaseException:
            self.close()
            raise
        found = [(name.decode("latin-1").lower(), value.decode("utf-8", "replace")) for name, value in answer.headers]
        return Response(answer.status_code, found, self._chunks(), self._leave)

    async def _answer(self) -> h11.Response:
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise Broken("the server closed the connection before it answered")

    async def _chunks(self) -> AsyncGenerator[bytes]:
        while True:
            event = await self._next()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                if self._http.their_state is h11.DONE and self._http.our_state is h11.DONE:
                    self._http.start_next_cycle()
                self.busy = False
                self._idle_since = self._clock()
                return
            else:
                raise Broken("the connection ended in the middle of an answer")

    async def _next(self) -> Any:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                self._http.receive_data(await self._wire.read(READ))
        except h11.RemoteProtocolError as error:
            raise Broken(f"what the server sent is no HTTP: {error}") from error
        return event

    def _leave(self) -> None:
        if self.busy:  # what is left of the answer will not be read
            self.close()

    def close(self) -> None:
        self._wire.close()

    async def wait_closed(self) -> None:
        await asyncio.shield(self._wire.wait_closed())
