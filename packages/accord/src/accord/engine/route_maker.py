"""The routes of a peer, made from its handlers: how a message becomes typed, is handled, and gets its answer.

A *route* joins three functions. The first reads the params, strictly and fast, or with care. The second calls the
handler. The third makes the answer's frame from what the handler returned. The traits of the message's class are part
of the route; a handler without a class finds them by its method.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, cast

import msgspec
from msgspec import Raw

from accord.engine.incoming_requests import IncomingRequest
from accord.engine.peer import Context, Peer, carrying, trace_in
from accord.engine.routes import Route, lane_of, plain_lane
from accord.errors import DecodeError, EncodeError
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import UnencodedResponse
from accord.schema import codec
from accord.schema.base import Json, Notification, Request
from accord.schema.capabilities import Capabilities, declared_in
from accord.schema.methods import may_be_empty, message_of, row_for


class RouteMaker:
    """Makes the routes of one peer."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.context = Context(peer)
        """The context of notifications."""

    def _decoders(self, params: Any, *, keeps: bool = False) -> dict[str, Any]:
        if keeps or self.peer.keep_unknown:
            keeping = functools.partial(_decode, codec.decode_keeping, params)
            return {"decode": keeping, "decode_tolerantly": keeping}
        return {
            "decode": codec.strict_decoder(params),
            "decode_tolerantly": _tolerant_decoder(params),
        }

    def typed(self, message: type[Request[Any] | Notification], handler: Callable[..., Any]) -> Route:
        """The route of a message class to its handler."""
        row = row_for(message, "protocol")
        handle = _with_context(handler)
        # A handshake declares capabilities, also those that our types do not know.
        declares = issubclass(message, Request) and message.__handshake__
        common: dict[str, Any] = {
            **self._decoders(row.params, keeps=declares),
            "lane_of": lane_of(message),
            "suspends": _suspends(handler),
            "handler": handler,
            **_traits(message),
        }
        if not issubclass(message, Request):
            tell = handler if handle is None else functools.partial(_swap, handle, self.context)
            return Route(row.name, tell=tell, **common)
        call = self._calling(message, handler if handle is None else None, handle)
        return Route(row.name, call=call, answer=_answerer(row.name, row.result), **common)

    def _calling(
        self,
        message: type[Request[Any]],
        alone: Callable[[Any], Any] | None,
        with_context: Callable[[Any, Context], Any] | None,
    ) -> Callable[[Any, IncomingRequest], Any]:
        """What a request's route calls: the handler, after the capabilities and the trace context are set."""
        peer, spans = self.peer, self.peer.spans
        handshake = message.__handshake__

        def handle(request: Any, incoming: IncomingRequest) -> Any:
            return alone(request) if alone is not None else with_context(request, Context(peer, incoming))  # type: ignore[misc]

        def call(request: Any, incoming: IncomingRequest) -> Any:
            if handshake:
                peer.capabilities = Capabilities(declared_in(request), handshake_meta=request.meta)
            meta = getattr(request, "meta", None)  # what has an unknown tag has no fields
            if meta is not None and (trace := trace_in(meta)):
                result = carrying(trace, functools.partial(handle, request, incoming))
            elif alone is not None:
                result = alone(request)
            else:
                result = with_context(request, Context(peer, incoming))  # type: ignore[misc]
            return result if spans is None else spans.answering(request, result, peer.role)

        return call

    def around(
        self,
        message: type[Request[Any] | Notification],
        inner: Route | None,
        intercept: Callable[[Any, Context, Callable[[Any], Any] | None], Any],
    ) -> Route:
        """The route of a message that `intercept` gets before the handler of `inner`.

        `intercept` takes the message, its context, and what gives a message to that handler, None without one.
        """
        alone = self.typed(message, nothing_more)
        if inner is not None:
            alone.handler = inner.handler
        if not issubclass(message, Request):
            told = None if inner is None else _given(inner, inner.tell)
            alone.tell = lambda notification: intercept(notification, self.context, told)
            return alone

        def call(request: Any, incoming: IncomingRequest) -> Any:
            go_on = None if inner is None else _given(inner, functools.partial(_called, inner, incoming))
            return intercept(request, Context(self.peer, incoming), go_on)

        alone.call = call
        if inner is not None:
            alone.answer = inner.answer
        return alone

    def route(
        self,
        method: str,
        message: type[Request[Any] | Notification] | None,
        handler: Callable[..., Any],
        *,
        is_request: bool,
    ) -> Route:
        """The route of a method to its handler, which takes this class of message, or plain JSON values."""
        if message is not None:
            return self.typed(message, handler)
        return self._plain(method, handler, with_context(handler), is_request=is_request)

    def other(self, method: str, handler: Callable[..., Any], *, is_request: bool) -> Route:
        """The route of a method that has no handler of its own to the handler of all such methods."""
        return self._plain(method, handler, functools.partial(handler, method), is_request=is_request)

    def _plain(
        self, method: str, handler: Callable[..., Any], handle: Callable[[Json, Context], Any], *, is_request: bool
    ) -> Route:
        def call(params: Json, incoming: IncomingRequest) -> Any:
            return handle(params, Context(self.peer, incoming))

        ways: dict[str, Any] = {"call": call, "answer": _answer_plainly}
        return Route(
            method,
            decode=_object_in,
            decode_tolerantly=_object_in,
            lane_of=plain_lane,
            suspends=_suspends(handler),
            handler=handler,
            **(ways if is_request else {"tell": functools.partial(_swap, handle, self.context)}),
            **_traits(message_of(method, "request" if is_request else "notification")),
        )


def _traits(message: type[Request[Any] | Notification] | None) -> dict[str, Any]:
    """What a class says about the way of its messages through the engine."""
    if message is None:
        return {}
    if issubclass(message, Request):
        return {"handshake": message.__handshake__}
    return {"immediate": message.__immediate__, "stream": message.__stream__}


def _object_in(raw: bytes | Raw) -> Json:
    """These params as a plain JSON value; raises DecodeError unless they are an object."""
    params = codec.loads(raw)
    if not isinstance(params, dict):
        raise DecodeError("$", "params must be an object")
    return cast("Json", params)


def nothing_more(_: Any) -> None:
    """A handler that does nothing: its message has a function for its arrival, or one before it."""


def _decode(decode: Callable[[bytes | Raw, Any], Any], params: Any, raw: bytes | Raw) -> Any:
    return decode(raw, params)


def _with_context(handler: Callable[..., Any]) -> Callable[[Any, Context], Any] | None:
    """The handler itself if it takes a context beside its message, else None."""
    return handler if takes_two(handler) else None


def takes_two(handler: Callable[..., Any]) -> bool:
    """Whether it takes more than one positional argument."""
    function, bound = (handler.__func__, 1) if isinstance(handler, MethodType) else (handler, 0)
    if isinstance(function, FunctionType) and not vars(function):  # each connection asks; a signature takes 20 µs
        code = function.__code__
        return bool(code.co_flags & inspect.CO_VARARGS) or code.co_argcount - bound > 1
    positional = [
        parameter
        for parameter in inspect.signature(handler).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    return len(positional) > 1 or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in positional)


def _given(inner: Route, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Gives a message to the handler of this route, in the form that the handler takes."""
    if inner.decode is _object_in:
        return lambda message: call(codec.plain(message))
    return call


def _called(inner: Route, incoming: IncomingRequest, message: Any) -> Any:
    return inner.call(message, incoming)


def with_context(handler: Callable[..., Any]) -> Callable[[Any, Context], Any]:
    """A function of a message and its context that calls this handler, which may take the message alone."""
    return _with_context(handler) or (lambda message, _: handler(message))


def _swap(handler: Callable[[Any, Context], Any], context: Context, message: Any) -> Any:
    return handler(message, context)


def _suspends(handler: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004


@functools.cache  # all connections share them
def _tolerant_decoder(params: Any) -> Callable[[bytes | Raw], Any]:
    return functools.partial(_decode, codec.decode, params)


@functools.cache
def _answerer(method: str, result_type: Any) -> Callable[[RequestId, Any], bytes]:
    """Makes the answer's frame from what a handler returned; raises EncodeError for another type."""
    empty = b"{}" if may_be_empty(result_type) else None
    is_class = isinstance(result_type, type) and issubclass(result_type, msgspec.Struct)
    closed = codec.closed_words(result_type)

    def answer(request_id: RequestId, result: Any) -> bytes:
        if result is None and empty is not None:
            return wire_messages.encode_response(request_id, empty)
        if is_class and not isinstance(result, result_type):
            raise EncodeError(
                f"the handler of {method} must return {result_type.__name__}, got {type(result).__name__}"
            )
        try:
            for name, words in closed.items():
                if getattr(result, name) not in words:
                    break
            else:
                return codec.strict_encode(UnencodedResponse(request_id, result))
        except codec.ENCODE_REFUSALS:
            pass
        # The careful encoder may succeed, or explains the error.
        return wire_messages.encode_response(request_id, codec.encode(result))

    return answer


def _answer_plainly(request_id: RequestId, result: Json) -> bytes:
    return wire_messages.encode_response(request_id, codec.encode(result))
