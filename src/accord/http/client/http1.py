"""HTTP/1.1 as a client: one exchange at a time on each connection. `head` knows the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from accord.http.client.socket import Broken, ClientSocket, Response
from accord.http.h1 import (
    LONGEST,
    Bad,
    BodyReader,
    ResponseHead,
    body_of_response,
    head_bytes,
    keeps,
    request_line,
    response_head,
)

IDLE = 3.0
"""Seconds after which a connection is not used again: servers close idle ones, many after 5, and a request that
crosses that may have been received or not."""

CHANGES_PROTOCOL = 101


class Http1:
    """A connection: asks, and reads the answer before it asks again."""

    def __init__(self, wire: ClientSocket) -> None:
        self._wire = wire
        self.busy = False
        self._clock = asyncio.get_running_loop().time
        self._idle_since = self._clock()
        self._keep = True
        self._rest = b""
        """What was read behind the head of an answer."""

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent: the last answer was read, and the server has no reason to hang up."""
        is_fresh = self._clock() - self._idle_since < IDLE
        return not (self.busy or self._rest) and is_fresh and self._wire.is_quiet

    async def request(self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> Response:
        """Send this, and wait for the head of the answer; raises Broken."""
        self.busy = True
        try:
            fields = [(name.encode(), value.encode()) for name, value in headers]
            head = head_bytes(request_line(method, path), fields)
        except ValueError as error:
            self.busy = False
            raise Broken(f"the request cannot be written: {error}", was_sent=False) from error
        try:
            self._wire.put(head + body)
            answer = await self._head()
            rest = body_of_response(answer, method)
        except Bad as bad:
            self.close()
            raise Broken(f"what the server sent is no HTTP: {bad}") from bad
        except BaseException:
            self.close()
            raise
        # A server that answers before it has all of the request may not read the rest of it.
        self._keep = keeps(answer.fields, is_1_1=answer.is_1_1) and not self._wire.unsent
        if rest.is_over:
            self._done()
        found = [(name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in answer.fields]
        return Response(answer.status, found, self._chunks(rest), self._leave)

    async def _head(self) -> ResponseHead:
        data = b""
        while True:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > LONGEST:
                    raise Bad("the head of an answer is too long")
                data += await self._more("the server closed the connection before it answered")
                continue
            head, data = response_head(data[: end + 2]), data[end + 4 :]
            if head.status == CHANGES_PROTOCOL:
                raise Bad("another protocol, for which nobody has asked")
            if head.status >= 200:  # those below say that an answer will come
                self._rest = data
                return head

    async def _more(self, otherwise: str) -> bytes:
        if data := await self._wire.read():
            return data
        raise Broken(otherwise)

    async def _chunks(self, body: BodyReader) -> AsyncGenerator[bytes]:
        is_over = body.is_over
        while not is_over:
            data, self._rest = self._rest or await self._wire.read(), b""
            if not data:
                if not body.end():
                    raise Broken("the connection ended in the middle of an answer")
                self._done()
                return
            try:
                part, self._rest = body.feed(data)
            except Bad as bad:
                raise Broken(f"what the server sent is no HTTP: {bad}") from bad
            if is_over := body.is_over:
                self._done()
            if part:
                yield part

    def _done(self) -> None:
        """The answer has been read."""
        self.busy = False
        self._idle_since = self._clock()
        if not self._keep:
            self.close()

    def _leave(self) -> None:
        if self.busy:  # what is left of the answer will not be read
            self.close()

    def close(self) -> None:
        self._wire.close()

    async def wait_closed(self) -> None:
        await asyncio.shield(self._wire.wait_closed())
