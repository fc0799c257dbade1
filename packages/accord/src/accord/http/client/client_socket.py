"""The HTTP client's socket, its streamed response, and the error for both."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from accord._internal.tasks import LightEvent, within
from accord.errors import AccordError
from accord.transports.server_access import NetworkProxy, open_connection, unreachable, without_tls
from accord.transports.socket_buffers import SharedBufferProtocol

UNREAD = 256 * 1024
"""SharedBufferProtocol bytes that may wait before reading from the socket stops."""


class Broken(AccordError):
    """A request failed; `was_sent` says whether the server may have received it."""

    def __init__(self, detail: str, *, was_sent: bool = True) -> None:
        super().__init__(detail)
        self.was_sent = was_sent


class ClientSocket(SharedBufferProtocol):
    """A TCP or TLS connection with a bounded buffer for received bytes; its errors are `Broken`."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._has_ended = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._room = LightEvent()
        self._room.set()
        self._lost = LightEvent()

    @classmethod
    async def open(
        cls, host: str, port: int, tls: ssl.SSLContext | None, patience: float, proxy: NetworkProxy | None = None
    ) -> ClientSocket:
        """Connect within `patience` seconds, through the proxy if there is one; raises Broken."""
        try:
            async with asyncio.timeout(patience):
                opened = await open_connection(cls, host, port, tls=tls, proxy=proxy)
        except (OSError, TimeoutError, ValueError) as error:
            # asyncio's own text lists every address it tried; the operating system's text is shorter
            reason = "it did not answer in time" if isinstance(error, TimeoutError) else _reason(error)
            reason = without_tls(error) or reason
            raise Broken(unreachable(f"{host}:{port}", proxy, reason), was_sent=False) from error
        return opened

    @property
    def speaks(self) -> str | None:
        """The protocol negotiated by ALPN, or None."""
        encrypted = self._transport.get_extra_info("ssl_object")
        return None if encrypted is None else encrypted.selected_alpn_protocol()

    @property
    def is_encrypted(self) -> bool:
        """Whether it is a TLS connection."""
        return self._transport.get_extra_info("ssl_object") is not None

    @property
    def is_open(self) -> bool:
        """Whether neither side has closed the connection."""
        return not (self._has_ended or self._transport.is_closing())

    @property
    def is_quiet(self) -> bool:
        """Whether it is open and has no unread bytes."""
        return self.is_open and not self._parts

    async def read(self) -> bytes:
        """Wait for received bytes; empty at the end. Raises Broken."""
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
        """Bytes that wait to be sent."""
        return self._transport.get_write_buffer_size()

    def put(self, data: bytes) -> None:
        """Write without waiting; a broken connection is reported by `read`."""
        if not self._transport.is_closing():
            self._transport.write(data)

    async def write(self, data: bytes) -> None:
        """Write, and wait until there is room for more."""
        self.put(data)
        await self._room.wait()

    def close(self) -> None:
        """Close the connection; unsent bytes are dropped."""
        if self._transport.is_closing():
            return  # a closed transport of asyncio with TLS no longer knows what is unsent
        if self.unsent:  # the server may never read them
            self._transport.abort()
        else:
            self._transport.close()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, for a second at most."""
        await within(1.0, self._lost.wait())

    # The socket's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(
            "asyncio.Transport", transport
        )  # uvloop's transports do not inherit from asyncio.Transport

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


async def _no_chunks() -> AsyncGenerator[bytes]:
    none: tuple[bytes, ...] = ()
    for chunk in none:
        yield chunk


@dataclass(eq=False)
class Response:
    """A response. If it has a body, `chunks` streams it and `leave` ends its request: read it, or call `close`."""

    status: int
    headers: Sequence[tuple[str, str]]
    chunks: AsyncGenerator[bytes] = field(default_factory=_no_chunks)
    """The parts of the body as they arrive."""
    _leave: Callable[[], None] | None = None

    def header(self, name: str) -> str | None:
        """Return the first value of a header, or None; the name must be in lower case."""
        return next((value for given, value in self.headers if given == name), None)

    def all(self, name: str) -> list[str]:
        """Return all values of a header that may be repeated."""
        return [value for given, value in self.headers if given == name]

    async def body(self, limit: int) -> bytes:
        """Read the whole body; raises Broken if it is larger than `limit`."""
        parts: list[bytes] = []
        size = 0
        try:
            async for chunk in self.chunks:
                parts.append(chunk)
                size += len(chunk)
                if size > limit:
                    raise Broken(f"response too large: at most {limit:,} bytes are allowed")
        finally:
            await self.close()
        return b"".join(parts)

    async def close(self) -> None:
        """Stop reading the body."""
        await self.chunks.aclose()
        if self._leave is not None:
            self._leave()


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
