"""The server: an ASGI application with one endpoint, for Streamable HTTP and WebSocket.

    request ──▶ Access ──▶ validation ──┬──▶ HttpConnection.deliver          POST
                                        ├──▶ StreamReader.next, repeatedly   GET, until either side leaves
                                        ├──▶ ServerSocket or AsgiWebSocket   GET that is upgraded
                                        └──▶ HttpConnection.finish           DELETE

Decisions are made in `validation` and `streams`; this module only calls them. The app has a task for each connection,
which serves its agent, and one task that closes unused connections.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from accord.errors import INTERNAL_ERROR, ConnectionClosed
from accord.http.headers import CONNECTION_ID, EVENTS, JSON, NUMBERED, SESSION_ID
from accord.http.server import validation
from accord.http.server.access import Access
from accord.http.server.access_log import AccessRecord
from accord.http.server.asgi_websocket import AsgiWebSocket
from accord.http.server.connection import HttpConnection, StreamReader
from accord.http.server.hosting import Hosted, host_of
from accord.http.server.limits import ServerLimits
from accord.http.server.quota import Processes
from accord.http.server.request_body import RequestBody
from accord.http.server.room import Bodies
from accord.http.server.validation import Headers, Refusal
from accord.jsonrpc.messages import Answer, Call, Malformed, error_answer, parse
from accord.tasks import Tasks
from accord.transports.base import End, Transport
from accord.transports.closing import first_of

if TYPE_CHECKING:
    from accord.http.server.websocket import ServerSocket

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

OWN_SOCKET = "accord.socket"
"""The ASGI extension with which our own server hands over the socket itself, instead of an event for each frame."""

LOOK_EVERY = 5.0
"""Seconds between two checks for unused connections."""

ENDED = 1_000
"""Ended connections whose reason is remembered, so that their clients can be told."""

ENDING, AT_ONCE = 5.0, 0.5
"""Seconds that agents have to end after their connections: normally, and when hurried."""

Result = TypeVar("Result")

log = logging.getLogger("accord.http")


def app(
    hosted: Hosted,
    *,
    path: str = "/acp",
    access: Access | None = None,
    limits: ServerLimits | None = None,
) -> App:
    """Create an ASGI application that serves an agent, for any ASGI server or as part of a larger application.

        agent = accord.Agent("echo")
        application = accord.http.app(agent)

    `hosted` is an `Agent`, or a command that is started as a process for each connection. `path` is the endpoint.
    `access` are the access rules; the default allows every client, but no browser pages. `limits` bounds sizes, counts
    and times.
    """
    return App(hosted, path=path, access=access, limits=limits)


class App:
    """An ASGI application with one endpoint. If the server sends no `lifespan` events, call `close` at the end."""

    def __init__(
        self,
        hosted: Hosted,
        *,
        path: str = "/acp",
        access: Access | None = None,
        limits: ServerLimits | None = None,
    ) -> None:
        self.host = host_of(hosted)
        self.path = path
        self._access = access or Access()
        self.limits = limits or ServerLimits()
        self._processes = Processes(self.limits.processes, self.limits.owner_processes)
        self._bodies = Bodies(self.limits.bodies)
        self._links: dict[str, HttpConnection] = {}
        self._ended: dict[tuple[str, str], str] = {}
        """Why the latest agents ended by themselves, by the owner and the id of their connection."""
        self._sockets: set[ServerSocket | AsgiWebSocket] = set()
        self._tasks: Tasks | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closed = False
        self._hurried = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "websocket":
                await self._websocket(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case _:
                raise NotImplementedError(
                    f"unsupported ASGI scope type {scope['type']!r}: it must be http, websocket or lifespan"
                )

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})

    async def close(self, grace: float = 0.0) -> None:
        """Accept no more connections and end the open ones.

        Each ends when its prompts were answered, at the latest after `grace` seconds.
        """
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
        await asyncio.gather(*(self._end(link, grace) for link in self._open()))
        if self._tasks is not None:
            await self._unless_hurried(asyncio.gather(*self._tasks.running, return_exceptions=True), ENDING)
            await self._tasks.end(AT_ONCE if self._hurried.is_set() else ENDING)

    def hurry(self) -> None:
        """End a running `close` at once, without its grace."""
        self._hurried.set()

    def _open(self) -> list[HttpConnection | ServerSocket | AsgiWebSocket]:
        return [*self._links.values(), *self._sockets]

    async def _end(self, link: HttpConnection | ServerSocket | AsgiWebSocket, grace: float) -> None:
        if link.ledger.is_busy:
            idle = asyncio.Event()
            link.ledger.on_idle = idle.set
            await self._unless_hurried(idle.wait(), grace)
        await self._unless_hurried(link.flush(), min(grace, ENDING))
        link.finish(End("closed"), going_away=True)

    async def _unless_hurried(self, awaitable: Awaitable[object], seconds: float) -> None:
        await first_of(awaitable, self._hurried.wait(), seconds=seconds)

    @property
    def connections(self) -> int:
        """How many protocol connections are open."""
        return len(self._links) + len(self._sockets)

    # Streamable HTTP

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        record = AccessRecord(scope["method"])
        headers = _headers(scope)
        body = RequestBody(headers, receive, self.limits, self._bodies)
        try:
            if _path(scope) == "/healthz":
                await self._tell_health(record, send)
                return
            self._check_path(scope)
            record.user = owner = self._access.owner(headers)
            match validation.method(scope["method"]):
                case "POST":
                    await self._post(record, headers, body, receive, send)
                case "GET":
                    await self._get(record, headers, receive, send)
                case _:
                    self._delete(record, headers, owner)
                    await _respond(record, send, 202)
        except Refusal as refusal:
            await _refuse(record, send, refusal, body)
        finally:
            body.release()
            record.received = body.size
            record.end()

    async def _tell_health(self, record: AccessRecord, send: Send) -> None:
        if record.method not in ("GET", "HEAD"):
            raise Refusal(405, "method not allowed; use GET or HEAD")
        if self._closed:
            raise Refusal(503, "the server is shutting down")
        await _respond(record, send, 200, b"ok")

    def _check_path(self, scope: Scope) -> None:
        if _path(scope).rstrip("/") != self.path.rstrip("/"):
            raise Refusal(404, f"not found; the endpoint is {self.path}")

    async def _post(
        self, record: AccessRecord, headers: Headers, body: RequestBody, receive: Receive, send: Send
    ) -> None:
        validation.media_type(headers)
        if headers.get(CONNECTION_ID):
            self._link(record, headers, record.user)  # a body for no connection is not read into memory
        data = await body.read()
        message = parse(data)
        if isinstance(message, Malformed):
            if not message.answerable and headers.get(CONNECTION_ID):
                link = self._link(record, headers, record.user)
                await body.held_during(link.deliver_wrong_answer(message, data))
            raise validation.malformed(message)
        if validation.opens(message, headers):
            assert isinstance(message, Call)
            await self._initialize(record, message, data, body, receive, send)
            return
        link = self._link(record, headers, record.user)
        number = validation.number(headers)
        if number is None or not link.once.has(number):  # otherwise the client repeats it because our answer was lost
            posted = validation.posted(message, headers, link.outbound)
            if link.takes_now:
                await link.deliver(posted, data, number)
            else:
                await _unless_gone(receive, body.held_during(link.deliver(posted, data, number)))
        await _respond(record, send, 202)

    async def _initialize(
        self, record: AccessRecord, call: Call, data: bytes, body: RequestBody, receive: Receive, send: Send
    ) -> None:
        link = HttpConnection(self._new_id(record.user), record.user, self.limits)
        record.connection = link.id
        self._links[link.id] = link
        self._serve(link, link.owner, link.id)
        try:
            answer = await _unless_gone(receive, body.held_during(link.initialize(call, data)))
        except Refusal as refusal:
            link.finish(End("peer_closed"))
            problem = error_answer(call.id, INTERNAL_ERROR, refusal.problem)
            raise Refusal(refusal.status, refusal.problem, problem) from None
        except BaseException:
            link.finish(End("peer_closed"))
            raise
        if _is_error(answer):
            link.finish(End("closed"))  # nothing was opened; the client may send another `initialize`
            await _respond(record, send, 200, answer, media_type=JSON)
            return
        told = (CONNECTION_ID, link.id), (NUMBERED, "connection")
        await _respond(record, send, 200, answer, *told, media_type=JSON)

    async def _get(self, record: AccessRecord, headers: Headers, receive: Receive, send: Send) -> None:
        validation.accepts_events(headers)
        link = self._link(record, headers, record.user)
        reader = link.read(headers.get(SESSION_ID) or None, validation.last_event(headers))
        record.status = 200
        try:
            await first_of(self._write(record, reader, send), _gone(receive))
        finally:
            reader.leave()

    async def _write(self, record: AccessRecord, reader: StreamReader, send: Send) -> None:
        # X-Accel-Buffering turns off the buffering of nginx, which would hold the stream until it ends.
        headers = _pairs(("content-type", EVENTS), ("cache-control", "no-cache"), ("x-accel-buffering", "no"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        # Many servers send the headers only with the first bytes of the body.
        await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
        while (written := await reader.next(self.limits.keepalive)) is not None:
            await send({"type": "http.response.body", "body": written, "more_body": True})
            record.sent += len(written)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _delete(self, record: AccessRecord, headers: Headers, owner: str) -> None:
        link = self._link(record, headers, owner)
        del self._links[link.id]
        link.finish(End("peer_closed"))

    def _link(self, record: AccessRecord, headers: Headers, owner: str) -> HttpConnection:
        connection_id = validation.connection_id(headers)
        link = self._links.get(connection_id)
        if link is None or link.owner != owner or link.end is not None:
            raise Refusal(404, self._ended.get((owner, connection_id), "no such connection"))
        record.connection = link.id
        return link

    # WebSocket

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        record = AccessRecord("WEBSOCKET")
        await receive()  # websocket.connect
        try:
            self._check_path(scope)
            record.user = owner = self._access.owner(_headers(scope))
            record.connection = self._new_id(owner)
        except Refusal as refusal:
            record.status = refusal.status
            record.end()
            await _refuse_socket(scope, send, refusal)
            return
        accepted = {"type": "websocket.accept", "headers": _pairs((CONNECTION_ID, record.connection))}
        await send(accepted)
        take = scope.get("extensions", {}).get(OWN_SOCKET)
        link: ServerSocket | AsgiWebSocket
        link = take(self.limits) if take else AsgiWebSocket(receive, send, self.limits)
        self._sockets.add(link)
        try:
            self._serve(link, owner, record.connection)
            await link.run()
        finally:
            self._sockets.discard(link)
            record.status, record.received, record.sent = link.code, link.received, link.sent
            record.end()

    # The agents

    def _new_id(self, owner: str) -> str:
        if self._closed:
            raise Refusal(503, "the server is shutting down")
        if self.connections >= self.limits.connections:
            raise Refusal(
                503, f"too many connections: at most {self.limits.connections:,} are allowed; try again later"
            )
        if self.host.starts_processes:
            self._processes.check(owner)
        return secrets.token_urlsafe(24)

    def _serve(self, link: Transport, owner: str, connection_id: str) -> None:
        if self._tasks is None:
            self._tasks = Tasks(asyncio.get_running_loop())
            self._looking = asyncio.create_task(self._look(), name="accord http: look for unused connections")
        self._processes.begin(owner)
        self._tasks.start(self._serve_one(link, owner, connection_id), f"accord connection {connection_id[:8]}")

    async def _serve_one(self, link: Transport, owner: str, connection_id: str) -> None:
        try:
            end = await self.host.serve(link, owner)
            if end is not None:
                log.info("connection %s: the agent ended: %s", connection_id[:8], end.error())
        except ConnectionClosed as closed:
            log.error("connection %s: %s", connection_id[:8], closed)  # noqa: TRY400
        except Exception:
            log.exception("connection %s: serving failed", connection_id[:8])
        finally:
            self._processes.end(owner)
            await link.close(0)
            if isinstance(link, HttpConnection):
                self._note_the_end(link)

    def _note_the_end(self, link: HttpConnection) -> None:
        self._links.pop(link.id, None)
        if link.why:
            self._ended[link.owner, link.id] = link.why
            if len(self._ended) > ENDED:
                del self._ended[next(iter(self._ended))]

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self._close_unused(asyncio.get_running_loop().time())

    def _close_unused(self, now: float) -> None:
        for link in self._open():
            if (problem := link.problem(now)) is not None:
                log.info("a connection was closed: %s", problem)
                if isinstance(link, HttpConnection):
                    self._links.pop(link.id, None)
                link.finish(End("unresponsive", problem))


def _headers(scope: Scope) -> dict[str, str]:
    """The headers with names in lower case.

    Repeated headers are joined (RFC 9110, 5.3), so that no proxy in front of us can see another value than we do.
    """
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _path(scope: Scope) -> str:
    """The path relative to the mount point."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root) else path


def _pairs(*headers: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers]


def _is_error(answer: bytes) -> bool:
    message = parse(answer)
    return isinstance(message, Answer) and message.error is not None


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _unless_gone(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """Await `work`, but cancel it when the client disconnects."""
    doing = asyncio.ensure_future(work)
    try:
        await first_of(doing, _gone(receive))
        if doing.cancelled():
            raise Refusal(400, "the client closed the connection")
        return doing.result()
    finally:
        del doing  # its error refers to this frame: the cycle would keep the body until the next garbage collection


async def _respond(
    record: AccessRecord,
    send: Send,
    status: int,
    body: bytes = b"",
    *headers: tuple[str, str],
    media_type: str = "text/plain",
    before_its_end: Callable[[], Awaitable[None]] | None = None,
) -> None:
    told = [*headers, ("content-length", str(len(body)))]
    if body:
        told.append(("content-type", media_type))
    record.status, record.sent = status, len(body)
    await send({"type": "http.response.start", "status": status, "headers": _pairs(*told)})
    if before_its_end is not None:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await before_its_end()
        body = b""
    await send({"type": "http.response.body", "body": body})


async def _refuse(record: AccessRecord, send: Send, refusal: Refusal, body: RequestBody) -> None:
    log.info("%s refused: %s %s", record.method, refusal.status, refusal.problem)
    more: list[tuple[str, str]] = []
    if refusal.status == 401:
        more.append(("www-authenticate", "Bearer"))
    if refusal.status == 405:
        more.append(("allow", "POST, GET, DELETE"))
    if refusal.status in (429, 503):
        more.append(("retry-after", "5"))
    told, media_type = (refusal.problem.encode(), "text/plain") if refusal.body is None else (refusal.body, JSON)
    unread = None if body.is_over or record.method != "POST" else body.pass_over
    await _respond(record, send, refusal.status, told, *more, media_type=media_type, before_its_end=unread)


async def _refuse_socket(scope: Scope, send: Send, refusal: Refusal) -> None:
    if "websocket.http.response" in scope.get("extensions", {}):
        headers = _pairs(("content-type", "text/plain"))
        await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": refusal.problem.encode()})
    else:
        await send({"type": "websocket.close"})  # before the accept, servers turn this into a 403
