"""Handlers: functions registered by message class or by method.

A handler is a `def` or an `async def` that takes its message, and a `Context` if it has a second parameter. A `def` is
called where its message arrives, without a task, so it must not block. Those that authors register for a client or an
agent may: `Handlers.in_threads` runs them in a thread.

Interceptors: functions that see a message before its handler, and handlers of one session; added and removed live.

    message ──▶ `before` functions, in order ──▶ the handler of its session, else the handler of all ──▶ answer
                    └── an answer, a RequestError ─────────────────────────────────────────────────────────┘

A `before` function returns None to pass the message on, a message of the same class to pass that on instead, or the
answer, which ends the chain. For a notification, which has no answer, True ends the chain.

They change routes, not handlers: a method that has an interceptor gets a route around the one of its handler, whatever
its source, and loses it with its last interceptor. So a message without interceptors costs nothing extra, and a handler
that is registered later is found too. One `Interceptors` may serve many connections: those of an `Agent` apply to every
client.

The routes of a peer, made from its handlers: how a message becomes typed, is handled, and is answered.

A *route* joins three functions. The first reads the params, strictly and fast, or tolerantly. The second calls the
handler. The third makes the answer's frame from the handler's result. The traits of the message's class are part of the
route; a handler without a class finds them by its method.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Generic, TypeAlias, TypeVar, cast, overload

import msgspec
from msgspec import Raw

from accord._internal.tasks import elsewhere, in_thread, in_thread_of_user, is_awaitable
from accord.engine.incoming_requests import IncomingRequest
from accord.engine.peer import Context, Peer, carrying, trace_in
from accord.engine.routes import Route, Routes, lane_of, nothing_more, plain_lane
from accord.errors import DecodeError, EncodeError, RequestError
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import UnencodedResponse
from accord.mistakes import check_handler
from accord.schema import codec, legacy
from accord.schema.base import Json, Notification, Request
from accord.schema.capabilities import Capabilities, check_declared, declared_in
from accord.schema.methods import is_spoken, may_be_empty, message_of, methods, row_for, versions_of

MessageT = TypeVar("MessageT", bound="Request[Any] | Notification")
MessageT_co = TypeVar("MessageT_co", bound="Request[Any] | Notification", covariant=True)
ResultT = TypeVar("ResultT")
Message = type[Request[Any] | Notification]
Step = Callable[[Any, Context], Any]


class Registrar(Generic[MessageT_co]):
    """The decorator that `on(Message)` returns: it registers the handler of one message.

    Type checkers compare the handler with the message: its parameter, and for a request its result.
    """

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
        """Register this handler."""
        self._add(handler)
        return handler

    def _add(self, function: Callable[..., Any]) -> None:
        self._register(function)


class Removable:
    """A decorator whose functions can be removed again."""

    _decorator = "before(Message)"
    """The decorator's name, for errors."""

    def __init__(self, register: Callable[[Callable[..., Any]], Callable[[], None]]) -> None:
        self._register = register
        self._removals: list[Callable[[], None]] = []

    def _add(self, function: Callable[..., Any]) -> None:
        check_handler(self._decorator, function)
        self._removals.append(self._register(function))

    def remove(self) -> None:
        """Remove the registration; a second time does nothing."""
        while self._removals:
            self._removals.pop()()


class Registration(Removable, Registrar[MessageT_co]):
    """The decorator that `session.on(Message)` returns: it registers a handler for one session, and removes it.

        asking = session.on(v1.RequestPermissionRequest)

        @asking
        async def ask(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse: ...

        asking.remove()

    Type checkers compare the handler with the message: its parameter, and for a request its result.
    """

    _decorator = "session.on(Message)"


class Interception(Removable, Generic[MessageT]):
    """The decorator that `before(Message)` returns: it registers a function, and removes it."""

    @overload
    def __call__(
        self, function: Callable[[MessageT, Context], ResultT], /
    ) -> Callable[[MessageT, Context], ResultT]: ...
    @overload
    def __call__(self, function: Callable[[MessageT], ResultT], /) -> Callable[[MessageT], ResultT]: ...
    def __call__(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Register this function."""
        self._add(function)
        return function


_Key: TypeAlias = "tuple[str, bool]"
"""A method, and whether its messages are requests."""


class _Entry:
    """The interceptors of one method."""

    __slots__ = ("before", "message", "of_sessions")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.before: list[Step] = []
        self.of_sessions: dict[str, Step] = {}

    def handle(self, message: Any, context: Context, go_on: Callable[[Any], Any] | None) -> Any:
        """Handle a message that has passed: by the handler of its session, or by that of all."""
        handler = self.of_sessions.get(getattr(message, "session_id", ""))
        if handler is not None:
            return handler(message, context)
        if go_on is not None:
            return go_on(message)
        if isinstance(message, Request):
            raise RequestError.method_not_found(message.__method__)
        return None


class Interceptors:
    """The interceptors of an agent, of a client, or of one connection; `Peer.handle` takes them."""

    def __init__(self, *, is_innermost: bool = False) -> None:
        self._is_innermost = is_innermost
        self._entries: dict[_Key, _Entry] = {}
        self._installed: set[weakref.ref[Routes]] = set()  # a `WeakSet` takes a KiB

    # Registering

    def before(self, message: Message, function: Callable[..., Any]) -> Callable[[], None]:
        """Call this function before the handlers of a message; calling the result removes it."""
        entry, key = self._entry(message)
        step = with_context(function)
        entry.before.append(step)
        self._changed(key)

        def remove() -> None:
            if step in entry.before:
                entry.before.remove(step)
                self._changed(key)

        return remove

    def of_session(self, message: Message, session_id: str, handler: Callable[..., Any]) -> Callable[[], None]:
        """Handle this message with this function in one session, instead of an earlier one; calling the result removes
        it.
        """
        if "session_id" not in message.__struct_fields__:
            raise ValueError(f"{message.__name__} names no session; handle it for the whole connection")
        entry, key = self._entry(message)
        step = entry.of_sessions[session_id] = with_context(handler)
        self._changed(key)

        def remove() -> None:
            if entry.of_sessions.get(session_id) is step:
                del entry.of_sessions[session_id]
                self._changed(key)

        return remove

    def converted(
        self,
        newer_of: Callable[[Message], Message | None],
        to_older: Callable[[Any], Any],
        to_newer: Callable[[Any], Any],
    ) -> Interceptors:
        """Return the `before` functions for a connection of another version: its messages and their results are
        converted.

        `newer_of` returns the other version's counterpart of a class, None for a method without one.
        """
        converted = Interceptors()
        for entry in self._entries.values():
            newer = entry.message if entry.message.__method__.startswith("_") else newer_of(entry.message)
            for step in entry.before if newer is not None else ():
                if newer is entry.message:
                    converted.before(entry.message, step)
                elif newer is not None:
                    converted.before(newer, partial(_convert, step, to_older, to_newer))
        return converted

    def forget_session(self, session_id: str) -> None:
        """Remove the handlers of a session that has ended."""
        for key, entry in list(self._entries.items()):
            if entry.of_sessions.pop(session_id, None) is not None:
                self._changed(key)

    def _entry(self, message: Message) -> tuple[_Entry, _Key]:
        key = message.__method__, issubclass(message, Request)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(message)
        elif entry.message is not message:
            raise TypeError(
                f"{key[0]} has interceptors for {entry.message.__module__}.{entry.message.__name__}; "
                f"register {message.__module__}.{message.__name__} on a connection of its own"
            )
        return entry, key

    def _changed(self, key: _Key) -> None:
        """Renew the route of this method if needed: with its first interceptor, and after its last."""
        entry = self._entries[key]
        if not entry.before and not entry.of_sessions:
            del self._entries[key]
        for installed in list(self._installed):
            if (routes := installed()) is not None:
                routes.renew(*key)

    # For the engine

    def add_routes(self, routes: Routes, peer: Peer) -> None:
        """Wrap the handlers of a peer."""
        maker = RouteMaker(peer)
        self._installed.add(weakref.ref(routes, self._installed.discard))
        routes.intercept(self, partial(self._around, maker), is_innermost=self._is_innermost)

    def _around(self, maker: RouteMaker, key: _Key, inner: Route | None) -> Route | None:
        """Return the route around this one; the same one if its method has no interceptor."""
        entry = self._entries.get(key)
        if entry is None:
            return inner
        return maker.around(
            entry.message,
            inner,
            lambda message, context, go_on: _pass(
                tuple(entry.before), message, context, lambda passed: entry.handle(passed, context, go_on)
            ),
        )


async def _convert(
    step: Step, to_older: Callable[[Any], Any], to_newer: Callable[[Any], Any], message: Any, context: Context
) -> Any:
    """Call a function of one version with a message of another; its result is converted back."""
    said = step(to_older(message), context)
    said = await said if is_awaitable(said) else said
    return said if said is None or said is True else to_newer(said)


def _pass(steps: Sequence[Step], message: Any, context: Context, handle: Callable[[Any], Any]) -> Any:
    """Pass one message through its interceptors: without waiting as far as possible, then in a coroutine."""
    for place, step in enumerate(steps):
        said = step(message, context)
        if is_awaitable(said):
            return _pass_later(said, steps[place + 1 :], message, context, handle)
        message, is_over = _next(message, said)
        if is_over:
            return said
    return handle(message)


async def _pass_later(
    said: Any, steps: Sequence[Step], message: Any, context: Context, handle: Callable[[Any], Any]
) -> Any:
    said = await said
    message, is_over = _next(message, said)
    if is_over:
        return said
    result = _pass(steps, message, context, handle)
    return await result if is_awaitable(result) else result


def _next(message: Any, said: Any) -> tuple[Any, bool]:
    """Return the message to pass on after this result of a `before` function, and whether the chain ends."""
    if said is None:
        return message, False
    if isinstance(said, cast("type[Any]", message.__class__)):
        return said, False
    return message, True


RawHandlerT = TypeVar("RawHandlerT", bound="Callable[[Json], object] | Callable[[Json, Context], object]")
OtherHandlerT = TypeVar("OtherHandlerT", bound="Callable[[str, Json, Context], object]")


class Handlers:
    """Functions that handle messages, by message class, or by method for plain JSON values."""

    def __init__(self, versions: Collection[int] | None = None, *, author: str = "") -> None:
        self._author = author
        """The author's name for these handlers, such as `@agent`: then their functions are checked; empty for
        our own.
        """
        self.extensions: Collection[type] = ()
        """The extensions that the author's side declares: their messages may be handled."""
        self.versions = versions
        """The versions of the protocol that the peer may speak; None if that is not known here."""
        self.by_method: dict[tuple[str, bool], tuple[type[Request[Any] | Notification] | None, Callable[..., Any]]] = {}
        """By method, and whether it is a request: the class of the message, None for plain JSON, and its handler."""
        self.others: Callable[..., Any] | None = None
        self.arrivals: dict[str, tuple[type[Notification], Callable[[Any, bytes | Raw], None]]] = {}
        self.interceptors: list[Interceptors] = []
        """The interceptors of these handlers; the last one is the first that sees a message."""
        self._own_interceptors: Interceptors | None = None
        self._are_of_home = False

    @classmethod
    def _of_home(cls, methods: Mapping[Message | str, Callable[[Any], Callable[..., Any] | None]]) -> Handlers:
        """Return handlers that many peers share: each is found in a peer's `home` when its message arrives."""
        shared = cls()
        shared._are_of_home = True
        for message, find in methods.items():
            key = (message, True) if isinstance(message, str) else _key_of(message)
            shared.by_method[key] = None if isinstance(message, str) else message, find
        return shared

    def _bound_to(self, home: Any) -> Handlers:
        """Return these handlers, found in this `home`."""
        bound = Handlers(self.versions)
        for key, (message, find) in self.by_method.items():
            if (handler := find(home)) is not None:
                bound.by_method[key] = message, handler
        return bound

    def on(self, message: type[MessageT]) -> Registrar[MessageT]:
        """Handle this message with a `def` or `async def` that takes it, and a `Context` if it has a second parameter.

        The result of a request's handler is the answer; None means an answer without fields.
        """
        method = getattr(message, "__method__", None)
        if method is None:
            raise TypeError(f"{message.__name__} has no method: write class {message.__name__}(..., method=...)")
        cls: type[Request[Any] | Notification] = cast("Any", message)
        _must_be_known(cls, method)
        if self.versions is not None:
            _must_be_spoken(cls, self.versions)

        def register(handler: Callable[..., Any]) -> None:
            if self._author:
                check_declared(f"{self._author}.on({message.__name__})", cls, self.extensions)
                check_handler(f"{self._author}.on({message.__name__})", handler)
            self.by_method[_key_of(cls)] = cls, handler

        return Registrar(register)

    def before(self, message: type[MessageT]) -> Interception[MessageT]:
        """Call a function with this message before its handler, which may be a built-in one.

        The function takes the message, and a `Context` if it has a second parameter. It returns None to pass the
        message on, a message of the same class to pass that on instead, or the answer. For a notification, True ends
        the chain.
        """
        cls: type[Request[Any] | Notification] = cast("Any", message)
        _must_be_known(cls, cls.__method__)
        if self._own_interceptors is None:
            self._own_interceptors = Interceptors()
            self.interceptors.append(self._own_interceptors)
        return Interception(functools.partial(self._own_interceptors.before, cls))

    def on_arrival(self, message: type[Notification], arrived: Callable[[Any, bytes | Raw], None]) -> None:
        """Call this function with each such notification on arrival, before its handler if there is one.

        The function gets the notification, and its params as JSON. It must be fast. It is called in the order of the
        wire.
        """
        self.arrivals[message.__method__] = (message, arrived)

    def on_request(self, method: str) -> Callable[[RawHandlerT], RawHandlerT]:
        """Handle a request by its method, with params and result as plain JSON values."""
        return self._register_raw(method, is_request=True)

    def on_notification(self, method: str) -> Callable[[RawHandlerT], RawHandlerT]:
        """Handle a notification by its method, with params as plain JSON values."""
        return self._register_raw(method, is_request=False)

    def on_other(self, handler: OtherHandlerT) -> OtherHandlerT:
        """Handle messages without a handler: `handler(method, params, context)`, in plain JSON values."""
        self.others = handler
        return handler

    @property
    def methods(self) -> set[str]:
        """The methods of the requests and notifications that have handlers of their own."""
        return {method for method, _ in self.by_method}

    def handles(self, message: type[Request[Any] | Notification]) -> bool:
        """Whether this message has a handler of its own."""
        return _key_of(message) in self.by_method

    def check_versions(self, versions: Collection[int]) -> None:
        """Raise ValueError if one of these handlers is for a message that no peer of these versions speaks."""
        for message, _ in self.by_method.values():
            if message is not None:
                _must_be_spoken(message, versions)

    def in_threads(self, *, of_client: bool = False) -> Handlers:
        """Return these handlers of an author, with those in threads that may block."""
        it = Handlers(self.versions)
        it.by_method = {
            (method, is_request): (message, in_thread_if_answers(is_request, handler, of_client=of_client))
            for (method, is_request), (message, handler) in self.by_method.items()
        }
        it.others, it.arrivals, it.interceptors = self.others, self.arrivals, self.interceptors
        return it

    def over(self, others: Handlers) -> Handlers:
        """Return these handlers, and those of `others` for messages without a handler here."""
        both = Handlers(self.versions)
        both.by_method = others.by_method | self.by_method
        both.others = self.others or others.others
        both.arrivals = others.arrivals | self.arrivals
        both.interceptors = [*others.interceptors, *self.interceptors]
        return both

    def _register_raw(self, method: str, *, is_request: bool) -> Callable[[RawHandlerT], RawHandlerT]:
        def register(handler: RawHandlerT) -> RawHandlerT:
            if self._author:
                kind = "on_request" if is_request else "on_notification"
                check_handler(f"{self._author}.{kind}({method!r})", handler)
            self.by_method[method, is_request] = None, handler
            return handler

        return register

    # For the engine

    def add_routes(self, routes: Routes, peer: Peer) -> None:
        """Add the routes of these handlers to those of a peer; they replace those of the same methods."""
        maker = RouteMaker(peer, are_of_home=self._are_of_home)
        arrivals = {method: route.arrived for method, route in routes.tells.items() if route.arrived is not None}
        routes.makers.append(functools.partial(self._call_route, maker))
        routes.calls.clear()
        for (method, is_request), entry in self.by_method.items():
            if not is_request and (route := maker.route(method, *entry, is_request=False)) is not None:
                routes.put_tell(method, route)
        for old, new in legacy.RENAMED_METHODS.items():
            if new in routes.tells:
                routes.tells.setdefault(old, routes.tells[new])
        if (others := self.others) is not None:
            routes.other_call = lambda method: maker.other(method, others, is_request=True)
            routes.other_tell = lambda method: maker.other(method, others, is_request=False)
        for method, (notification, arrived) in self.arrivals.items():
            arrivals[method] = arrived
            if method not in routes.tells:
                routes.put_tell(method, maker.typed(notification, nothing_more))
        for method, arrived in arrivals.items():
            routes.tells[method].arrived = arrived
        for interceptors in self.interceptors:
            interceptors.add_routes(routes, peer)

    def _call_route(self, maker: RouteMaker, method: str) -> Route | None:
        """Return the route of a request, by its method or that method's present name; None if it has no handler."""
        for name in (method, legacy.RENAMED_METHODS.get(method, method)):
            if (entry := self.by_method.get((name, True))) is not None:
                return maker.route(name, *entry, is_request=True)
        return None


def in_thread_if_answers(
    is_request: bool,
    handler: Callable[..., Any],
    *,
    of_client: bool = False,
) -> Callable[..., Any]:
    """Return an author's handler, in a thread if it is plain, answers a request, and takes only the message.

    A handler of notifications keeps their order in the event loop, and the `Context` can be used only there. Our own
    plain handlers, such as those of services, do not block.
    """
    if (getattr(handler, "__module__", None) or "").startswith("accord."):
        return handler
    if of_client and elsewhere.get() is not None:
        return in_thread_of_user(handler)
    return in_thread(handler) if is_request and not takes_two(handler) else handler


def _key_of(message: type[Request[Any] | Notification]) -> tuple[str, bool]:
    """Return the key of this message's handler: its method, and whether it is a request."""
    return message.__method__, issubclass(message, Request)


def _must_be_known(message: type[Request[Any] | Notification], method: str) -> None:
    if method.startswith("_") or message.__module__.startswith("accord.schema."):
        return
    if methods(1).request(method) is None and methods(1).notification(method) is None:
        raise ValueError(
            f"{message.__name__}: the name of a custom method must begin with an underscore, got {method!r}"
        )


def _must_be_spoken(message: type[Request[Any] | Notification], versions: Collection[int]) -> None:
    if not is_spoken(message, versions):
        ours = " and ".join(map(str, sorted(versions)))
        raise ValueError(
            f"{message.__name__} belongs to version {versions_of(message)[0]} of the protocol, and the connection "
            f"speaks version {ours}: register a class of {' or '.join(f'accord.v{it}' for it in sorted(versions))}"
        )


class RouteMaker:
    """Makes the routes of one peer."""

    def __init__(self, peer: Peer, *, are_of_home: bool = False) -> None:
        self.peer = peer
        self._are_of_home = are_of_home
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
        takes_context = takes_two(handler)
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
            tell = functools.partial(_swap, handler, self.context) if takes_context else handler
            return Route(row.name, tell=tell, **common)
        peer, spans, handshake = self.peer, self.peer.spans, message.__handshake__

        def call(request: Any, incoming: IncomingRequest) -> Any:
            """Call the handler, after the capabilities and the trace context are set."""
            if handshake:
                peer.capabilities = Capabilities(declared_in(request), handshake_meta=request.meta)
            meta = getattr(request, "meta", None)  # a value with an unknown tag has no fields
            if meta is not None and (trace := trace_in(meta)):
                context = (Context(peer, incoming),) if takes_context else ()
                result = carrying(trace, functools.partial(handler, request, *context))
            elif takes_context:
                result = handler(request, Context(peer, incoming))
            else:
                result = handler(request)
            return result if spans is None else spans.answering(request, result, peer.role)

        return Route(row.name, call=call, answer=_answerer(row.name, row.result), **common)

    def around(
        self,
        message: type[Request[Any] | Notification],
        inner: Route | None,
        intercept: Callable[[Any, Context, Callable[[Any], Any] | None], Any],
    ) -> Route:
        """Return the route of a message that goes to `intercept` before the handler of `inner`.

        `intercept` takes the message, its context, and a function that passes a message to that handler, None without
        one.
        """
        alone = self.typed(message, nothing_more)
        if inner is not None:
            alone.handler = inner.handler
        if not issubclass(message, Request):
            forward = None if inner is None else _with_handler(inner, inner.tell)
            alone.tell = lambda notification: intercept(notification, self.context, forward)
            return alone

        def call(request: Any, incoming: IncomingRequest) -> Any:
            go_on = None if inner is None else _with_handler(inner, functools.partial(_called, inner, incoming))
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
    ) -> Route | None:
        """The route of a method to its handler, which takes this class of message, or plain JSON values.

        None if these handlers are found in a home that has none for it.
        """
        if self._are_of_home and (handler := handler(self.peer.home)) is None:
            return None
        if message is not None:
            return self.typed(message, handler)
        return self._plain(method, handler, with_context(handler), is_request=is_request)

    def other(self, method: str, handler: Callable[..., Any], *, is_request: bool) -> Route:
        """Return the route of a method without its own handler to the handler of all such methods."""
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
    """Return a class's settings for its messages in the engine."""
    if message is None:
        return {}
    if issubclass(message, Request):
        return {"handshake": message.__handshake__}
    return {"immediate": message.__immediate__, "stream": message.__stream__}


def _object_in(raw: bytes | Raw) -> Json:
    """Return these params as a plain JSON value; raises DecodeError unless they are an object."""
    params = codec.loads(raw)
    if not isinstance(params, dict):
        raise DecodeError("$", "params must be an object")
    return cast("Json", params)


def _decode(decode: Callable[[bytes | Raw, Any], Any], params: Any, raw: bytes | Raw) -> Any:
    return decode(raw, params)


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


def _with_handler(inner: Route, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that passes a message to the handler of this route, in the handler's form."""
    if inner.decode is _object_in:
        return lambda message: call(codec.plain(message))
    return call


def _called(inner: Route, incoming: IncomingRequest, message: Any) -> Any:
    return inner.call(message, incoming)


def with_context(handler: Callable[..., Any]) -> Callable[[Any, Context], Any]:
    """A function of a message and its context that calls this handler, which may take the message alone."""
    return handler if takes_two(handler) else lambda message, _: handler(message)


def _swap(handler: Callable[[Any, Context], Any], context: Context, message: Any) -> Any:
    return handler(message, context)


def _suspends(handler: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004


@functools.cache  # all connections share them
def _tolerant_decoder(params: Any) -> Callable[[bytes | Raw], Any]:
    return functools.partial(_decode, codec.decode, params)


@functools.cache
def _answerer(method: str, result_type: Any) -> Callable[[RequestId, Any], bytes]:
    """Return a function that makes the answer's frame from a handler's result; raises EncodeError for another type."""
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
