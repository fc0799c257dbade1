"""Forwards requests to the host with the agent, and its answers back.

The bytes of an event stream pass unread. A slow client slows the agent through the forwarding host: the next bytes are
read from the peer only when the last ones were written, and the peer then buffers the rest, as for its own clients.

A request is cancelled when its client has disconnected. Most are answered within milliseconds. For these, no task is
started that only checks for a disconnect: the first check comes later.

The application of the peer port: requests that other hosts have forwarded, checked and passed to the application.

It checks no tokens: the host that the client has reached did, and signed for the owner. The application gets a request
that is built only from what was signed.

A peer that asks for the health of this host, with a signature, gets its clock. Without one the answer only shows that
the process is alive, for probes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from urllib.parse import unquote

import msgspec

from accord._internal.tasks import first_of
from accord.errors import ConnectionClosed
from accord.hosts.peers import DRAIN, END, HEALTH, METRICS, PATH, REVOKE, SESSIONS, UNDRAIN, PeerHost
from accord.hosts.signed_forward import (
    WEBSOCKET,
    BadSignature,
    SignedForward,
    Signer,
    TakenNonces,
    forwarded_headers,
)
from accord.http.client.client_socket import Broken, Response
from accord.http.headers import CONNECTION_ID, NUMBERED
from accord.http.server.access_log import AccessRecord
from accord.http.server.app import App
from accord.http.server.asgi import Receive, Scope, Send, gone, headers_of, path_of
from accord.http.server.cluster import FORWARDED, HOP, ForwardedRequest, Signed
from accord.http.server.http_connection import Responder
from accord.http.server.validation import Refusal
from accord.transports import End, Transport
from accord.transports.websocket_client import WebSocketTransport
from accord.transports.wrapped_transport import relay

COMMANDS = {SESSIONS: "GET", DRAIN: "POST", UNDRAIN: "POST", END: "POST", REVOKE: "POST"}
"""The requests of an operator at the peer port, and their methods."""

LOOKS_AFTER = 0.5
"""Seconds until it is noticed that the client has left."""


class CancelOnDisconnect:
    """Cancels the block when the client of this request has disconnected, and raises Refusal then."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._patience = asyncio.timeout(None)
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._later = self._loop.call_later(LOOKS_AFTER, self._watch)
        await self._patience.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._later.cancel()
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
        try:
            await self._patience.__aexit__(kind, error, trace)
        except TimeoutError:
            raise Refusal(400, "the client closed the connection") from None

    def _watch(self) -> None:
        self._watching = self._loop.create_task(gone(self._receive), name="accord hosts: watch a client")
        self._watching.add_done_callback(self._has_left)

    def _has_left(self, _: asyncio.Task[None]) -> None:
        if self._watching is not None:  # the block has not ended
            self._patience.reschedule(self._loop.time())


MOST_ANSWER = 64 * 1024 * 1024
"""The maximum size of an answer that is not a stream; it holds at most one message."""

RETURNED = frozenset({"cache-control", "x-accel-buffering", CONNECTION_ID, NUMBERED, "retry-after", "allow"})
"""The headers of an answer that the client gets, besides the content type, which the responder sets."""


class Forwarder:
    """Forwards requests of this host's clients to one peer."""

    def __init__(self, peer: PeerHost, ending: asyncio.Event, placed: Callable[[], None]) -> None:
        self.id = peer.host.id
        """The id of the peer."""
        self._peer = peer
        self._ending = ending
        """Set when this host ends, so that the streams through it do."""
        self._placed = placed

    async def forward(self, request: ForwardedRequest) -> None:
        """Answer this request as the peer does; raises Refusal if it does not answer."""
        async with CancelOnDisconnect(request.receive):
            response = await self._ask(request)
        await self._pass(response, request)

    async def opens(self, request: ForwardedRequest) -> bool:
        """Let the peer answer this `initialize`; returns False if it cannot, so that another host should.

        If the client has disconnected meanwhile, the connection that was opened is ended.
        """
        leaving = asyncio.ensure_future(gone(request.receive))
        try:
            response = await self._ask(request)
            if response.status == 503:
                await response.close()
                return False
        except Refusal:
            return False
        finally:
            has_left = leaving.done()
            leaving.cancel()
        self._placed()
        if has_left:
            await self._end(response, request)
            raise Refusal(400, "the client closed the connection")
        await self._pass(response, request)
        return True

    async def _end(self, response: Response, request: ForwardedRequest) -> None:
        await response.close()
        if connection := response.header(CONNECTION_ID):
            ending = request._replace(method="DELETE", headers={CONNECTION_ID: connection}, body=b"")
            await (await self._ask(ending)).close()

    async def relay(self, link: Transport, owner: str) -> End | None:
        """Serve a WebSocket with an agent of the peer; returns how it ended, or None if the client ended first."""
        try:
            signature = await self._peer.signature(WEBSOCKET, {}, owner)
        except Refusal as refusal:
            link.why = refusal.problem
            return End("unresponsive", refusal.problem)
        self._placed()
        tls = self._peer.tls
        scheme = "ws" if tls is None else "wss"
        far = WebSocketTransport(
            f"{scheme}://{self._peer.host.address}{PATH}", headers={HOP: signature}, tls=tls, proxy=False
        )
        first, end = await relay(link, far)
        if first is far and not link.why:
            link.why = str(ConnectionClosed(end.reason))
        return end if first is far else None

    async def _ask(self, request: ForwardedRequest) -> Response:
        return await self._peer.request(
            request.method, request.headers, request.owner, request.body, observes=request.observes
        )

    async def _pass(self, response: Response, request: ForwardedRequest) -> None:
        headers = returned_headers(response.headers)
        media_type = response.header("content-type") or "text/plain"
        record = request.responder.record
        record.connection = response.header(CONNECTION_ID) or record.connection
        record.via = self.id
        if request.method == "GET" and response.status == 200:
            await self._stream(response, headers, request)
            return
        body = await self._peer.unless_silent(response.body(MOST_ANSWER))
        await request.responder.respond(response.status, body, *headers, media_type=media_type)

    async def _stream(self, response: Response, headers: list[tuple[str, str]], request: ForwardedRequest) -> None:
        responder = request.responder
        try:
            await responder.begin_stream(*headers)
            passing = _pass_bytes(response, request)
            await first_of(passing, gone(request.receive), self._peer.silent.wait(), self._ending.wait())
        finally:
            await response.close()
        await responder.end_stream()


async def _pass_bytes(response: Response, request: ForwardedRequest) -> None:
    try:
        async for chunk in response.chunks:
            await request.responder.pass_on(chunk)
    except Broken:
        return  # the peer has ended: so does the stream, and the client resumes it


def returned_headers(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the headers of a peer's answer that the client gets."""
    return [(name, value) for name, value in headers if name.lower() in RETURNED]


class PeerApp:
    """Passes signed requests on, for the owner that the signature names."""

    def __init__(self, app: App, path: str, signer: Signer) -> None:
        self._app = app
        self._path = path
        self._signer = signer
        self._taken = TakenNonces()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a question of a peer, or pass a signed request on."""
        path = path_of(scope) if scope["type"] == "http" else ""
        headers = headers_of(scope)
        if path == HEALTH and HOP not in headers:
            await _answer(send, 200, "ok")
            return
        method = WEBSOCKET if scope["type"] == "websocket" else scope["method"]
        target: bytes = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        try:
            forward = self._signer.verify(headers.get(HOP, ""), method, target.decode("latin-1"), headers)
            if path == HEALTH:  # a replayed request gets nothing that the peer did not get
                await _answer(send, 200, self._signer.sign_clock(time.monotonic(), forward))
                return
            self._taken.take(forward, time.monotonic())
        except BadSignature as bad:
            await _refuse(scope, send, bad)
            return
        if path == METRICS:
            await _answer(send, 200, self._app.metrics_text())
            return
        if path in COMMANDS and method == COMMANDS[path]:
            await _answer(send, 200, await self._administer(path, forward.owner, scope["query_string"]))
            return
        await self._app(self._signed_scope(scope, forward, headers), receive, send)

    async def _administer(self, path: str, owner: str, query: bytes) -> str:
        """Execute an operator's command; returns the open sessions, or how many connections were ended, as JSON."""
        app = self._app
        if path == SESSIONS:
            return msgspec.json.encode([session._asdict() for session in app.open_sessions()]).decode()
        if path == END:
            session = unquote(query.decode("latin-1"))
            return str(app.end_connections("an operator has ended this connection", session=session))
        if path == REVOKE:
            return str(app.end_connections("an operator has ended the connections of this owner", owner=owner))
        if app.cluster is not None:
            await app.cluster.drain("draining" if path == DRAIN else "live")
        return str(self._app.connections)

    def _signed_scope(self, scope: Scope, forward: SignedForward, headers: dict[str, str]) -> Scope:
        """Return the signed request, with this connection's functions to read it and to answer it."""
        fields = [*forwarded_headers(headers).items(), ("content-length", str(forward.length))]
        signed = Signed(forward.owner, forward.sender, forward.observes, forward.digest)
        return {
            **scope,
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in fields],
            "extensions": {**scope.get("extensions", {}), FORWARDED: signed},
        }


async def _refuse(scope: Scope, send: Send, bad: BadSignature) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close"})
    else:
        await _answer(send, bad.status, str(bad))


async def _answer(send: Send, status: int, text: str) -> None:
    more = [("retry-after", "1")] if status == 503 else []
    await Responder(AccessRecord("GET"), send).respond(status, text.encode(), *more)
