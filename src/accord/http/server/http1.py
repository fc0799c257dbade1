"""The server's side of a connection that speaks HTTP/1.1: requests onto an ASGI application.

    bytes ──▶ head ──▶ Answering ──▶ application        one request at a time; what is behind it waits
    application ──▶ Answering.send ──▶ one write for all that it says at once

A connection whose first bytes are those of HTTP/2 is handed over as it is, and one that asks for a WebSocket goes to
`upgrade`. What stays here is bounded: heads, what was received of a body, and what was not sent yet. A client that
does not read its answers has no further request begun, and is cut once it has read nothing for `Limits.stalled`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import unquote

from accord.http.h1 import (
    LONGEST,
    Bad,
    BodyReader,
    Fields,
    RequestHead,
    body_of_request,
    chunk,
    head_bytes,
    keeps,
    request_head,
    values,
)
from accord.transports.framed import DrainProgress
from accord.transports.received import Received

if TYPE_CHECKING:
    from accord.http.server.listener import Listener

Event: TypeAlias = MutableMapping[str, Any]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client begins with that speaks HTTP/2 without having asked (RFC 9113, 3.4)."""

WAITING = 256 * 1024
"""Bytes of a request that wait for the application before no more are read."""

LOOK_EVERY = 1.0
"""Seconds between two looks at a connection, at least."""

LINGERING = 1.0
"""Seconds that a client has to read why it was refused."""

log = logging.getLogger("accord.http")


class Http1Connection(Received):
    """One connection, for as long as it is neither HTTP/2 nor a WebSocket."""

    _transport: asyncio.Transport

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._first = True
        self._rest = b""
        self._body: BodyReader | None = None
        """The body that is being received."""
        self._answering: Answering | None = None
        """The request that the application works on."""
        self._room = asyncio.Event()
        self._room.set()
        self._is_leaving = False
        """Whether nothing that comes is looked at any more."""
        self._waits_since = self._reads_since = self._loop.time()
        """Since when the head of a request is awaited, and since when the client has read nothing."""
        self._written = 0
        self._reading = DrainProgress()
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop's are of no common class
        if not self._listener.takes(self):
            self._is_leaving = True
            transport.abort()
            return
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            self._is_leaving = True
            self._listener.hand_over(self, transport, b"")
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._forget()
        if self._answering is not None:
            self._answering.leave()
        self._room.set()

    def _forget(self) -> None:
        """This connection is over, or somebody else's."""
        self._listener.forget(self)
        if self._patience is not None:
            self._patience.cancel()

    def _watch(self) -> None:
        now = self._loop.time()
        left = self._waits_since + self._listener.idle - now
        if self._is_stalled(now):
            log.info("a client read none of its answers for %g seconds: its connection is cut", self._listener.stalled)
            self._transport.abort()
        elif self._answering is None and left <= 0 and self._room.is_set():
            self._transport.close()
        else:
            soon = min(left, self._reads_since + self._listener.stalled - now)
            self._patience = self._loop.call_later(max(soon, LOOK_EVERY), self._watch)

    def _is_stalled(self, now: float) -> bool:
        unread = self._transport.get_write_buffer_size()
        if not unread or self._reading.look(self._written, unread):
            self._reads_since = now
        return now - self._reads_since > self._listener.stalled

    # In

    def data_received(self, data: bytes) -> None:
        if self._is_leaving:
            return
        data = self._rest + data if self._rest else data
        self._rest = b""
        if self._first:
            if data[: len(PREFACE)] == PREFACE[: len(data)]:
                self._rest = data
                if len(data) >= len(PREFACE):
                    self._forget()
                    self._is_leaving = True
                    self._listener.hand_over(self, self._transport, data)
                return
            self._first = False
        try:
            self._take(data)
        except Bad as bad:
            self._refuse(bad)

    def _take(self, data: bytes) -> None:
        while not (self._is_leaving or self._transport.is_closing()):
            if self._body is not None and self._answering is not None:
                part, data = self._body.feed(data)
                is_over = self._body.is_over
                if is_over:
                    self._body = None
                if self._answering.got(part, is_over=is_over) > WAITING:
                    self._transport.pause_reading()
            if not data:
                return
            if self._answering is not None or not self._room.is_set():
                self._rest = data  # a request behind one that is not answered yet, or whose answer is not read
                if len(data) > LONGEST:
                    self._transport.pause_reading()
                return
            end = data.find(b"\r\n\r\n")
            if end < 0 or end > LONGEST:
                if len(data) > LONGEST:
                    raise Bad("the head of a request is too long", 431)
                self._rest = data
                return
            if end == 0 or data.startswith(b"\r\n"):
                data = data[2:]  # 2.2: an empty line before a request is ignored
                continue
            head, data = request_head(data[: end + 2]), data[end + 4 :]
            if head.is_1_1 and len(values(head.fields, b"host")) != 1:
                raise Bad("a request names its host, once")
            if head.method == b"GET" and b"websocket" in values(head.fields, b"upgrade"):
                self._forget()
                self._is_leaving = True
                self._listener.upgrade(self, self._transport, head, data)
                return
            self._begin(head)

    def _begin(self, head: RequestHead) -> None:
        body = body_of_request(head)
        self._answering = Answering(self, head, has_body=not body.is_over)
        self._body = None if body.is_over else body
        if self._body is not None and b"100-continue" in values(head.fields, b"expect"):
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._listener.start_task(self._answer(self._answering, scope_of(head, self._transport, "http")))

    async def _answer(self, answering: Answering, scope: Event) -> None:
        try:
            await self._listener.app(scope, answering.receive, answering.send)
        except Exception:
            log.exception("a request could not be answered")
        finally:
            if not answering.is_answered:
                answering.leave()
                self._transport.abort()

    def go_on(self) -> None:
        """The application has taken what there was of the body."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def answered(self, *, keep: bool) -> None:
        """The request is answered: the next one."""
        self._answering = None
        self._waits_since = self._loop.time()
        if not keep or self._body is not None:
            self._leave()
        elif self._listener.is_ending:
            self._transport.close()
        else:
            self._next()

    def _next(self) -> None:
        """The next request; no more are read while enough of them wait."""
        if len(self._rest) <= LONGEST:
            self.go_on()
        if self._rest:
            self._loop.call_soon(self.data_received, b"")

    # Out

    @property
    def whole(self) -> bool:
        """Whether the request has been received to its end."""
        return self._body is None

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():  # uvloop raises for it, and asyncio only counts it
            self._written += len(data)
            self._transport.write(data)

    async def room(self) -> None:
        """Wait until what was written is on its way, or the client is gone."""
        await self._room.wait()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()
        if self._answering is None and not self._is_leaving:
            self._next()

    def _refuse(self, bad: Bad) -> None:
        """What was received is no request."""
        if self._answering is not None:  # an answer is on its way; nobody could tell where this one begins
            self._transport.close()
            self._answering.leave()
            return
        log.info("a request refused: %s", bad)
        text = str(bad).encode()
        fields = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text)), (b"connection", b"close")]
        self._transport.write(head_bytes(status_line(bad.status), fields) + text)
        self._leave()

    def _leave(self) -> None:
        """Close, but not before the client could read the answer: what it still sends would reset the connection."""
        self._is_leaving = True
        self._body = None
        self.go_on()
        if self._transport.can_write_eof():
            self._transport.write_eof()
            self._loop.call_later(LINGERING, self._transport.close)
        else:
            self._transport.close()

    def end(self) -> None:
        """The server ends: at once where nothing is being answered."""
        if self._answering is None:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


class Answering:
    """One request and its answer, as ASGI's `receive` and `send`."""

    def __init__(self, connection: Http1Connection, head: RequestHead, *, has_body: bool) -> None:
        self.is_answered = False
        self._connection = connection
        self._is_head = head.method == b"HEAD"
        self._chunks = head.is_1_1
        self._keep = keeps(head.fields, is_1_1=head.is_1_1)
        self._parts: list[bytes] = []
        self._size = 0
        self._is_whole = not has_body
        self._told_whole = False
        self._gone = False
        self._waiter: asyncio.Future[None] | None = None
        self._start: Event | None = None
        self._begun = False
        self._in_chunks = False

    def got(self, part: bytes, *, is_over: bool) -> int:
        """This came of the body; how much of it waits here."""
        self._parts.append(part)
        self._size += len(part)
        self._is_whole = is_over
        self._wake()
        return self._size

    def leave(self) -> None:
        """The client is gone, or all has been said."""
        self._gone = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> Event:
        while True:
            if not self._told_whole and (self._parts or self._is_whole):
                body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
                self._parts.clear()
                if self._size > WAITING:
                    self._connection.go_on()
                self._size = 0
                self._told_whole = self._is_whole
                return {"type": "http.request", "body": body, "more_body": not self._is_whole}
            if self._gone:
                return {"type": "http.disconnect"}
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    async def send(self, event: Event) -> None:
        if self._gone:
            return
        if event["type"] == "http.response.start":
            self._start = event  # written with what follows, as one segment
            return
        body: bytes = event.get("body", b"")
        more: bool = event.get("more_body", False)
        data = self._in_wire(body, more=more)
        if not more:
            self.is_answered = True
            self.leave()
        if data:
            self._connection.write(data)
        if not more:
            self._connection.answered(keep=self._keep)
        else:
            await self._connection.room()

    def _in_wire(self, body: bytes, *, more: bool) -> bytes:
        head = b""
        if not self._begun:
            self._begun = True
            head = self._head(len(body), more=more)
        if self._is_head:
            return head
        if not self._in_chunks:
            return head + body
        return b"".join((head, chunk(body) if body else b"", b"" if more else b"0\r\n\r\n"))

    def _head(self, size: int, *, more: bool) -> bytes:
        assert self._start is not None
        fields: Fields = list(self._start["headers"])
        if not any(name == b"content-length" for name, _ in fields):
            if not more:
                fields.append((b"content-length", b"%d" % size))
            elif self._chunks:
                self._in_chunks = True
                fields.append((b"transfer-encoding", b"chunked"))
            else:
                self._keep = False
        self._keep = self._keep and self._connection.whole
        if not self._keep:
            fields.append((b"connection", b"close"))
        fields.append((b"date", _date()))
        return head_bytes(status_line(self._start["status"]), fields)


def scope_of(head: RequestHead, transport: asyncio.Transport, kind: str) -> Event:
    """What ASGI tells of a request."""
    target, _, query = head.target.partition(b"?")
    if not target.startswith(b"/"):  # RFC 9112, 3.2.2: a whole URI, as proxies get it
        target = b"/" + target.partition(b"://")[2].partition(b"/")[2]
    return {
        "type": kind,
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1" if head.is_1_1 else "1.0",
        "method": head.method.decode(),
        "scheme": ("ws" if kind == "websocket" else "http") + ("s" if transport.get_extra_info("ssl_object") else ""),
        "path": unquote(target.decode("latin-1")),
        "raw_path": target,
        "query_string": query,
        "root_path": "",
        "headers": head.fields,
        "client": _address(transport.get_extra_info("peername")),
        "server": _address(transport.get_extra_info("sockname")),
        "extensions": {},
    }


def _address(address: Any) -> tuple[str, int] | None:
    return (str(address[0]), int(address[1])) if address else None


_LINES = {status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus}


def status_line(status: int) -> bytes:
    return _LINES.get(status) or b"HTTP/1.1 %d \r\n" % status


class _Clock:
    """The date of answers, which changes once a second."""

    def __init__(self) -> None:
        self.until = 0.0
        self.text = b""


_clock = _Clock()


def _date() -> bytes:
    now = asyncio.get_running_loop().time()
    if now >= _clock.until:
        _clock.text, _clock.until = formatdate(usegmt=True).encode(), now + 1.0
    return _clock.text


App: TypeAlias = Callable[[Event, Callable[[], Awaitable[Event]], Callable[[Event], Awaitable[None]]], Awaitable[None]]
