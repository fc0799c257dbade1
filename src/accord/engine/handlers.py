"""Handlers: functions registered by message class, and the routes that a connection gets from them.

A handler is a `def` or an `async def` that takes its message, and a `Context` if it wants one. A `def` is called where
its message arrives, with no task between, so it must not block.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

import msgspec
from msgspec import Raw

from accord.capabilities import Capabilities
from accord.engine.answering import Owed
from accord.engine.routes import Route, Routes
from accord.errors import EncodeError
from accord.jsonrpc import messages
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import AnswerFrame
from accord.schema import codec, legacy
from accord.schema.base import Json, Notification, Request
from accord.schema.methods import methods, row_for
from accord.tasks import is_awaitable

if TYPE_CHECKING:
    from accord.engine.peer import Peer

ResultT = TypeVar("ResultT")
MessageT = TypeVar("MessageT", bound="Request[Any] | Notification")
MessageT_co = TypeVar("MessageT_co", bound="Request[Any] | Notification", covariant=True)
RawHandlerT = TypeVar("RawHandlerT", bound="Callable[[Json], object] | Callable[[Json, Context], object]")
OtherHandlerT = TypeVar("OtherHandlerT", bound="Callable[[str, Json, Context], object]")

TRACE_KEYS = ("traceparent", "tracestate", "baggage")

carried: ContextVar[dict[str, str] | None] = ContextVar("accord_trace", default=None)
"""The trace context of the request that is being handled, for the requests made while handling it."""


class Context:
    """What a handler can use beside its message: the peer, and the state of the request."""

    __slots__ = ("_owed", "peer")

    def __init__(self, peer: Peer, owed: Owed | None = None) -> None:
        self.peer = peer
        """The peer that sent the message."""
        self._owed = owed

    @property
    def request_id(self) -> RequestId | None:
        """The request's id on the wire; None for a notification."""
        return None if self._owed is None else self._owed.id

    @property
    def cancelled(self) -> bool:
        """Whether the peer has cancelled the request."""
        return self._owed is not None and self._owed.cancelled

    async def wait_for_room(self) -> None:
        """Wait while the peer does not read, before making an answer that may be large."""
        await self.peer.connection.wait_for_room()

    def answer(self, result: Any) -> None:
        """Answer now. The handler may go on; what it returns or raises is no longer sent."""
        self._request().home.answer_now(self._request(), result)

    def on_cancel(self, do: Callable[[], None]) -> None:
        """Call this when the peer cancels the request, instead of cancelling the handler's task."""
        self._request().on_cancel = do

    def after_response(self, do: Callable[..., Awaitable[Any] | None], *arguments: Any) -> None:
        """Call this when the answer has been sent: what it sends comes after the answer."""
        self._request().after(lambda: do(*arguments))

    def _request(self) -> Owed:
        if self._owed is None:
            raise TypeError("a notification has no answer: answer, on_cancel and after_response are for requests")
        return self._owed


class Registrar(Generic[MessageT_co]):
    """Registers the handler of one message; what `on(Message)` gives.

    Type checkers compare the handler with the message: its parameter, and for a request its result.
    """

    __slots__ = ("_register",)

    def __init__(self, register: Callable[[Callable[..., Any]], object]) -> None:
        self._register = register

    @overload
    def __call__(
        self: Registrar[Request[ResultT]], handler: Callable[[MessageT_co, Context], Awaitable[ResultT | None]], /
    ) -> Callable[[MessageT_co, Context], Awaitable[ResultT | None]]: ...
    @overload
    def __call__(
        self: Registrar[Request[ResultT]], handler: Callable[[MessageT_co, Context], ResultT | None], /
    ) -> Callable[[MessageT_co, Context], ResultT | None]: ...
    @overload
    def __call__(
        self: Registrar[Request[ResultT]], handler: Callable[[MessageT_co], Awaitable[ResultT | None]], /
    ) -> Callable[[MessageT_co], Awaitable[ResultT | None]]: ...
    @overload
    def __call__(
        self: Registrar[Request[ResultT]], handler: Callable[[MessageT_co], ResultT | None], /
    ) -> Callable[[MessageT_co], ResultT | None]: ...
    @overload
    def __call__(
        self: Registrar[Notification], handler: Callable[[MessageT_co, Context], object], /
    ) -> Callable[[MessageT_co, Context], object]: ...
    @overload
    def __call__(
        self: Registrar[Notification], handler: Callable[[MessageT_co], object], /
    ) -> Callable[[MessageT_co], object]: ...
    def __call__(self, handler: Callable[..., Any], /) -> Callable[..., Any]:
        self._register(handler)
        return handler


class Handlers:
    """Functions that handle messages, by message class, or by method for plain JSON values."""

    def __init__(self) -> None:
        self.typed: dict[tuple[str, bool], tuple[type[Request[Any] | Notification], Callable[..., Any]]] = {}
        self.raw: dict[tuple[str, bool], Callable[..., Any]] = {}
        self.others: Callable[..., Any] | None = None
        self.arrivals: dict[str, tuple[type[Notification], Callable[[Any, bytes | Raw], None]]] = {}

    def on(self, message: type[MessageT]) -> Registrar[MessageT]:
        """Handle this message with a `def` or `async def` that takes it, and a `Context` if it wants one.

        What a request's handler returns is the answer; None stands for an answer without fields.
        """
        method = getattr(message, "__method__", None)
        if method is None:
            raise TypeError(f"{message.__name__} has no method: write class {message.__name__}(..., method=...)")
        cls: type[Request[Any] | Notification] = cast("Any", message)
        _must_be_known(cls, method)

        def register(handler: Callable[..., Any]) -> None:
            self.typed[method, issubclass(cls, Request)] = (cls, handler)

        return Registrar(register)

    def on_arrival(self, message: type[Notification], arrived: Callable[[Any, bytes | Raw], None]) -> None:
        """Tell this function of each such notification where it arrives, before any handler, which there may be too.

        It gets the notification and its params as they came. It must be quick, and is called in the order of the wire.
        """
        self.arrivals[message.__method__] = (message, arrived)

    def on_request(self, method: str) -> Callable[[RawHandlerT], RawHandlerT]:
        """Handle a request by its method, with params and result as plain JSON values."""
        return self._register_raw(method, is_request=True)

    def on_notification(self, method: str) -> Callable[[RawHandlerT], RawHandlerT]:
        """Handle a notification by its method, with params as plain JSON values."""
        return self._register_raw(method, is_request=False)

    def on_other(self, handler: OtherHandlerT) -> OtherHandlerT:
        """Handle messages without a handler of their own: `handler(method, params, context)`, in plain JSON values."""
        self.others = handler
        return handler

    def handles(self, message: type[Request[Any] | Notification]) -> bool:
        """Whether this message has a handler of its own."""
        key = (message.__method__, issubclass(message, Request))
        return key in self.typed or key in self.raw

    def over(self, others: Handlers) -> Handlers:
        """These handlers, and those of `others` for messages that have no handler here."""
        both = Handlers()
        mine = self.typed.keys() | self.raw.keys()
        both.typed = {key: entry for key, entry in others.typed.items() if key not in mine} | self.typed
        both.raw = {key: entry for key, entry in others.raw.items() if key not in mine} | self.raw
        both.others = self.others or others.others
        both.arrivals = others.arrivals | self.arrivals
        return both

    def _register_raw(self, method: str, *, is_request: bool) -> Callable[[RawHandlerT], RawHandlerT]:
        def register(handler: RawHandlerT) -> RawHandlerT:
            self.raw[method, is_request] = handler
            return handler

        return register


class Incoming:
    """Makes the routes of one peer from its handlers."""

    def __init__(self, peer: Peer, handlers: Handlers) -> None:
        self.peer = peer
        self.handlers = handlers
        self.context = Context(peer)

    def routes(self) -> Routes:
        routes = Routes()
        self.add_to(routes)
        return routes

    def add_to(self, routes: Routes) -> None:
        """Add these routes to others; they replace those of the same methods."""
        arrivals = {method: route.arrived for method, route in routes.tells.items() if route.arrived is not None}
        routes.makers.append(self.call_of)
        routes.calls.clear()
        for (method, is_request), (message, handler) in self.handlers.typed.items():
            if not is_request:
                routes.tells[method] = self.typed(message, handler)
        for (method, is_request), handler in self.handlers.raw.items():
            if not is_request:
                routes.tells[method] = self.raw(method, handler, is_request=False)
        for old, new in legacy.RENAMED_METHODS.items():
            if new in routes.tells:
                routes.tells.setdefault(old, routes.tells[new])
        if (others := self.handlers.others) is not None:
            routes.other_call = lambda method: self.other(method, others, is_request=True)
            routes.other_tell = lambda method: self.other(method, others, is_request=False)
        for method, (notification, arrived) in self.handlers.arrivals.items():
            arrivals[method] = arrived
            if method not in routes.tells:
                routes.tells[method] = self.arriving(notification)
        for method, arrived in arrivals.items():
            routes.tells[method].arrived = arrived

    def call_of(self, method: str) -> Route | None:
        """The route of this request, by its name or its present one; None if it has no handler."""
        for name in (method, legacy.RENAMED_METHODS.get(method, method)):
            if (raw := self.handlers.raw.get((name, True))) is not None:
                return self.raw(name, raw, is_request=True)
            if (entry := self.handlers.typed.get((name, True))) is not None:
                return self.typed(*entry)
        return None

    def arriving(self, message: type[Notification]) -> Route:
        """The route of a notification that has a function for its arrival, and no handler."""
        row = row_for(message, "protocol")
        return Route(
            row.name,
            decode=codec.strict_decoder(row.params),
            decode_tolerantly=functools.partial(_decode, row.params),
            lane_of=lane_of(message),
            suspends=False,
            tell=_nothing_more,
        )

    def typed(self, message: type[Request[Any] | Notification], handler: Callable[..., Any]) -> Route:
        row = row_for(message, "protocol")
        handle = _with_context(handler)
        common: dict[str, Any] = {
            "decode": codec.strict_decoder(row.params),
            "decode_tolerantly": functools.partial(_decode, row.params),
            "lane_of": lane_of(message),
            "suspends": _suspends(handler),
        }
        if not issubclass(message, Request):
            tell = handler if handle is None else functools.partial(_swap, handle, self.context)
            return Route(row.name, tell=tell, immediate=message.__immediate__, **common)
        call = self.calling(message, handler if handle is None else None, handle)
        return Route(row.name, call=call, answer=_answerer(row.name, row.result), **common)

    def calling(
        self,
        message: type[Request[Any]],
        alone: Callable[[Any], Any] | None,
        with_context: Callable[[Any, Context], Any] | None,
    ) -> Callable[[Any, Owed], Any]:
        """What a request's route calls: the handler, after the capabilities and the trace context are set."""
        peer, spans = self.peer, self.peer.spans
        shakes_hands = message.__method__ == "initialize"
        is_simple = alone is not None and spans is None

        def call(request: Any, owed: Owed) -> Any:
            if shakes_hands:
                peer.capabilities = Capabilities(request.client_capabilities)
            meta = getattr(request, "meta", None)  # what has an unknown tag has no fields
            if meta is not None and (trace := _trace_in(meta)):
                return _carrying(trace, functools.partial(handle, request, owed))
            return alone(request) if is_simple else handle(request, owed)  # type: ignore[misc]

        def handle(request: Any, owed: Owed) -> Any:
            result = alone(request) if alone is not None else with_context(request, Context(peer, owed))  # type: ignore[misc]
            return result if spans is None else spans.answering(request, result, peer.role)

        return call

    def raw(self, method: str, handler: Callable[..., Any], *, is_request: bool) -> Route:
        handle = _with_context(handler)
        if is_request:

            def call(params: Json, owed: Owed) -> Any:
                return handler(params) if handle is None else handle(params, Context(self.peer, owed))

            return self.plain(method, handler, call=call, answer=_answer_plainly)
        tell = handler if handle is None else functools.partial(_swap, handle, self.context)
        return self.plain(method, handler, tell=tell)

    def other(self, method: str, handler: Callable[..., Any], *, is_request: bool) -> Route:
        def call(params: Json, owed: Owed) -> Any:
            return handler(method, params, Context(self.peer, owed))

        def tell(params: Json) -> Any:
            return handler(method, params, self.context)

        return self.plain(
            method, handler, **({"call": call, "answer": _answer_plainly} if is_request else {"tell": tell})
        )

    def plain(self, method: str, handler: Callable[..., Any], **direction: Any) -> Route:
        return Route(
            method,
            decode=codec.loads,
            decode_tolerantly=codec.loads,
            lane_of=plain_lane,
            suspends=_suspends(handler),
            **direction,
        )


def _nothing_more(_: Any) -> None: ...


def _carrying(trace: dict[str, str], handle: Callable[[], Any]) -> Any:
    """Call this with a trace context that is sent with the requests it makes, and with no others."""
    token = carried.set(trace)
    try:
        result = handle()
    finally:
        carried.reset(token)
    return _awaited_carrying(trace, result) if is_awaitable(result) else result


async def _awaited_carrying(trace: dict[str, str], result: Awaitable[Any]) -> Any:
    carried.set(trace)  # in the request's own task
    return await result


def _decode(params: Any, raw: bytes | Raw) -> Any:
    return codec.decode(raw, params)


def _must_be_known(message: type[Request[Any] | Notification], method: str) -> None:
    if method.startswith("_") or message.__module__.startswith("accord.schema."):
        return
    if methods(1).request(method) is None and methods(1).notification(method) is None:
        raise ValueError(
            f"{message.__name__}: the name of a custom method must begin with an underscore, got {method!r}"
        )


def _with_context(handler: Callable[..., Any]) -> Callable[[Any, Context], Any] | None:
    """The handler itself if it takes a context beside its message, else None."""
    parameters = inspect.signature(handler).parameters.values()
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    takes_two = len(positional) > 1 or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in positional)
    return handler if takes_two else None


def _swap(handler: Callable[[Any, Context], Any], context: Context, message: Any) -> Any:
    return handler(message, context)


def _suspends(handler: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004


def lane_of(message: type[msgspec.Struct]) -> Callable[[Any], str | None]:
    if "session_id" not in message.__struct_fields__:
        return _no_lane
    if message.__dict__.get("__params__") is None:
        return operator.attrgetter("session_id")
    return _perhaps_lane  # its params may be `Unknown`, which has no fields


def _no_lane(_: Any) -> str | None:
    return None


def _perhaps_lane(message: Any) -> str | None:
    return getattr(message, "session_id", None)


def plain_lane(params: Json) -> str | None:
    session_id = cast("Mapping[str, Json]", params).get("sessionId") if isinstance(params, dict) else None
    return session_id if isinstance(session_id, str) else None


def may_be_empty(result: Any) -> bool:
    if not (isinstance(result, type) and issubclass(result, msgspec.Struct)):
        return False
    return not any(field.required for field in msgspec.structs.fields(result))


def _answerer(method: str, result_type: Any) -> Callable[[RequestId, Any], bytes]:
    """Makes the answer's frame from what a handler returned; raises EncodeError for another type."""
    is_class = isinstance(result_type, type) and issubclass(result_type, msgspec.Struct)
    empty = b"{}" if may_be_empty(result_type) else None
    in_one_pass = not codec.closed_words(result_type)

    def answer(request_id: RequestId, result: Any) -> bytes:
        if result is None and empty is not None:
            return messages.answer(request_id, empty)
        if is_class and not isinstance(result, result_type):
            raise EncodeError(
                f"the handler of {method} must return {result_type.__name__}, got {type(result).__name__}"
            )
        if in_one_pass:
            try:
                return codec.strict_encode(AnswerFrame(request_id, result))
            except codec.ENCODE_REFUSALS:
                pass  # the careful encoder below may succeed, or explains the error
        return messages.answer(request_id, codec.encode(result))

    return answer


def _answer_plainly(request_id: RequestId, result: Json) -> bytes:
    return messages.answer(request_id, codec.encode(result))


def _trace_in(meta: dict[str, Json]) -> dict[str, str]:
    return {key: value for key in TRACE_KEYS if isinstance(value := meta.get(key), str)}
