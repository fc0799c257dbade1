"""HTTP/1.1 connections of the client, with one request at a time. `h1_reader` reads the responses."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Protocol

from accord.http.client.socket import Broken, ClientSocket, Response
from accord.http.h1 import Bad, Fields, ResponseHead, keeps, request_head
from accord.http.h1_reader import BodyPart, Item, ResponseReader
from accord.transports.server_access import no_answer

IDLE = 3.0
"""Seconds after which an idle connection is not reused. Many servers close idle connections after 5 seconds, and a
request sent at that moment may have been received or not."""


class Released(Protocol):
    """Told when a connection has done a request: it is idle, or it was closed."""

    def __call__(self, connection: Http1, *, is_open: bool) -> None: ...


class Http1:
    """An HTTP/1.1 connection: sends a request and reads the response before the next request."""

    def __init__(self, socket: ClientSocket, released: Released | None = None) -> None:
        self._socket = socket
        self._released = released or _not_told
        self.busy = False
        self._sent = 0
        """How many requests were sent."""
        self._clock = asyncio.get_running_loop().time
        self._idle_since = self._clock()
        self._keep = True
        self._answered = False
        """Whether the server has answered here, so that it is no question whether it speaks TLS."""
        self._reader = ResponseReader()
        self._items: deque[Item] = deque()
        """What the reader has returned and is not handled yet."""

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent: the last response was read, and the server has no reason to close."""
        is_fresh = self._clock() - self._idle_since < IDLE
        return not (self.busy or self._items) and self._reader.is_between and is_fresh and self._socket.is_quiet

    async def request(self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> Response:
        """Send a request and wait for the headers of its response; raises Broken."""
        self.busy = True
        self._sent += 1
        try:
            head = request_head(method, path, headers)
        except ValueError as error:
            self._done()
            raise Broken(f"invalid request: {error}", was_sent=False) from error
        try:
            self._socket.put(head + body)
            answer = await self._head()
        except Bad as bad:
            self.close()
            raise Broken(f"invalid HTTP response: {bad}") from bad
        except BaseException:
            self.close()
            raise
        # A server that answers before it has received the whole request may not read the rest.
        self._keep = keeps(answer.fields, is_1_1=answer.is_1_1) and not self._socket.unsent
        if not answer.has_body:
            self._done()
            return Response(answer.status, _decoded(answer.fields))
        return Response(answer.status, _decoded(answer.fields), self._chunks(answer), partial(self._leave, self._sent))

    async def _head(self) -> ResponseHead:
        first = b""  # says whether the server speaks TLS
        while not self._items:
            hint = no_answer(first, tls=self._answered or self._socket.is_encrypted)
            data = await self._more(f"the server closed the connection before it answered{hint}")
            first = first or data
            self._read(data)
        head = self._items.popleft()
        if isinstance(head, Bad):
            raise Bad(f"{head}{no_answer(first, tls=self._answered or self._socket.is_encrypted)}")
        assert isinstance(head, ResponseHead), head
        self._answered = True
        return head

    def _read(self, data: bytes) -> None:
        self._items.extend(self._reader.feed(data))

    async def _more(self, otherwise: str) -> bytes:
        if data := await self._socket.read():
            return data
        raise Broken(otherwise)

    async def _chunks(self, head: ResponseHead) -> AsyncGenerator[bytes]:
        is_over = False
        while not is_over:
            if not self._items:
                if data := await self._socket.read():
                    self._read(data)
                    continue
                if not head.ends_with_connection:
                    raise Broken("the server closed the connection within a response")
                self._done()
                return
            part = self._items.popleft()
            if isinstance(part, Bad):
                raise Broken(f"invalid HTTP response: {part}") from part
            assert isinstance(part, BodyPart), part
            if is_over := part.is_last:
                self._done()
            if part.data:
                yield part.data

    def _done(self) -> None:
        """Make the connection idle: the response was read."""
        self.busy = False
        self._idle_since = self._clock()
        if self._keep:
            self._released(self, is_open=True)
        else:
            self.close()

    def _leave(self, request: int) -> None:
        """Close the connection, unless the response to this request was read; another request may be under way then."""
        if self.busy and request == self._sent:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
        self._released(self, is_open=False)

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, for a second at most."""
        await asyncio.shield(self._socket.wait_closed())


def _decoded(fields: Fields) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in fields]


def _not_told(connection: Http1, *, is_open: bool) -> None:
    pass
