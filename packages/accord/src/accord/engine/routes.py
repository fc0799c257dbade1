"""The route of each method: how its params are read, which handler is called, and how its answer is made."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw

from accord.errors import DecodeError
from accord.jsonrpc.chunked_decode import Sliced
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import notification_head
from accord.schema.base import Json
from accord.schema.codec import REFUSALS

MISFITS = (*REFUSALS, DecodeError)
"""The errors of `Route.decode`: a strict decoder raises one of msgspec's, the decoder of plain values DecodeError."""


def _no_handler(*_: Any) -> Any:
    raise LookupError(
        "this route is for the other kind of message: requests and notifications have routes of their own"
    )


def nothing_more(_: Any) -> None:
    """Do nothing: the message has a function for its arrival, or an interceptor."""


class Route(msgspec.Struct, eq=False):
    """The path of one method: from raw params to its handler, and from the handler's result to raw JSON."""

    method: str
    decode: Callable[[bytes | Raw], Any]
    """Strict and fast; raises one of `codec.REFUSALS`."""
    decode_tolerantly: Callable[[bytes | Raw], Any]
    """For params that the strict decoder refused; raises DecodeError."""
    lane_of: Callable[[Any], str | None]
    """Returns the session that these params belong to."""
    suspends: bool
    """Whether the handler is an `async def`."""
    handler: Callable[..., Any] = _no_handler
    """The function that was registered, for errors that name it."""
    tell: Callable[[Any], Any] = _no_handler
    """Takes the params of a notification."""
    call: Callable[[Any, Any], Any] = _no_handler
    """Takes the params and the request that they belong to (`IncomingRequest`)."""
    answer: Callable[[RequestId, Any], bytes] = _no_handler
    """Makes the answer's frame from the handler's result; raises EncodeError."""
    handshake: bool = False
    """Whether this request opens the connection."""
    immediate: bool = False
    """Whether this notification is handled on arrival, never through a lane."""
    stream: bool = False
    """Whether most of the traffic are notifications of this method."""
    arrived: Callable[[Any, bytes | Raw], None] | None = None
    """Called with each notification on arrival, before it enters a lane: its params as a value, and as JSON."""
    head: bytes = b""
    """The beginning of nearly every frame of a stream, up to its params; empty for other messages."""
    body: slice = slice(0)
    """Where the params of such a frame are."""

    def __post_init__(self) -> None:
        if self.stream:
            self.head = notification_head(self.method)
            self.body = slice(len(self.head), -1)

    def read(self, raw: bytes | Raw) -> Any:
        """The params in this JSON; raises DecodeError."""
        try:
            if raw.__class__ is not Sliced:
                return self.decode(raw)
        except MISFITS:
            pass
        return self.decode_tolerantly(raw)


Around: TypeAlias = Callable[[tuple[str, bool], Route | None], Route | None]
"""Makes the route around that of a method, which is a request or not; the same one if it has no interceptor."""


def _no_route(_: str) -> Route | None:
    return None


class Routes(msgspec.Struct, eq=False, weakref=True):
    """The routes of one connection."""

    calls: dict[str, Route] = {}
    """Routes of requests, made when their method first arrives: most connections see few of the methods."""
    tells: dict[str, Route] = {}
    """Routes of notifications; `put_tell` adds one."""
    stream: Route | None = None
    """The route of the notifications that make up most of the traffic."""
    makers: list[Callable[[str], Route | None]] = []
    """Functions that make the routes of requests. The one that was added last is tried first."""
    other_call: Callable[[str], Route | None] = _no_route
    """Makes the route of a request that no maker knows."""
    other_tell: Callable[[str], Route | None] = _no_route
    """Makes the route of a notification that is not in `tells`."""
    _around: dict[object, Around] = {}
    """The functions that wrap routes in others, by their owners; the last one is the outermost."""
    _inner: dict[str, Route | None] = {}
    """The routes of notifications that are wrapped in another one; None for one without a handler."""

    def put_tell(self, method: str, route: Route) -> None:
        """Handle the notifications of this method by this route, instead of an earlier one."""
        if method in self._inner:
            self._inner[method] = route
            self.renew(method, is_request=False)
            return
        self.tells[method] = route
        if route.head:
            self.stream = route
        elif self.stream is not None and self.stream.method == method:
            self.stream = None

    def clear(self) -> None:
        """Forget all routes: from now on no message has a handler."""
        self.calls.clear()
        self.tells.clear()
        self.makers.clear()
        self._around.clear()
        self._inner.clear()
        self.stream = None
        self.other_call = self.other_tell = _no_route

    def call(self, method: str) -> Route | None:
        """The route of a request whose method arrives for the first time; None if no handler takes it."""
        made = (make(method) for make in reversed(self.makers))
        route = next((it for it in made if it is not None), None)
        if self._around:
            route = self._surrounded((method, True), route)
        if route is not None:
            if not route.handshake:  # it comes once
                self.calls[method] = route
            return route
        return self.other_call(method)

    # Interceptors

    def intercept(self, by: object, around: Around, *, is_innermost: bool = False) -> None:
        """Wrap the handlers' routes in those that `around` makes, now and whenever `renew` is called."""
        self._around = {by: around, **self._around} if is_innermost else {**self._around, by: around}
        self.calls.clear()
        for method in list(self.tells):
            self.renew(method, is_request=False)

    def renew(self, method: str, is_request: bool) -> None:
        """Make the route of this method again, because its interceptors have changed."""
        if is_request:
            self.calls.pop(method, None)
            return
        before = self.tells.pop(method, None)
        inner = self._inner.pop(method) if method in self._inner else before
        route = self._surrounded((method, False), inner)
        if self.stream is before:
            self.stream = None
        if route is not None:
            if route is not inner:
                self._inner[method] = inner
            if before is not None:
                route.arrived = before.arrived
            self.tells[method] = route
            if route.head:
                self.stream = route

    def _surrounded(self, key: tuple[str, bool], route: Route | None) -> Route | None:
        for around in self._around.values():
            route = around(key, route)
        return route


def lane_of(message: type[msgspec.Struct]) -> Callable[[Any], str | None]:
    """Return a function that returns the session of params of this class; None if they have none."""
    if "session_id" not in message.__struct_fields__:
        return _no_lane
    if message.__dict__.get("__params__") is None:
        return operator.attrgetter("session_id")
    return _perhaps_lane  # its params may be `Unknown`, which has no fields


def plain_lane(params: Json) -> str | None:
    """Return the session of params that are a plain JSON value."""
    session_id = cast("Mapping[str, Json]", params).get("sessionId") if isinstance(params, dict) else None
    return session_id if isinstance(session_id, str) else None


def _no_lane(_: Any) -> str | None:
    return None


def _perhaps_lane(message: Any) -> str | None:
    return getattr(message, "session_id", None)
