"""What the HTTP client consists of: a way to send bytes, a response that is read as it comes, and what can go wrong."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence

from accord.errors import AccordError


class Broken(AccordError):
    """An exchange failed. `was_sent` says whether the server may have got the request."""

    def __init__(self, detail: str, *, was_sent: bool = True) -> None:
        super().__init__(detail)
        self.was_sent = was_sent


class Wire:
    """A TCP or TLS connection, whose troubles are Broken."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None, within: float) -> Wire:
        try:
            async with asyncio.timeout(within):
                return cls(*await asyncio.open_connection(host, port, ssl=tls, limit=256 * 1024))
        except (OSError, TimeoutError, ValueError) as error:
            # asyncio's own text names every address that it tried; the operating system's word is enough
            reason = "it did not answer in time" if isinstance(error, TimeoutError) else _reason(error)
            raise Broken(f"{host}:{port} cannot be reached: {reason}", was_sent=False) from error

    @property
    def speaks(self) -> str | None:
        """The protocol that TLS has agreed upon."""
        encrypted = self._writer.get_extra_info("ssl_object")
        return None if encrypted is None else encrypted.selected_alpn_protocol()

    @property
    def has_ended(self) -> bool:
        return self._reader.at_eof() or self._writer.is_closing()

    async def read(self, size: int) -> bytes:
        try:
            return await self._reader.read(size)
        except OSError as error:
            raise Broken(f"the connection broke: {_reason(error)}") from error

    def put(self, data: bytes) -> None:
        """Write without waiting: for a few bytes."""
        self._writer.write(data)

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except (OSError, RuntimeError) as error:
            raise Broken(f"the connection broke: {_reason(error)}") from error

    def close(self) -> None:
        self._writer.close()

    async def wait_closed(self) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(1.0):
                await self._writer.wait_closed()


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
