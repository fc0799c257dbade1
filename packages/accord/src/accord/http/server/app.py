"""The server: an ASGI application with one endpoint, for Streamable HTTP and WebSocket.

    request ──▶ Access ──▶ validation.read ──┬─ Opens ──▶ HttpConnection.initialize
                                             ├─ Posts ──▶ HttpConnection.deliver
                                             ├─ Reads ──▶ StreamReader.next, repeatedly, until either side leaves
                                             └─ Ends ───▶ HttpConnection.finish
    WebSocket ──▶ Access ──▶ ServerSocket or AsgiWebSocket

Decisions are made in `validation`, `calls` and `streams`; this module only acts on them. The app has a task for each
connection, which serves its agent, and one task that closes unused connections.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from accord._internal.tasks import LightEvent, Tasks, first_of
from accord.errors import INTERNAL_ERROR, AccordError, ConnectionClosed
from accord.http.headers import CONNECTION_ID, JSON, NUMBERED
from accord.http.server import validation
from accord.http.server.access import Access, cors_headers, is_preflight, preflight_headers
from accord.http.server.access_log import AccessRecord
from accord.http.server.agent_host import Host, Hosted
from accord.http.server.asgi import (
    OWN_REQUEST,
    OWN_SOCKET,
    Receive,
    Scope,
    Send,
    gone,
    header_pairs,
    headers_of,
    path_of,
)
from accord.http.server.cluster import (
    Cluster,
    ForwardedRequest,
    OpenSession,
    OtherHost,
    forward_request,
    is_forwarded,
    note_user,
    open_on_other_host,
    place_of_socket,
    signature_of,
)
from accord.http.server.http_connection import HttpConnection, Responder, StreamReader, with_connection_id
from accord.http.server.observer_transport import ObserverTransport
from accord.http.server.owner_quotas import OwnerGate, ProcessCounts, QuotaTransport, Use
from accord.http.server.request_body import BodyMemory, RequestBody
from accord.http.server.server_limits import Quotas, ServerLimits
from accord.http.server.tcp_connection import AsgiRequest
from accord.http.server.validation import AnswersBadly, Ends, Headers, Opens, Posts, Reads, Refusal
from accord.http.server.websocket_server import AsgiWebSocket, ServerSocket
from accord.jsonrpc.wire_messages import ResponseFrame, encode_error, parse
from accord.transports import End, Transport

if TYPE_CHECKING:
    from accord.metrics import ServerMetrics
    from accord.store import Store

LOOK_EVERY = 5.0
"""Seconds between two checks for unused connections."""

ENDED = 1_000
"""Ended connections whose reason is remembered for their clients."""

READY = "/readyz"
PROBES = "/healthz", READY
"""The paths for balancers and supervisors: whether the server lives, and whether it accepts new sessions."""

ENDING, AT_ONCE = 5.0, 0.5
"""Seconds that agents have to end after their connections: normally, and when hurried."""

PERIOD = 1.0
"""Seconds for which an answer is valid."""

PATIENCE = 2.0
"""Seconds that the store has to answer."""

Result = TypeVar("Result")

Link: TypeAlias = "HttpConnection | ServerSocket | AsgiWebSocket"
"""A connection of a client."""

log = logging.getLogger("accord.http")


def app(
    hosted: Hosted,
    *,
    path: str = "/acp",
    access: Access | None = None,
    limits: ServerLimits | None = None,
    quotas: Quotas | None = None,
) -> App:
    """Create an ASGI application that serves an agent, for any ASGI server or as part of a larger application.

        agent = accord.Agent("echo")
        application = accord.http.app(agent)

    `hosted` is an `Agent`, or a command that is started as a process for each connection. `path` is the endpoint.
    `access` are the access rules; the default allows every client, but no browser pages. `limits` bounds sizes, counts
    and times. `quotas` bound what each owner may use.
    """
    return App(hosted, path=path, access=access, limits=limits, quotas=quotas)


class App:
    """An ASGI application with one endpoint. If the server sends no `lifespan` events, call `close` at the end."""

    def __init__(
        self,
        hosted: Hosted,
        *,
        path: str = "/acp",
        access: Access | None = None,
        limits: ServerLimits | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        self.host = Host.of(hosted)
        """Serves each connection: the agent, or the command that starts one."""
        self.path = path
        """The endpoint."""
        self._access = access or Access()
        self.limits = limits or ServerLimits()
        """The limits on sizes, counts and times."""
        self.cluster: Cluster | None = None
        """The other hosts of this service; None for a single server."""
        self._store = None if self.host.store is None else StoreCheck(self.host.store)
        self.gate = None if quotas is None else OwnerGate(quotas)
        """Admits usage by each owner; None without quotas."""
        self._counts_turns = self.gate is not None and not self.host.count_turns(self.gate)
        """Whether turns are counted at the connections."""
        self._processes = ProcessCounts(self.limits.processes, self.limits.owner_processes)
        self._bodies = BodyMemory(self.limits.bodies)
        self._links: dict[str, HttpConnection] = {}
        self._ended: dict[tuple[str, str], str] = {}
        """Why the latest agents ended on their own, by the owner and the id of their connection."""
        self.ended = 0
        """How many connections have ended."""
        self._served: set[Transport] = set()
        """The connections with an agent here, and not on another host."""
        self._sockets: set[ServerSocket | AsgiWebSocket] = set()
        self._tasks: Tasks | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closed = False
        self._hurried = LightEvent()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, serve one WebSocket, or follow the server's life, as ASGI asks."""
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

        Each ends when its prompts were answered, within `grace` seconds.
        """
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
        if self.cluster is not None:
            await self.cluster.drain()
        await asyncio.gather(*(self._end(link, grace) for link in self._open()))
        await self._unless_hurried(self.host.close(grace), grace + ENDING)
        if self.cluster is not None:
            await self.cluster.leave()
        if self._tasks is not None:
            await self._unless_hurried(asyncio.gather(*self._tasks.running, return_exceptions=True), ENDING)
            await self._tasks.end(AT_ONCE if self._hurried.is_set() else ENDING)
        if self._store is not None:
            await self._store.close()

    def hurry(self) -> None:
        """End a running `close` at once, without its grace."""
        self._hurried.set()

    def end_unused(self, sender: str) -> None:
        """End the connections for which this host has forwarded `initialize`, and which no request has named since.

        This host no longer answers, so its clients may never have got the ids of these connections.
        """
        for link in list(self._links.values()):
            if link.opened_through == sender and not link.is_used:
                log.info("connection %s: the host that has opened it does not answer", link.id[:8])
                link.finish(End("peer_closed"))

    def end_all(self, why: str) -> None:
        """End all open connections at once, and give their clients this reason; new ones can be opened."""
        for link in self._open():
            link.why = link.why or why
            link.finish(End("closed"), going_away=True)

    def open_sessions(self) -> list[OpenSession]:
        """The sessions that are open on connections with an agent of this process."""
        return [
            OpenSession(session, link.owner, link.id, link.calls.is_busy)
            for link in self._open()
            if link in self._served
            for session in sorted(link.calls.open_sessions)
        ]

    def end_connections(self, why: str, *, session: str = "", owner: str = "") -> int:
        """End the connections with this session, or of this owner, at once; returns how many."""
        ending = [
            link
            for link in self._open()
            if link in self._served and (session in link.calls.open_sessions if session else link.owner == owner)
        ]
        for link in ending:
            link.why = link.why or why
            link.finish(End("closed"))
        return len(ending)

    def _open(self) -> list[Link]:
        return [*self._links.values(), *self._sockets]

    async def _end(self, link: Link, grace: float) -> None:
        if link.calls.is_busy:
            idle = LightEvent()
            link.calls.on_idle = idle.set
            await self._unless_hurried(idle.wait(), grace)
        await self._unless_hurried(link.flush(), min(grace, ENDING))
        link.finish(End("closed"), going_away=True)

    async def _unless_hurried(self, awaitable: Awaitable[object], seconds: float) -> None:
        await first_of(awaitable, self._hurried.wait(), seconds=seconds)

    @property
    def connections(self) -> int:
        """Return how many protocol connections are open."""
        return len(self._links) + len(self._sockets)

    def has(self, connection: str) -> bool:
        """Whether the connection with this id, the header `Acp-Connection-Id` of its requests, is open here."""
        return connection in self._links

    @property
    def running(self) -> int:
        """Return how many connections have an unanswered prompt."""
        return sum(link.calls.is_busy for link in self._open())

    # Streamable HTTP

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        record = AccessRecord(scope["method"], self._access.client(scope.get("client"), headers), path_of(scope))
        responder = Responder(record, send)
        own: AsgiRequest | None = scope.get("extensions", {}).get(OWN_REQUEST)
        signed = signature_of(scope)
        digest = None if signed is None else signed.digest
        body = RequestBody(headers, receive, self.limits, self._bodies, own, digest=digest)
        responder.more = cors_headers(self._access.admitted_origin(headers))
        try:
            if record.path in PROBES:
                await self._tell_health(responder)
                return
            if (metrics := self.host.metrics) is not None and record.path == metrics.path:
                record.user = self._access.owner(headers)
                await self._tell_metrics(metrics, responder)
                return
            self._check_path(scope)
            if is_preflight(scope["method"], headers):
                self._access.check_sender(headers)
                await responder.respond(200, b"", *preflight_headers(headers))
                return
            note_user(record, scope, headers, self._access)
            if self.gate is not None and record.method == "POST" and not is_forwarded(scope):
                await self.gate.spend(record.user)
            if self.cluster is not None and await forward_request(
                self.cluster, scope, headers, body, responder, receive
            ):
                return
            match await validation.read(scope["method"], headers, lambda: self._read_body(headers, body, record)):
                case Opens() as request:
                    if self.cluster is not None:
                        passed = ForwardedRequest("POST", headers, request.body, record.user, responder, receive)
                        if await open_on_other_host(self.cluster, scope, passed, is_shared=self.host.is_shared):
                            return
                    sender = "" if signed is None else signed.sender
                    await self._initialize(request, body, responder, receive, own, sender)
                case Posts() as request:
                    await self._deliver(request, body, responder, receive)
                case AnswersBadly() as request:
                    link = self._link(request.connection, record)
                    await body.held_during(link.deliver_wrong_answer(request))
                    raise request.refusal
                case Reads() as request:
                    await self._read(request, responder, receive, own)
                case Ends() as request:
                    await self._delete(request, responder)
        except Refusal as refusal:
            await responder.refuse(refusal, body)
        finally:
            body.release()
            record.received = body.size
            if not responder.is_streaming:
                self._note_request(record)

    def _note_request(self, record: AccessRecord) -> None:
        """Note that a request has ended."""
        record.end()
        if self.host.metrics is not None:
            self.host.metrics.note_request(record.status)

    async def _tell_health(self, responder: Responder) -> None:
        if responder.record.method not in ("GET", "HEAD"):
            raise Refusal(405, "method not allowed; use GET or HEAD")
        if self._closed:
            raise Refusal(503, "the server is shutting down")
        if responder.record.path == READY:
            if self.cluster is not None and self.cluster.problem:
                raise Refusal(503, self.cluster.problem)
            if self._store is not None and (problem := await self._store.problem()):
                raise Refusal(503, problem)
        await responder.respond(200, b"ok")

    async def _tell_metrics(self, metrics: ServerMetrics, responder: Responder) -> None:
        if responder.record.method not in ("GET", "HEAD"):
            raise Refusal(405, "method not allowed; use GET or HEAD")
        text = metrics.text()
        if self.cluster is not None:
            from accord.metrics.server_metrics import merged  # here, because a server without metrics loads none

            text = merged([text, *await self.cluster.metrics()])
        await responder.respond(200, text.encode(), media_type="text/plain; version=0.0.4; charset=utf-8")

    def metrics_text(self) -> str:
        """The figures of this process, for other processes of the same machine."""
        return "" if self.host.metrics is None else self.host.metrics.text()

    def _check_path(self, scope: Scope) -> None:
        if path_of(scope).rstrip("/") != self.path.rstrip("/"):
            raise Refusal(404, f"not found; the endpoint is {self.path}")

    async def _read_body(self, headers: Headers, body: RequestBody, record: AccessRecord) -> bytes:
        if connection := headers.get(CONNECTION_ID):
            self._link(connection, record)  # before the body is read: an unknown connection gets no memory
        return await body.read()

    async def _initialize(
        self,
        request: Opens,
        body: RequestBody,
        responder: Responder,
        receive: Receive,
        own: AsgiRequest | None,
        sender: str,
    ) -> None:
        record = responder.record
        identifier, use = await self._admitted(record.user)
        link = HttpConnection(identifier, record.user, self.limits)
        link.opened_through = sender
        link.observes = record.observes
        record.connection = link.id
        self._links[link.id] = link
        self._serve(link, record, use=use)
        try:
            answer = await _unless_gone(receive, body.held_during(link.initialize(request)))
        except Refusal as refusal:
            link.finish(End("peer_closed"))
            problem = encode_error(request.call.id, INTERNAL_ERROR, refusal.problem)
            raise Refusal(refusal.status, refusal.problem, problem) from None
        except BaseException:
            link.finish(End("peer_closed"))
            raise
        message = parse(answer)
        if isinstance(message, ResponseFrame) and message.error is not None:
            link.finish(End("closed"))  # nothing was opened; the client may send another `initialize`
            await responder.respond(200, answer, media_type=JSON)
            return
        if own is not None:  # a client that was not sent the id cannot use the connection
            own.on_leave(lambda is_sent: None if is_sent else link.finish(End("peer_closed")))
        headers = (CONNECTION_ID, link.id), (NUMBERED, "connection")
        await responder.respond(200, with_connection_id(message, answer, link.id), *headers, media_type=JSON)

    async def _deliver(self, request: Posts, body: RequestBody, responder: Responder, receive: Receive) -> None:
        link = self._link(request.connection, responder.record)
        if not link.has_taken(request):
            if link.takes_now:
                await link.deliver(request)
            else:
                await _unless_gone(receive, body.held_during(link.deliver(request)))
        await responder.respond(202)

    async def _read(self, request: Reads, responder: Responder, receive: Receive, own: AsgiRequest | None) -> None:
        reader = self._link(request.connection, responder.record).read(request.session, request.last)
        streaming = responder.stream(reader, self._note_request)
        responder.is_streaming = True
        # The reader leaves with the client: a message that is still taken for it would count as read, and put off the
        # end of its connection.
        if own is not None:
            own.on_leave(reader.leave)
            own.later = streaming
        else:
            await first_of(streaming, _left(receive, reader))

    async def _delete(self, request: Ends, responder: Responder) -> None:
        link = self._link(request.connection, responder.record)
        del self._links[link.id]
        link.finish(End("peer_closed"))
        await responder.respond(202)

    def _link(self, connection: str, record: AccessRecord) -> HttpConnection:
        """The open connection with this id, if it belongs to the request's user; raises Refusal."""
        link = self._links.get(connection)
        # An observer has its own connections: knowing the ids of others must not help it to use them.
        if link is None or (link.owner, link.observes) != (record.user, record.observes):
            raise Refusal(404, self._ended.get((record.user, connection), "no such connection"))
        if link.end is not None:  # the agent's remains are being removed
            raise Refusal(404, link.why or "no such connection")
        record.connection = link.id
        link.is_used = True
        return link

    # WebSocket

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        record = AccessRecord("WEBSOCKET", self._access.client(scope.get("client"), headers), path_of(scope))
        await receive()  # websocket.connect
        try:
            self._check_path(scope)
            note_user(record, scope, headers, self._access)
            owner = record.user
            shared = self.host.is_shared
            other = await place_of_socket(self.cluster, scope, owner, is_shared=shared)
            record.connection, use = await self._admitted(owner) if other is None else (other.id, None)
        except Refusal as refusal:
            record.status = refusal.status
            self._note_request(record)
            await _refuse_socket(scope, send, refusal)
            return
        accepted = {"type": "websocket.accept", "headers": header_pairs((CONNECTION_ID, record.connection))}
        await send(accepted)
        take = scope.get("extensions", {}).get(OWN_SOCKET)
        link: ServerSocket | AsgiWebSocket
        link = take(self.limits) if take else AsgiWebSocket(receive, send, self.limits)
        link.id, link.owner = record.connection, owner
        self._sockets.add(link)
        self._serve(link, record, other, use)
        if isinstance(link, AsgiWebSocket):
            await link.run()

    # The agents

    async def _admitted(self, owner: str) -> tuple[str, Use | None]:
        """Return the id of a new connection of this owner, and the resources to release at its end; raises Refusal."""
        if self.gate is None:
            return self._new_id(owner), None
        use = await self.gate.admit("connections", owner)
        try:
            return self._new_id(owner), use
        except BaseException:
            self.gate.release(use)
            raise

    def _new_id(self, owner: str) -> str:
        if self._closed:
            raise Refusal(503, "the server is shutting down")
        if self.cluster is not None and self.cluster.is_draining:
            raise Refusal(503, "this host is draining, and no other host can open a connection; try again later")
        if self.connections >= self.limits.connections:
            raise Refusal(
                503, f"too many connections: at most {self.limits.connections:,} are allowed; try again later"
            )
        if self.host.starts_processes:
            self._processes.check(owner)
        return secrets.token_urlsafe(24) if self.cluster is None else self.cluster.new_id()

    def _serve(self, link: Link, record: AccessRecord, other: OtherHost | None = None, use: Use | None = None) -> None:
        if self._tasks is None:
            self._tasks = Tasks(asyncio.get_running_loop())
            self._looking = asyncio.create_task(self._look(), name="accord http: look for unused connections")
        self._processes.begin(link.owner)
        seen = ObserverTransport(link) if record.observes else link
        if other is not None:
            serving = other.relay(seen, link.owner)
        else:
            self._served.add(link)
            guarded = self._guarded(seen, link.owner, is_http=isinstance(link, HttpConnection))
            serving = self.host.serve(guarded, link.owner)
        noted = None if isinstance(link, HttpConnection) else record
        self._tasks.start(self._serve_one(link, noted, serving, use), f"accord connection {link.id[:8]}")

    def _guarded(self, link: Transport, owner: str, *, is_http: bool) -> Transport:
        if self.gate is None or not self.gate.guards():
            return link
        return QuotaTransport(link, owner, self.gate, counts_messages=not is_http, counts_turns=self._counts_turns)

    async def _serve_one(
        self, link: Link, record: AccessRecord | None, serving: Coroutine[Any, Any, End | None], use: Use | None
    ) -> None:
        connection = link.id[:8]
        try:
            end = await serving
            if end is not None:
                log.info("connection %s: the agent ended: %s", connection, end.error())
        except ConnectionClosed as closed:
            log.error("connection %s: %s", connection, closed)  # noqa: TRY400
        except Exception:
            log.exception("connection %s: serving failed", connection)
        finally:
            self.ended += 1
            self._served.discard(link)
            self._processes.end(link.owner)
            if self.gate is not None:
                self.gate.release(use)
            await link.close(0)
            if isinstance(link, HttpConnection):
                self._note_the_end(link)
            elif record is not None:
                self._sockets.discard(link)
                record.status, record.received, record.sent = link.code, link.received, link.sent
                record.end()

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


class StoreCheck:
    """Asks the store of a served agent whether it can be read, for `/readyz`.

    Everyone may request `/readyz`, without a token. So the store is asked once for all requests within `PERIOD`. They
    learn only that it does not answer; its error, which may name machines and files, goes to the log.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asking: asyncio.Task[str] | None = None
        self._asked = 0.0
        self._logged = ""

    async def problem(self) -> str:
        """Return why sessions cannot be read now; empty if they can."""
        now = asyncio.get_running_loop().time()
        if self._asking is None or (self._asking.done() and now - self._asked > PERIOD):
            self._asked = now
            self._asking = asyncio.create_task(self._ask(), name="accord http: ask the store")
        return await asyncio.shield(self._asking)

    async def _ask(self) -> str:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._store.find("readyz")
        except (AccordError, TimeoutError) as error:
            problem = str(error) or f"it did not answer within {PATIENCE:g} seconds"
            if problem != self._logged:
                log.warning("not ready, because the session store does not answer: %s", problem)
            self._logged = problem
            return "the session store does not answer; the server's log says why"
        self._logged = ""
        return ""

    async def close(self) -> None:
        """Close the store if it was asked; an agent that still uses it opens it again."""
        if self._asking is not None:
            await asyncio.wait([self._asking])
            await self._store.close()


async def _left(receive: Receive, reader: StreamReader) -> None:
    await gone(receive)
    reader.leave()


async def _unless_gone(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """Await `work`, but cancel it when the client disconnects."""
    doing = asyncio.ensure_future(work)
    try:
        await first_of(doing, gone(receive))
        if doing.cancelled():
            raise Refusal(400, "the client closed the connection")
        return doing.result()
    finally:
        del doing  # its error refers to this frame: the cycle would keep the body until the next garbage collection


async def _refuse_socket(scope: Scope, send: Send, refusal: Refusal) -> None:
    if "websocket.http.response" in scope.get("extensions", {}):
        more = [("retry-after", str(refusal.retry_after))] if refusal.status in (429, 503) else []
        headers = header_pairs(("content-type", "text/plain"), *more)
        await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": refusal.problem.encode()})
    else:
        await send({"type": "websocket.close"})  # before the accept, servers turn this into a 403
