"""Handlers: functions registered by message class or by method.

A handler is a `def` or an `async def` that takes its message, and a `Context` if it wants one. A `def` is called where
its message arrives, with no task between, so it must not block. Those that authors register for a client or an agent
may: `Handlers.in_threads` gives them a thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any, TypeVar, cast

from msgspec import Raw

from accord._internal.tasks import elsewhere, in_thread, in_thread_of_user
from accord.engine.interceptors import Interception, Interceptors, Registrar
from accord.engine.peer import Context, Peer
from accord.engine.route_maker import RouteMaker, nothing_more, takes_two
from accord.engine.routes import Route, Routes
from accord.mistakes import check_handler
from accord.schema import legacy
from accord.schema.base import Json, Notification, Request
from accord.schema.capabilities import check_declared
from accord.schema.methods import is_spoken, methods, version_of

MessageT = TypeVar("MessageT", bound="Request[Any] | Notification")
RawHandlerT = TypeVar("RawHandlerT", bound="Callable[[Json], object] | Callable[[Json, Context], object]")
OtherHandlerT = TypeVar("OtherHandlerT", bound="Callable[[str, Json, Context], object]")


class Handlers:
    """Functions that handle messages, by message class, or by method for plain JSON values."""

    def __init__(self, versions: Collection[int] | None = None, *, author: str = "") -> None:
        self._author = author
        """What an author calls these handlers, as `@agent`: then their functions are checked; empty for our own."""
        self.extensions: Collection[type] = ()
        """The extensions that the author's side declares: their messages may be handled."""
        self.versions = versions
        """The versions of the protocol that the peer may speak; None if that is not known here."""
        self.by_method: dict[tuple[str, bool], tuple[type[Request[Any] | Notification] | None, Callable[..., Any]]] = {}
        """By method, and whether it is a request: the class of the message, None for plain JSON, and its handler."""
        self.others: Callable[..., Any] | None = None
        self.arrivals: dict[str, tuple[type[Notification], Callable[[Any, bytes | Raw], None]]] = {}
        self.interceptors: list[Interceptors] = []
        """What comes before these handlers; the last one is the first that sees a message."""
        self._own_interceptors: Interceptors | None = None

    def on(self, message: type[MessageT]) -> Registrar[MessageT]:
        """Handle this message with a `def` or `async def` that takes it, and a `Context` if it wants one.

        What a request's handler returns is the answer; None stands for an answer without fields.
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

        The function takes the message, and a `Context` if it wants one. It returns None to let the message go on, a
        message of the same class to let that go on in its place, or the answer. For a notification, True ends the way.
        """
        cls: type[Request[Any] | Notification] = cast("Any", message)
        _must_be_known(cls, cls.__method__)
        if self._own_interceptors is None:
            self._own_interceptors = Interceptors()
            self.interceptors.append(self._own_interceptors)
        return Interception(functools.partial(self._own_interceptors.before, cls))

    def on_arrival(self, message: type[Notification], arrived: Callable[[Any, bytes | Raw], None]) -> None:
        """Call this function with each such notification on arrival, before its handler, if it has one.

        The function gets the notification, and its params as JSON. It must be quick. It is called in the order of the
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
        """Handle messages without a handler of their own: `handler(method, params, context)`, in plain JSON values."""
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
        """These handlers of an author's, with those in threads that may block."""
        it = Handlers(self.versions)
        it.by_method = {
            (method, is_request): (message, in_thread_if_answers(is_request, handler, of_client=of_client))
            for (method, is_request), (message, handler) in self.by_method.items()
        }
        it.others, it.arrivals, it.interceptors = self.others, self.arrivals, self.interceptors
        return it

    def over(self, others: Handlers) -> Handlers:
        """These handlers, and those of `others` for messages that have no handler here."""
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
        maker = RouteMaker(peer)
        arrivals = {method: route.arrived for method, route in routes.tells.items() if route.arrived is not None}
        routes.makers.append(functools.partial(self._call_route, maker))
        routes.calls.clear()
        for (method, is_request), entry in self.by_method.items():
            if not is_request:
                routes.put_tell(method, maker.route(method, *entry, is_request=False))
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
        """The route of a request, by its method or that method's present name; None if it has no handler."""
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
    """An author's handler, in a thread if it is plain, answers a request, and takes the message alone.

    A handler of notifications keeps their order in the event loop, and the `Context` can be used only there. Our own
    plain handlers, such as those of services, do not block.
    """
    if (getattr(handler, "__module__", None) or "").startswith("accord."):
        return handler
    if of_client and elsewhere.get() is not None:
        return in_thread_of_user(handler)
    return in_thread(handler) if is_request and not takes_two(handler) else handler


_keys: dict[tuple[str, bool], tuple[str, bool]] = {}
"""The keys of all handlers, so that the connections of a server share them."""


def _key_of(message: type[Request[Any] | Notification]) -> tuple[str, bool]:
    """What a handler of this message is found by: its method, and whether it is a request."""
    key = (message.__method__, issubclass(message, Request))
    return _keys.setdefault(key, key)


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
            f"{message.__name__} belongs to version {version_of(message)} of the protocol, and the connection speaks "
            f"version {ours}: register a class of {' or '.join(f'accord.v{it}' for it in sorted(versions))}"
        )
