"""Typed messages over a connection: requests and notifications as classes, in both directions.

    handlers = Handlers()

    @handlers.on(PromptRequest)
    async def prompt(request: PromptRequest, context: Context) -> PromptResponse: ...

    async with Peer(transport, handlers, role="agent") as peer:
        await peer.request(ReadTextFileRequest(...))          # -> ReadTextFileResponse
        await peer.notify(SessionNotification(...))

Your own messages are classes like the built-in ones, and are handled and sent like them. A message without a class is
handled and sent by its method's name, in plain JSON values.

**Trace context.** A request of the peer may carry one in `_meta` (W3C Trace Context: `traceparent`, `tracestate`,
`baggage`). It is passed on to the requests that its handler makes, so that the spans of several programs form one
trace, even when this program records no spans.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TypeVar

import msgspec
from msgspec import Raw

from accord._internal.tasks import is_awaitable
from accord.engine.connection import Connection, Limits, Role
from accord.engine.incoming_requests import IncomingRequest
from accord.engine.outgoing_requests import PendingRequest, ResultReader
from accord.engine.routes import Routes, lane_of, plain_lane
from accord.errors import ConnectionClosed, DecodeError, ProtocolError
from accord.jsonrpc import wire_messages
from accord.jsonrpc.chunked_decode import Sliced
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import UnencodedNotification
from accord.schema import codec, legacy, v1
from accord.schema.base import Json, JsonObject, Notification, Request
from accord.schema.capabilities import Capabilities, CapabilityGuard, declared_in
from accord.schema.methods import may_be_empty, row_for
from accord.transports import Transport

if TYPE_CHECKING:
    from accord.engine.spans import Spans


KEYS = ("traceparent", "tracestate", "baggage")

_current: ContextVar[dict[str, str] | None] = ContextVar("accord_trace", default=None)


def trace_in(meta: JsonObject) -> dict[str, str]:
    """Return the trace context in the `_meta` of a message; empty if there is none."""
    return {key: value for key in KEYS if isinstance(value := meta.get(key), str)}


def carrying(trace: dict[str, str], handle: Callable[[], Any]) -> Any:
    """Call this with a trace context that is sent with the requests it makes, and with no others."""
    token = _current.set(trace)
    try:
        result = handle()
    finally:
        _current.reset(token)
    return _awaited_carrying(trace, result) if is_awaitable(result) else result


async def _awaited_carrying(trace: dict[str, str], result: Awaitable[Any]) -> Any:
    _current.set(trace)  # in the request's own task
    return await result


ResultT = TypeVar("ResultT")

_encode = codec.strict_encode


class _Outgoing:
    """How messages of one class are sent; made once for each class."""

    def __init__(self, cls: type[Request[Any] | Notification]) -> None:
        row = row_for(cls, "protocol")
        guard = CapabilityGuard(cls)
        self.method = row.name
        self.patient = issubclass(cls, Request) and cls.__patient__
        self.is_handshake = issubclass(cls, Request) and cls.__handshake__
        """Whether its answer declares the peer's capabilities: it comes once, and may have older names (`legacy`)."""
        strict = None if self.is_handshake or row.kind != "request" else codec.strict_decoder(row.result)
        self.reader = ResultReader(
            strict, partial(self._read, _with_older_names if self.is_handshake else codec.decode)
        )
        self.keeper = ResultReader(None, partial(self._read, codec.decode_keeping))
        """Keeps the unknown members of results."""
        self.is_plain = not codec.closed_words(cls)
        """Whether every value that can be encoded is valid, so that closed sets of words need no check."""
        self.guard = None if guard.is_open else guard
        self.guarded = guard.updates
        self.lane_of = lane_of(cls)
        self._result = row.result
        self._may_be_empty = may_be_empty(row.result)

    def _read(self, decode: Callable[[bytes | Raw, Any], Any], raw: bytes | Raw) -> Any:
        """The result in this JSON, as this function decodes it; raises ProtocolError."""
        try:
            is_text = self._may_be_empty and not isinstance(raw, Sliced)
            return decode(legacy.empty_result(bytes(raw)) if is_text else raw, self._result)
        except DecodeError as error:
            raise ProtocolError(f"{self.method}: the answer's result is invalid: {error}") from error


def _with_older_names(data: bytes | Raw, type: Any) -> Any:  # noqa: A002
    return codec.convert_keeping(legacy.capabilities_renamed(codec.loads(data)), type)


_outgoing: dict[type, _Outgoing] = {}


class RouteSource(Protocol):
    """A source of routes for a peer: `Handlers`, or an object of your own that routes without them."""

    def add_routes(self, routes: Routes, peer: Peer) -> None:
        """Add routes to those of a peer; they replace those of the same methods."""
        ...


class Peer:
    """The other side of a connection, typed: the low level on which everything else is built.

    Used as `async with Peer(...) as peer:`, it opens and closes the connection.
    """

    def __init__(
        self,
        transport: Transport,
        handlers: RouteSource | None = None,
        *,
        role: Role,
        unstable: bool = False,
        limits: Limits | None = None,
        debug: bool = False,
        spans: Spans | None = None,
        keep_unknown: bool = False,
    ) -> None:
        self.role: Role = role
        """The side that this end plays: `agent` or `client`."""
        self.unstable = unstable
        """Whether messages that the protocol only proposes may be sent without a capability for them."""
        self.keep_unknown = keep_unknown
        """Whether read values keep members that their types do not know, for a program that passes them on."""
        self._open_ways: dict[type, _Outgoing] = {}
        """How messages are sent that need no check of capabilities, or were checked before."""
        self.capabilities = Capabilities()
        self.spans = spans
        """Records a span for each request; None if nothing does."""
        self.home: object = None
        """The owner of the connection, for handlers that hold only the peer: the `AgentConnection` of an agent."""
        self._routes = Routes()
        if handlers is not None:
            handlers.add_routes(self._routes, self)
        self.connection = Connection(transport, self._routes, role=role, limits=limits, debug=debug)
        self._outgoing = self.connection.outgoing

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that the peer has declared; none before `initialize`."""
        return self._capabilities

    @capabilities.setter
    def capabilities(self, declared: Capabilities) -> None:
        self._capabilities = declared
        self._open_ways.clear()

    async def request(
        self,
        request: Request[ResultT],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        idle_timeout: float | None = None,
        force: bool = False,
    ) -> ResultT:
        """Send a request and return its typed result.

        Raises PeerError when the answer is an error, ProtocolError when its result is invalid, ConnectionClosed when
        the connection ends first, Timeout past a deadline, and CapabilityMissing, unless `force` is true, when the peer
        did not declare the capability that the request needs. Cancelling the caller cancels the request.
        """
        way = self._open_ways.get(request.__class__) or self._way(request, force=force)
        result: ResultT
        if self.spans is not None:
            result = await self._request_in_span(way, request, timeout, idle_timeout)
            return result
        pending = self._ask(way, request)
        if timeout is not None or idle_timeout is not None or pending.holding_up is not None:
            result = await self._outgoing.answer_to(pending, timeout, idle_timeout)
            return result
        # As `answer_to` does it: an ordinary request has no coroutine more.
        try:
            result = await pending.future
        except BaseException:
            self._outgoing.abandon(pending)
            raise
        return result

    async def _request_in_span(self, way: _Outgoing, request: Any, total: float | None, idle: float | None) -> Any:
        assert self.spans is not None
        with self.spans.asking(request, self.role) as (in_span, answered):
            result = await self._outgoing.answer_to(self._ask(way, in_span), total, idle)
            answered(result)
            return result

    def post(self, request: Request[ResultT], *, force: bool = False) -> PendingRequest[ResultT]:
        """Send a request now, and handle its answer later: see `PendingRequest`.

        Raises the errors of `request` that come before sending.
        """
        way = self._open_ways.get(request.__class__) or self._way(request, force=force)
        if self.spans is None:
            return self._ask(way, request)
        request, end_span = self.spans.sending(request, self.role)
        pending = self._ask(way, request)
        pending.end_span = end_span
        return pending

    def handle(self, handlers: RouteSource) -> None:
        """Add these handlers; they replace earlier ones for the same messages."""
        handlers.add_routes(self._routes, self)

    def handle_only(self, *handlers: RouteSource) -> None:
        """Replace all handlers by these; later ones go before earlier ones."""
        self._routes.clear()
        for source in handlers:
            source.add_routes(self._routes, self)

    def _way(self, message: Request[Any] | Notification, *, force: bool) -> _Outgoing:
        """Return how this message is sent; raises CapabilityMissing if it may not be."""
        cls = message.__class__
        way = _outgoing.get(cls)
        if way is None:
            way = _outgoing[cls] = _Outgoing(cls)
        if way.guard is not None and not force:
            way.guard.check(message, self._capabilities, unstable=self.unstable)
        if way.guard is None or not (way.guard.looks_at_fields or force):
            self._open_ways[cls] = way
        return way

    def _ask(self, way: _Outgoing, request: Any) -> PendingRequest[Any]:
        """Send this request now, with the trace context of the request that is being handled."""
        if (trace := _current.get()) is not None:
            request = msgspec.structs.replace(request, meta={**trace, **(request.meta or {})})
        return self._outgoing.send(
            way.method,
            request if way.is_plain else Raw(codec.encode(request)),
            way.lane_of(request),
            way.patient,
            way.keeper if self.keep_unknown else way.reader,
        )

    async def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Send a notification; waits while the peer does not read."""
        if self.tell(notification, force=force):
            await self.connection.breathe()

    def tell(self, notification: Notification, *, force: bool = False) -> bool:
        """`notify` without waiting. Returns True if the sender should `breathe` before it sends more."""
        way = self._open_ways.get(notification.__class__)
        if way is None or (way.guarded and notification.update.__class__ in way.guarded):  # type: ignore[attr-defined]
            way = self._way(notification, force=force)
        try:
            frame = _encode(UnencodedNotification(way.method, notification))
        except codec.ENCODE_REFUSALS:
            frame = wire_messages.encode_notification(way.method, codec.encode(notification))
        return self.connection.tell(frame)

    async def breathe(self) -> None:
        """Let other tasks run; while the peer does not read, wait for room."""
        await self.connection.breathe()

    async def request_raw(
        self,
        method: str,
        params: Json = None,
        *,
        session_id: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Json:
        """Send any request, in plain JSON values. It belongs to `session_id`, or to the session in its params."""
        encoded = None if params is None else Raw(codec.encode(params))
        lane = plain_lane(params) if session_id is None else session_id
        return codec.loads(await self.connection.call(method, encoded, lane=lane, timeout=timeout))

    async def notify_raw(self, method: str, params: Json = None) -> None:
        """Send any notification, in plain JSON values."""
        await self.connection.notify(method, None if params is None else codec.encode(params))

    async def initialize(
        self,
        request: v1.InitializeRequest,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> v1.InitializeResponse:
        """Open the connection as a client: checks the agent's version and keeps its capabilities.

        Raises ProtocolError if the agent answers with a version that was not offered.
        """
        try:
            response = await self.request(request, timeout=timeout)
        except ConnectionClosed as closed:
            if closed.reason != "process_ended":
                raise
            raise ConnectionClosed("died_at_start", exit_code=closed.exit_code, stderr=closed.stderr) from None
        if response.protocol_version != request.protocol_version:
            raise ProtocolError(
                f"the agent answered with version {response.protocol_version} of the protocol; "
                f"only version {request.protocol_version} was offered"
            )
        self.capabilities = Capabilities(declared_in(response), handshake_meta=response.meta)
        return response

    async def close(self) -> None:
        """End the connection."""
        await self.connection.close()

    async def __aenter__(self) -> Self:
        await self.connection.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.connection.close()


class Context:
    """The peer and the state of the request, for a handler."""

    __slots__ = ("_request", "peer")

    def __init__(self, peer: Peer, request: IncomingRequest | None = None) -> None:
        self.peer = peer
        """The peer that sent the message."""
        self._request = request

    @property
    def request_id(self) -> RequestId | None:
        """The request's id on the wire; None for a notification."""
        return None if self._request is None else self._request.id

    @property
    def cancelled(self) -> bool:
        """Whether the peer has cancelled the request."""
        return self._request is not None and self._request.cancelled

    async def wait_for_room(self) -> None:
        """Wait while the peer does not read, before making an answer that may be large."""
        await self.peer.connection.wait_for_room()

    def answer(self, result: Any) -> None:
        """Answer now. The handler may continue; its later result or error is not sent."""
        request = self._request or _no_request()
        assert request.route is not None
        request.owner.succeed(request, request.route, result)

    def failure(self, error: BaseException) -> tuple[int, str, Any]:
        """Return the code, message and data with which the request would be answered if the handler raised this error.

        It is for handlers that have answered already and report a later error in another message. Details that are not
        for the peer are logged.
        """
        request = self._request or _no_request()
        return request.owner.failure(request, error)

    def on_cancel(self, do: Callable[[], None]) -> None:
        """Call this when the peer cancels the request, instead of cancelling the handler's task."""
        (self._request or _no_request()).on_cancel = do

    def after_response(self, do: Callable[..., Awaitable[Any] | None], *arguments: Any) -> None:
        """Call this when the answer has been sent, to send something after it."""
        (self._request or _no_request()).after(lambda: do(*arguments))


def _no_request() -> NoReturn:
    raise TypeError("a notification has no answer: answer, on_cancel and after_response are for requests")
