"""Interceptors: functions that see a message before its handler, and handlers of one session; added and removed live.

    message ──▶ `before` functions, in order ──▶ the handler of its session, else the handler of all ──▶ answer
                    └── an answer, a RequestError ─────────────────────────────────────────────────────────┘

A `before` function returns None to let the message go on, a message of the same class to let that go on in its place,
or the answer, which ends the way. For a notification, which has no answer, True ends the way.

They change routes, not handlers: a method that has an interceptor gets a route around the one of its handler, whichever
source that came from, and loses it with its last interceptor. So a message without interceptors pays nothing, and a
handler that is registered later is found too. One `Interceptors` may serve many connections: those of an `Agent` hold
for every client.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast, overload

from accord._internal.tasks import is_awaitable
from accord.engine.peer import Context, Peer
from accord.engine.route_maker import RouteMaker, with_context
from accord.engine.routes import Route, Routes
from accord.errors import RequestError
from accord.mistakes import check_handler
from accord.schema.base import Notification, Request

if TYPE_CHECKING:
    from collections.abc import Awaitable

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
        """Remove what was registered; a second time does nothing."""
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


class _Key(NamedTuple):
    method: str
    is_request: bool


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

    def __init__(self) -> None:
        self._entries: dict[_Key, _Entry] = {}
        self._installed: weakref.WeakSet[Routes] = weakref.WeakSet()

    # Registering

    def before(self, message: Message, function: Callable[..., Any]) -> Callable[[], None]:
        """Call this function before the handlers of a message; the result removes it."""
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
        """Handle this message by this function in one session, in place of an earlier one; the result removes it."""
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
        """The `before` functions for a connection of another version: its messages are converted, and what they say.

        `newer_of` gives the class that the other version has in place of a class, None for a method without one.
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
        key = _Key(message.__method__, issubclass(message, Request))
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(message)
        elif entry.message is not message:
            raise TypeError(
                f"{key.method} has interceptors for {entry.message.__module__}.{entry.message.__name__}; "
                f"register {message.__module__}.{message.__name__} on a connection of its own"
            )
        return entry, key

    def _changed(self, key: _Key) -> None:
        """Renew the route of this method where that is needed: with its first interceptor, and after its last."""
        entry = self._entries[key]
        if not entry.before and not entry.of_sessions:
            del self._entries[key]
        for routes in list(self._installed):
            routes.renew(*key)

    # For the engine

    def add_routes(self, routes: Routes, peer: Peer) -> None:
        """Stand before the handlers of a peer."""
        maker = RouteMaker(peer)
        self._installed.add(routes)
        routes.intercept(self, lambda key, inner: self._around(maker, _Key(*key), inner))

    def _around(self, maker: RouteMaker, key: _Key, inner: Route | None) -> Route | None:
        """The route around this one; the same one if its method has no interceptor."""
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
    """Ask a function of one version about a message of another; what it says is converted back."""
    said = step(to_older(message), context)
    said = await said if is_awaitable(said) else said
    return said if said is None or said is True else to_newer(said)


def _pass(steps: Sequence[Step], message: Any, context: Context, handle: Callable[[Any], Any]) -> Any:
    """The way of one message past its interceptors: as far as it goes without waiting, then as a coroutine."""
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
    """The message that goes on after a `before` function has said this, and whether the way is over."""
    if said is None:
        return message, False
    if isinstance(said, cast("type[Any]", message.__class__)):
        return said, False
    return message, True
