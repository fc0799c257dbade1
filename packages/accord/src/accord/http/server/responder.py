"""The response to one HTTP request: sends it over ASGI, and notes it for the access log."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from accord.http.headers import EVENTS, JSON
from accord.http.server.access_log import AccessRecord
from accord.http.server.asgi import Send, header_pairs
from accord.http.server.connection import StreamReader
from accord.http.server.request_body import RequestBody
from accord.http.server.validation import Refusal

log = logging.getLogger("accord.http")


class Responder:
    """Sends one response."""

    def __init__(self, record: AccessRecord, send: Send) -> None:
        self.record = record
        self.more: Sequence[tuple[str, str]] = ()
        """Headers of whatever response is sent."""
        self._send = send

    async def respond(
        self,
        status: int,
        body: bytes = b"",
        *headers: tuple[str, str],
        media_type: str = "text/plain",
        before_its_end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Send a whole response; `before_its_end` is awaited when the client can read all of it but its end."""
        sent = [*headers, ("content-length", str(len(body)))]
        if body:
            sent.append(("content-type", media_type))
        self.record.status, self.record.sent = status, len(body)
        await self._start(status, *sent)
        if before_its_end is not None:
            await self._part(body, more=True)
            await before_its_end()
            body = b""
        await self._part(body)

    async def refuse(self, refusal: Refusal, body: RequestBody) -> None:
        """Send a refusal, and discard the rest of the request's body."""
        log.info("%s refused: %s %s", self.record.method, refusal.status, refusal.problem)
        more: list[tuple[str, str]] = []
        if refusal.status == 401:
            more.append(("www-authenticate", "Bearer"))
        if refusal.status == 405:
            more.append(("allow", "POST, GET, DELETE"))
        if refusal.status in (429, 503):
            more.append(("retry-after", str(refusal.retry_after)))
        text, media_type = (refusal.problem.encode(), "text/plain") if refusal.body is None else (refusal.body, JSON)
        unread = None if body.is_over or self.record.method != "POST" else body.pass_over
        await self.respond(refusal.status, text, *more, media_type=media_type, before_its_end=unread)

    async def stream(self, reader: StreamReader) -> None:
        """Send an event stream until it is over."""
        # X-Accel-Buffering turns off the buffering of nginx, which would hold the stream until it ends.
        await self.begin_stream(("cache-control", "no-cache"), ("x-accel-buffering", "no"))
        # Many servers send the headers only with the first bytes of the body.
        await self._part(b":\n\n", more=True)
        while (written := await reader.next()) is not None:
            await self.pass_on(written)
        await self.end_stream()

    async def begin_stream(self, *headers: tuple[str, str]) -> None:
        """Begin an event stream whose bytes follow by `pass_on`."""
        self.record.status = 200
        await self._start(200, ("content-type", EVENTS), *headers)

    async def pass_on(self, written: bytes) -> None:
        """Send bytes of an event stream; waits while the client does not read."""
        await self._part(written, more=True)
        self.record.sent += len(written)

    async def end_stream(self) -> None:
        """End an event stream."""
        await self._part(b"")

    async def _start(self, status: int, *headers: tuple[str, str]) -> None:
        await self._send(
            {"type": "http.response.start", "status": status, "headers": header_pairs(*headers, *self.more)}
        )

    async def _part(self, body: bytes, *, more: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
