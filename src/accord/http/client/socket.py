"""What the HTTP client consists of: a way to send bytes, a response that is read as it comes, and what can go wrong."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import cast

from accord.errors import AccordError
from accord.transports.closing import within
from accord.transports.received import Received

UNREAD = 256 * 1024
"""Bytes that may wait to be read before no more are taken from the socket."""


class Broken(AccordError):
    """An exchange failed. `was_sent` says whether the server may have got the request."""

    def __init__(self, detail: str, *, was_sent: bool = True) -> None:
        super().__init__(detail)
        self.was_sent = was_sent


class ClientSocket(Received):
    """A TCP or TLS connection, whose troubles are Broken. What comes waits here until it is read, up to a bound."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._has_ended = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._lost = asyncio.Event()

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None, patience: float) -> ClientSocket:
        try:
            async with asyncio.timeout(patience):
                _, wire = await asyncio.get_running_loop().create_connection(cls, host, port, ssl=tls)
        except (OSError, TimeoutError, ValueError) as error:
            # asyncio's own text names every address that it tried; the operating system's word is enough
            reason = "it did not answer in time" if isinstance(error, TimeoutError) else _reason(error)
            raise Broken(f"{host}:{port} cannot be reached: {reason}", was_sent=False) from error
        return wire

    @property
    def speaks(self) -> str | None:
        """The protocol that TLS has agreed upon."""
        encrypted = self._transport.get_extra_info("ssl_object")
        return None if encrypted is None else encrypted.selected_alpn_protocol()

    @property
    def is_open(self) -> bool:
        return not (self._has_ended or self._transport.is_closing())

    @property
    def is_quiet(self) -> bool:
        """Whether it is open, and nothing has come that was not read."""
        return self.is_open and not self._parts

    async def read(self) -> bytes:
        """What has come; nothing at the end."""
        while not self._parts:
            if self._error is not None:
                raise Broken(f"the connection broke: {_reason(self._error)}") from self._error
            if self._has_ended:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        if self._size > UNREAD and not self._transport.is_closing():
            self._transport.resume_reading()
        self._size = 0
        return data

    @property
    def unsent(self) -> int:
        return self._transport.get_write_buffer_size()

    def put(self, data: bytes) -> None:
        """Write without waiting. Whether the connection still lives is told by `read`."""
        if not self._transport.is_closing():
            self._transport.write(data)

    async def write(self, data: bytes) -> None:
        """Write, and wait until there is room for more."""
        self.put(data)
        await self._room.wait()

    def close(self) -> None:
        if self.unsent:  # nobody may ever take it
            self._transport.abort()
        else:
            self._transport.close()

    async def wait_closed(self) -> None:
        await within(1.0, self._lost.wait())

    # The socket's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of no common class

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        before, self._size = self._size, self._size + len(data)
        if before <= UNREAD < self._size:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._has_ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended = True
        self._error = exc
        self._lost.set()
        self._room.set()
        self._wake()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Response:
    """An answer, whose body is read as it comes. It is to be read to its end, or left by `close`."""

    def __init__(
        self,
        status: int,
        headers: Sequence[tuple[str, str]],
        chunks: AsyncGenerator[bytes],
        leave: Callable[[], None],
    ) -> None:
        self.status = status
        self.chunks = chunks
        self._headers = headers
        self._leave = leave

    def header(self, name: str) -> str | None:
        return next((value for given, value in self._headers if given == name), None)

    def all(self, name: str) -> list[str]:
        """The values of a header that may come several times."""
        return [value for given, value in self._headers if given == name]

    async def body(self, limit: int) -> bytes:
        """All of it; raises Broken past the limit."""
        parts: list[bytes] = []
        size = 0
        try:
            async for chunk in self.chunks:
                parts.append(chunk)
                size += len(chunk)
                if size > limit:
                    raise Broken(f"an answer has more than {limit:,} bytes")
        finally:
            await self.close()
        return b"".join(parts)

    async def close(self) -> None:
        """Read no more of it."""
        await self.chunks.aclose()
        self._leave()


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
