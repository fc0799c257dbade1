"""The server: an ASGI application with one endpoint, for Streamable HTTP and WebSocket.

    request ──▶ access ──▶ judging ──┬──▶ HttpLink.deliver     POST
                                     ├──▶ Reader.next, ...     GET, until either side leaves
                                     ├──▶ WebSocketLink        GET that is upgraded
                                     └──▶ HttpLink.finish      DELETE

Everything here is short on purpose: what is decided is decided in `judging` and `outbound`. The app owns a task for
each connection, in which its agent is served, and one that looks now and then for connections that nobody uses.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from accord.errors import INTERNAL_ERROR, ConnectionClosed
from accord.http import judging
from accord.http.access import Access
from accord.http.hosting import Hosted, host_of
from accord.http.judging import Headers, Refusal
from accord.http.link import KEEPALIVE, HttpLink, Reader
from accord.http.socket_link import WebSocketLink
from accord.http.wire import CONNECTION_ID, EVENTS, JSON, NUMBERED, SESSION_ID
from accord.jsonrpc.messages import Call, error_answer
from accord.tasks import Tasks
from accord.transports.base import End, Transport

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_LIMIT = 16 * 1024 * 1024
"""Bytes that a message may have."""

CONNECTIONS = 10_000
"""Connections that are open at the same time."""

LOOK_EVERY = 5.0
"""Seconds between two looks for connections that nobody uses."""

log = logging.getLogger("accord.http")


def app(
    hosted: Hosted,
    *,
    path: str = "/acp",
    access: Access | None = None,
    limit: int = BODY_LIMIT,
    connections: int = CONNECTIONS,
    keepalive: float = KEEPALIVE,
) -> App:
    """An agent as an ASGI application, for a server of yours or as a part of a larger application.

        agent = accord.Agent("echo")
        application = accord.http.app(agent)

    `hosted` is an `Agent`, or a command of which a process is started for each connection. `access` says who may come
    in: from everywhere, without one; but no pages of browsers, as no `origins` are named.
    """
    return App(hosted, path=path, access=access, limit=limit, connections=connections, keepalive=keepalive)


class App:
    """One endpoint, and its connections. Where nobody sends `lifespan` events, `close` it in the end."""

    def __init__(
        self,
        hosted: Hosted,
        *,
        path: str = "/acp",
        access: Access | None = None,
        limit: int = BODY_LIMIT,
        connections: int = CONNECTIONS,
        keepalive: float = KEEPALIVE,
    ) -> None:
        self.host = host_of(hosted)
        self.path = path
        self._access = access or Access()
        self._limit = limit
        self._most = connections
        self._keepalive = keepalive
        self._links: dict[str, HttpLink] = {}
        self._sockets: set[WebSocketLink] = set()
        self._tasks: Tasks | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "websocket":
                await self._websocket(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case _:
                raise NotImplementedError(f"ASGI scopes of type {scope['type']}")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})

    async def close(self, grace: float = 5.0) -> None:
        """End all connections, and take no more."""
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
        for socket in list(self._sockets):
            socket.finish(End("closed"))
        for link in list(self._links.values()):
            link.finish(End("closed"))
        if self._tasks is not None:
            if self._tasks.running:
                await asyncio.wait(self._tasks.running, timeout=grace)
            await self._tasks.end(grace)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._links) + len(self._sockets)

    # Streamable HTTP

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)
        try:
            if _path(scope) == "/healthz":
                await _respond(send, 200, b"ok")
                return
            self._check_path(scope)
            owner = self._access.owner(headers)
            match judging.method(scope["method"]):
                case "POST":
                    await self._post(headers, owner, receive, send)
                case "GET":
                    await self._get(headers, owner, receive, send)
                case _:
                    self._delete(headers, owner)
                    await _respond(send, 202)
        except Refusal as refusal:
            log.info("%s refused: %s %s", scope["method"], refusal.status, refusal.problem)
            await _refuse(send, refusal)

    def _check_path(self, scope: Scope) -> None:
        if _path(scope).rstrip("/") != self.path.rstrip("/"):
            raise Refusal(404, "nothing is here")

    async def _post(self, headers: Headers, owner: str, receive: Receive, send: Send) -> None:
        judging.media_type(headers)
        body = await self._body(headers, receive)
        message = judging.message_of(body)
        if judging.opens(message, headers):
            assert isinstance(message, Call)
            await self._initialize(message, body, owner, send)
            return
        link = self._link(headers, owner)
        await link.deliver(judging.posted(message, headers, link.outbound), body)
        await _respond(send, 202)

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._limit:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "the body is not whole")
            part = message.get("body", b"")
            parts.append(part)
            size += len(part)
            if size > self._limit:
                raise self._too_large()
            if not message.get("more_body"):
                return b"".join(parts)

    def _too_large(self) -> Refusal:
        return Refusal(413, f"a message has at most {self._limit:,} bytes")

    async def _initialize(self, call: Call, body: bytes, owner: str, send: Send) -> None:
        link = HttpLink(self._new_id(), owner)
        self._links[link.id] = link
        self._serve(link, owner, link.id)
        try:
            answer = await link.initialize(call, body)
        except Refusal as refusal:
            problem = error_answer(call.id, INTERNAL_ERROR, refusal.problem)
            raise Refusal(refusal.status, refusal.problem, problem) from None
        except BaseException:
            link.finish(End("peer_closed"))
            raise
        await _respond(send, 200, answer, (CONNECTION_ID, link.id), (NUMBERED, "connection"), media_type=JSON)

    async def _get(self, headers: Headers, owner: str, receive: Receive, send: Send) -> None:
        judging.accepts_events(headers)
        link = self._link(headers, owner)
        reader = link.read(headers.get(SESSION_ID) or None, judging.last_event(headers))
        writing = asyncio.ensure_future(self._write(reader, send))
        watching = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait([writing, watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            reader.leave()
            for half in (writing, watching):
                half.cancel()
            await asyncio.gather(writing, watching, return_exceptions=True)

    async def _write(self, reader: Reader, send: Send) -> None:
        # Proxies that buffer would keep a stream until it ends: X-Accel-Buffering is nginx's switch for that.
        headers = _pairs(("content-type", EVENTS), ("cache-control", "no-cache"), ("x-accel-buffering", "no"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        # Servers keep the headers back until there is a body.
        await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
        while (written := await reader.next(self._keepalive)) is not None:
            await send({"type": "http.response.body", "body": written, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _delete(self, headers: Headers, owner: str) -> None:
        link = self._link(headers, owner)
        del self._links[link.id]
        link.finish(End("peer_closed"))

    def _link(self, headers: Headers, owner: str) -> HttpLink:
        link = self._links.get(judging.connection_id(headers))
        if link is None or link.owner != owner or link.end is not None:
            raise Refusal(404, "no such connection")
        return link

    # WebSocket

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        try:
            self._check_path(scope)
            owner = self._access.owner(_headers(scope))
            connection_id = self._new_id()
        except Refusal as refusal:
            log.info("WebSocket refused: %s %s", refusal.status, refusal.problem)
            await _refuse_socket(scope, send, refusal)
            return
        accepted = {"type": "websocket.accept", "headers": _pairs((CONNECTION_ID, connection_id))}
        await send(accepted)
        link = WebSocketLink(receive, send)
        self._sockets.add(link)
        try:
            self._serve(link, owner, connection_id)
            await link.run()
        finally:
            self._sockets.discard(link)

    # The agents

    def _new_id(self) -> str:
        if self._closed:
            raise Refusal(503, "the server is ending")
        if self.connections >= self._most:
            raise Refusal(503, "there are too many connections")
        return secrets.token_urlsafe(24)

    def _serve(self, link: Transport, owner: str, connection_id: str) -> None:
        if self._tasks is None:
            self._tasks = Tasks(asyncio.get_running_loop())
            self._looking = asyncio.create_task(self._look(), name="accord http: look for unused connections")
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
            await link.close(0)
            self._links.pop(connection_id, None)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self._give_up_unused(asyncio.get_running_loop().time())

    def _give_up_unused(self, now: float) -> None:
        for link in list(self._links.values()):
            if (problem := link.problem(now)) is not None:
                log.warning("connection %s given up: %s", link.id[:8], problem)
                self._links.pop(link.id, None)
                link.finish(End("unresponsive", problem))


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("utf-8", "replace") for name, value in scope["headers"]}


def _path(scope: Scope) -> str:
    """The path below where we are mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root) else path


def _pairs(*headers: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers]


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _respond(
    send: Send, status: int, body: bytes = b"", *headers: tuple[str, str], media_type: str = "text/plain"
) -> None:
    told = [*headers, ("content-length", str(len(body)))]
    if body:
        told.append(("content-type", media_type))
    await send({"type": "http.response.start", "status": status, "headers": _pairs(*told)})
    await send({"type": "http.response.body", "body": body})


async def _refuse(send: Send, refusal: Refusal) -> None:
    more: list[tuple[str, str]] = []
    if refusal.status == 401:
        more.append(("www-authenticate", "Bearer"))
    if refusal.status == 405:
        more.append(("allow", "POST, GET, DELETE"))
    if refusal.body is not None:
        await _respond(send, refusal.status, refusal.body, *more, media_type=JSON)
    else:
        await _respond(send, refusal.status, refusal.problem.encode(), *more)


async def _refuse_socket(scope: Scope, send: Send, refusal: Refusal) -> None:
    if "websocket.http.response" in scope.get("extensions", {}):
        headers = _pairs(("content-type", "text/plain"))
        await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": refusal.problem.encode()})
    else:
        await send({"type": "websocket.close"})  # before it is accepted, servers make a 403 of it
