"""The peer's requests: started in order, cancelled on request, and answered exactly once.

A request goes through these states:

    arrived ──▶ waits to begin ──▶ its handler runs ──▶ answered

It starts after all earlier requests, and after the earlier notifications of its session have started. It also waits
while output is full (`HeldRequests`). A `def` handler is called directly; an `async def` handler runs in a task of its
own. A request is answered whatever its handler does: it may raise, be cancelled, or never start. A request that is
cancelled before it has begun is started, and cancelled right after that, so that its handler can still clean up.

`unstepped` counts tasks that were created but have not had their first step. While there are any, a `def` handler must
wait for the next iteration of the loop: its code would otherwise run before theirs.

**The gate** (`HandshakeGate`) decides which messages may come at all. The handshake is the request that opens a
connection: `initialize`, or `proxy/initialize` for a proxy.

| | before the handshake | while it is being answered | answered, repeatable | afterwards |
|---|---|---|---|---|
| the handshake | passes | -32600 | passes | -32600 |
| another request | -32600 | waits | passes | passes |
| a notification | ignored | waits | passes | passes |

A handshake is repeatable if the version of the protocol allows it (version 2), until another request passes.

The messages that wait are counted (see `flow_control`): past a limit the connection stops reading.

After a handshake that was answered with an error the gate is in the state from before it, and the messages that waited
are refused or ignored in that state.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, Literal, cast

import msgspec
from msgspec import Raw

from accord._internal.tasks import Tasks, give_up, pass_on
from accord.engine.flow_control import Backlog, Outbox
from accord.engine.lanes import Lanes, inside
from accord.engine.routes import MISFITS, Route
from accord.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    REQUEST_CANCELLED,
    AccordError,
    ConnectionClosed,
    DecodeError,
    RequestError,
)
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import NotificationFrame, OpenRequests, RequestFrame, key_of
from accord.mistakes import WrongReturn, error_of_author, place_of
from accord.schema.codec import REFUSALS

log = logging.getLogger("accord")

Passage = Literal["pass", "wait", "refuse", "ignore"]
State = Literal["before", "during", "repeatable", "after"]
Kind = Literal["handshake", "call", "tell"]

_PASSAGES: dict[State, dict[Kind, Passage]] = {
    "before": {"handshake": "pass", "call": "refuse", "tell": "ignore"},
    "during": {"handshake": "refuse", "call": "wait", "tell": "wait"},
    "repeatable": {"handshake": "pass", "call": "pass", "tell": "pass"},
    "after": {"handshake": "refuse", "call": "pass", "tell": "pass"},
}

_PROBLEMS: dict[State, str] = {
    "before": "initialize must come before {method}",
    "during": "another initialize has not been answered yet",
    "after": "the connection is already initialized",
}
"""The reasons why a request is refused."""


class HandshakeGate(msgspec.Struct, eq=False):
    """Decides which messages may pass, and holds those that wait. Pure."""

    state: State = "before"
    waiting: list[RequestFrame | NotificationFrame] = []
    _earlier: State = "before"
    """The state from before the handshake that is being answered."""
    _calls: set[Hashable] = set()
    """The ids of the held calls, by `key_of`."""

    def passage(self, message: RequestFrame | NotificationFrame, *, handshake: bool = False) -> Passage:
        """Decide what to do with this message; `handshake` is the trait of its class. One that waits is held here."""
        kind: Kind = "handshake" if handshake else "tell" if isinstance(message, NotificationFrame) else "call"
        passage = _PASSAGES[self.state][kind]
        if passage == "pass" and handshake:
            self._earlier, self.state = self.state, "during"
        elif passage == "pass" and kind == "call":
            self.state = "after"
        elif passage == "wait":
            self.keep(message)
        return passage

    def keep(self, message: RequestFrame | NotificationFrame) -> None:
        """Hold this message until the handshake is answered."""
        self.waiting.append(message)
        if isinstance(message, RequestFrame):
            self._calls.add(key_of(message.id))

    def keeps(self, request_id: RequestId | None) -> bool:
        """Whether a call with this id waits."""
        return request_id is not None and key_of(request_id) in self._calls

    def answered(self, *, well: bool, repeatable: bool = False) -> list[RequestFrame | NotificationFrame]:
        """The handshake has been answered. Returns the messages that waited: each has to ask for its passage again."""
        self.state = self._earlier if not well else "repeatable" if repeatable else "after"
        waiting, self.waiting, self._calls = self.waiting, [], set()
        return waiting

    def problem(self, message: RequestFrame) -> str:
        """Return why this request was refused."""
        return _PROBLEMS[self.state].format(method=message.method)


class IncomingRequest(msgspec.Struct, eq=False):
    """A request of the peer that has no answer yet."""

    id: RequestId
    key: Hashable
    """Its key in tables: the `key_of` its id."""
    method: str
    route: Route | None
    """Its route; None if it has no handler."""
    owner: IncomingRequests
    size: int
    """Bytes of its frame; 0 while it is held."""
    on_answered: Callable[[bool], None] | None
    """Called after its answer, with whether that is a result; None if no call is needed."""
    lane: str | None = None
    in_lane: bool = False
    """Whether notifications that arrived before it have not started yet."""
    running: bool = True
    cancelled: bool = False
    stepped: bool = False
    """Whether the handler's task has had its first step."""
    task: asyncio.Task[None] | None = None
    to_begin: Callable[[], None] | None = None
    """Starts the handler; None once it was called, and for a request that did not wait."""
    on_cancel: Callable[[], None] | None = None
    """Called instead of cancelling the task, if the handler requested that."""
    after_answer: list[Callable[[], Awaitable[Any] | None]] | None = None

    holding_up = None  # a request's handler never delays an answer

    def begin(self) -> None:
        """Start the handler; a second time does nothing."""
        begin, self.to_begin = self.to_begin, None
        if begin is not None:
            begin()
            if self.cancelled:
                self._cancel_task()

    def cancel(self) -> None:
        """Cancel the handler. One that has not started is cancelled right after its start."""
        self.cancelled = True
        if self.to_begin is None:
            self._cancel_task()

    def _cancel_task(self) -> None:
        if self.task is not None:
            # The task's first step is already in the loop's queue; this comes after it.
            asyncio.get_running_loop().call_soon(self._cancel_now, self.task)

    def _cancel_now(self, task: asyncio.Task[None]) -> None:
        if self.on_cancel is not None:
            self.on_cancel()
        else:
            task.cancel()

    def after(self, do: Callable[[], Awaitable[Any] | None]) -> None:
        """Call this function once the answer has been sent; now, if it has been."""
        if self.after_answer is None:
            self.after_answer = []
        self.after_answer.append(do)
        if not self.running:
            self.owner.call_after_answer(self)


EMPTY = Raw(b"{}")
"""The params of a message without any."""

WEIGHT = 1_000
"""Bytes of memory per held request, apart from its frame."""


class HeldRequests(msgspec.Struct, eq=False):
    """The requests that wait for room in the output."""

    _backlog: Backlog
    count: int = 0
    _in_order: deque[tuple[IncomingRequest, int]] | None = None  # an empty deque takes 760 bytes of each connection
    """Requests that a cancellation has started early stay here, and are counted, until they would have started."""
    _of: dict[str | None, deque[IncomingRequest]] = {}

    def put(self, request: IncomingRequest, message: RequestFrame) -> None:
        """Hold this request, after all others."""
        size = request.size + WEIGHT
        request.lane, request.size = session_of(message.params), 0
        self.count += 1
        if self._in_order is None:
            self._in_order = deque()
        self._in_order.append((request, size))
        self._of.setdefault(request.lane, deque()).append(request)
        self._backlog.add(size)

    def begun(self, request: IncomingRequest, size: int) -> None:
        """Stop holding this request: its handler starts."""
        request.size = size
        self.count -= 1

    def drop(self) -> None:
        """Forget all of them."""
        self.count = 0
        self._in_order = None
        self._of.clear()

    def take(self) -> IncomingRequest | None:
        """Remove and return the next one; None if none is left."""
        while self._in_order:
            request, size = self._in_order.popleft()
            self._backlog.remove(size)
            if request.size == 0:
                of_session = self._of[request.lane]
                of_session.popleft()
                if not of_session:
                    del self._of[request.lane]
                return request
        return None

    def take_all_of(self, lane: str | None) -> Iterable[IncomingRequest]:
        """Remove and return those of this session."""
        return self._of.pop(lane, ())


class _InSession(msgspec.Struct):
    session_id: str | None = msgspec.field(default=None, name="sessionId")


_in_session = msgspec.json.Decoder(_InSession)


def session_of(params: Raw | bytes | None) -> str | None:
    """Return the session that params name; None also for invalid params, which get an error later."""
    try:
        return _in_session.decode(params or EMPTY).session_id
    except REFUSALS:
        return None


class IncomingRequests:
    """Handles and answers the peer's requests on one connection."""

    def __init__(
        self,
        open_requests: OpenRequests[Any, IncomingRequest],
        outbox: Outbox,
        lanes: Lanes,
        tasks: Tasks,
        backlog: Backlog,
        *,
        most: int,
        most_bytes: int,
        debug: bool,
        debug_hint: str = "",
    ) -> None:
        self.unstepped = 0
        """Tasks of handlers that have not had their first step."""
        self._deferred: deque[tuple[IncomingRequest, Route]] | None = (
            None  # an empty one takes 760 bytes of each connection
        )
        """Requests that wait to begin; None while there are none."""
        self.held = HeldRequests(backlog)
        """Requests that wait for room in the output."""
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        """Bytes of the requests that are being handled."""
        self._open = open_requests
        self._outbox = outbox
        self._lanes = lanes
        self._tasks = tasks
        self.link_has_ended = False
        self._debug = debug
        self._debug_hint = debug_hint
        """The hint in the log on how to send details of errors to the peer."""
        self._loop = asyncio.get_running_loop()

    def called(
        self, message: RequestFrame, route: Route | None, size: int, on_answered: Callable[[bool], None] | None = None
    ) -> bool:
        """Handle this request, whose frame has `size` bytes. Returns False if an unanswered request has its id."""
        key = key_of(message.id)
        request = IncomingRequest(message.id, key, message.method, route, self, size, on_answered)
        if not self._open.add_incoming(key, request):
            return False
        if self._outbox.full or self.held.count:
            request.to_begin = functools.partial(self._take_held, request, message, size)
            self.held.put(request, message)
        else:
            self._take(request, message)
        return True

    def has_room(self) -> None:
        """Start held requests while there is room in the output."""
        outbox = self._outbox
        outbox.corked = True
        try:
            while not outbox.full and (request := self.held.take()) is not None:
                request.begin()
        finally:
            outbox.uncork()

    def _take_held(self, request: IncomingRequest, message: RequestFrame, size: int) -> None:
        self.held.begun(request, size)
        self._take(request, message)

    def _take(self, request: IncomingRequest, message: RequestFrame) -> None:
        self._bytes += request.size
        if len(self._open.incoming) > self._most or self._bytes > self._most_bytes:
            problem = self._too_many()
            if problem is not None:
                self._answer_error(request, INVALID_REQUEST, f"Invalid request: {problem}")
                return
        route = request.route
        if route is None:
            self._answer_error(request, METHOD_NOT_FOUND, "Method not found", {"method": message.method})
            return
        raw = message.params or EMPTY
        try:
            params = route.decode(raw)
        except MISFITS:
            try:
                params = route.decode_tolerantly(raw)
            except DecodeError as error:
                data = {"path": error.path, "problem": error.problem}
                self._answer_error(request, INVALID_PARAMS, f"Invalid params: {error}", data)
                return
        request.lane = route.lane_of(params)
        begin = self._start if route.suspends else self._call
        if self._lanes.busy or self._deferred or self.unstepped:
            request.to_begin = functools.partial(begin, request, route, params)
            self._begin_in_order(request, route)
        else:
            begin(request, route, params)

    def _too_many(self) -> str | None:
        """Return why this request cannot be handled now; None if it can."""
        handled = len(self._open.incoming) - self.held.count
        if handled > self._most:
            return f"{self._most:,} requests are already being handled; wait until some are answered"
        if handled > 1 and self._bytes > self._most_bytes:
            return (
                f"with this one, the requests being handled would have {self._bytes:,} bytes; "
                f"the limit is {self._most_bytes:,}; send it again once some are answered"
            )
        return None

    def begin_all_of(self, lane: str | None) -> None:
        """Start all requests that have arrived for this session: an immediate notification must not overtake them."""
        self._begin_deferred_of(lane)
        if self.held.count:
            for request in self.held.take_all_of(lane):
                request.begin()
            self._begin_deferred_of(lane)

    def _begin_deferred_of(self, lane: str | None) -> None:
        for request, _ in list(self._deferred or ()):
            if request.lane == lane:
                request.begin()

    def cancel(self, request_id: RequestId | None) -> bool:
        """Cancel this request. False if no unanswered request has this id."""
        request = None if request_id is None else self._open.incoming.get(key_of(request_id))
        if request is not None:
            request.cancel()
        return request is not None

    async def end(self, grace: float) -> None:
        """Cancel the handlers that still run, and answer every open request."""
        for request in list(self._open.incoming.values()):
            if request.size == 0:  # held: its handler would be started only to be cancelled
                self._answer_error(request, REQUEST_CANCELLED, "Request cancelled")
            else:
                request.begin()
        self.held.drop()
        await self._tasks.end(grace)
        for request in list(self._open.incoming.values()):
            self._answer_error(request, REQUEST_CANCELLED, "Request cancelled")

    # Opening sessions

    def _begin_in_order(self, request: IncomingRequest, route: Route) -> None:
        """Start a request after the earlier notifications of its session, and after all earlier requests."""
        request.in_lane = self._lanes.mark_start(request.lane, functools.partial(self._reached, request))
        if request.in_lane or self._deferred or self._would_overtake(route):
            if self._deferred is None:
                self._deferred = deque()
                self._loop.call_soon(self._begin_deferred)
            self._deferred.append((request, route))
        else:
            request.begin()

    def _reached(self, request: IncomingRequest) -> None:
        """The notifications before this request have started."""
        request.in_lane = False
        self._begin_those_that_may()

    def _begin_deferred(self) -> None:
        self._begin_those_that_may()
        if self._deferred:
            self._loop.call_soon(self._begin_deferred)
        else:
            self._deferred = None

    def _begin_those_that_may(self) -> None:
        """Start deferred requests in the order of arrival, up to one that has to wait.

        A request waits for a notification that can start, but not for one whose handler is suspended.
        """
        while self._deferred:
            request, route = self._deferred[0]
            if request.to_begin is not None:
                if (request.in_lane and self._lanes.is_between(request.lane)) or self._would_overtake(route):
                    return
                request.begin()
            self._deferred.popleft()

    def _would_overtake(self, route: Route) -> bool:
        """Whether a handler would run before those of earlier requests: their tasks have their first step later."""
        return self.unstepped > 0 and not route.suspends

    def _call(self, request: IncomingRequest, route: Route, params: Any) -> None:
        """Call a `def` handler, which may return something to await."""
        try:
            result = route.call(params, request)
        except BaseException as error:
            self._fail(request, error)
            pass_on(error)
        else:
            if result is not None and hasattr(result, "__await__"):
                self._start(request, route, params, result)
            else:
                self.succeed(request, route, result)

    def _start(self, request: IncomingRequest, route: Route, params: Any, begun: Awaitable[Any] | None = None) -> None:
        self.unstepped += 1
        work = self._serve(request, route, params, begun)
        request.task = self._tasks.start(work, request.method, functools.partial(self._ended, request, begun))

    def _ended(self, request: IncomingRequest, begun: Awaitable[Any] | None, task: asyncio.Task[Any]) -> None:
        self._tasks.forget(task)
        if not request.stepped:
            give_up(begun)
            # A task that is cancelled before its first step never runs its body, and so could not answer.
            self.unstepped -= 1
            self._answer_error(request, REQUEST_CANCELLED, "Request cancelled")

    async def _serve(self, request: IncomingRequest, route: Route, params: Any, begun: Awaitable[Any] | None) -> None:
        self.unstepped -= 1
        request.stepped = True
        inside.set(request)
        try:
            result = await (route.call(params, request) if begun is None else begun)
        except BaseException as error:
            self._fail(request, error)
            pass_on(error)
        else:
            self.succeed(request, route, result)

    # Answering

    def succeed(self, request: IncomingRequest, route: Route, result: Any) -> None:
        """Answer with this; the handler may continue."""
        if not request.running:  # it was answered while its handler went on
            return
        try:
            frame = route.answer(request.id, result)
        except Exception as error:
            wrong = WrongReturn(f"{place_of(route.handler)}, returned what is no answer to {request.method}: {error}")
            self._fail(request, error if self._debug else wrong)
        else:
            self._answer(request, frame, True)

    def _fail(self, request: IncomingRequest, error: BaseException) -> None:
        self._answer_error(request, *self.failure(request, error))

    def failure(self, request: IncomingRequest, error: BaseException) -> tuple[int, str, Any]:
        """Return the code, message and data for the peer of a handler's error; the log gets the details."""
        chosen = isinstance(error, RequestError) and _makes_sense(error)
        is_public = isinstance(error, AccordError) and error.may_be_told(self._open)
        is_cut_off = self.link_has_ended and isinstance(error, ConnectionClosed)
        if is_cut_off:
            log.info("the handler of %s ended with its connection: %s", request.method, error)
        elif not chosen and not isinstance(error, asyncio.CancelledError):
            log.error(
                "the handler of %s failed%s",
                request.method,
                "" if is_public or self._debug else f'; the peer was told only "Internal error"{self._debug_hint}',
                exc_info=error if self._debug else error_of_author(error),
            )
        # cancellation: a cancelled request is answered with its result or with this code, whatever its handler raised.
        if request.cancelled or isinstance(error, asyncio.CancelledError):
            return REQUEST_CANCELLED, "Request cancelled", None
        if chosen and isinstance(error, RequestError):
            return error.code, error.message, error.data
        if is_cut_off:  # read by other clients that follow this work
            return INTERNAL_ERROR, "The connection of the client that asked has ended", None
        data = {"error": _described(error)} if self._debug else None
        return INTERNAL_ERROR, str(error) if is_public else "Internal error", data

    def _answer_error(self, request: IncomingRequest, code: int, message: str, data: Any = None) -> None:
        self._answer(request, wire_messages.encode_error(request.id, code, message, data), False)

    def _answer(self, request: IncomingRequest, frame: bytes, well: bool) -> None:
        request.running = False
        if not self._open.remove_incoming(request.key):
            return
        self._bytes -= request.size
        self._outbox.answer(frame)
        if request.on_answered is not None:
            request.on_answered(well)
        if request.after_answer is not None:
            self.call_after_answer(request)

    def call_after_answer(self, request: IncomingRequest) -> None:
        """Call the functions that wait until the answer was sent."""
        waiting, request.after_answer = request.after_answer or [], None
        for do in waiting:
            self._loop.call_soon(self._tasks.call, do, f"what comes after {request.method}")


def _makes_sense(error: RequestError) -> bool:
    """Whether this error can be sent: a handler may have put anything into it."""
    code, message = cast("object", error.code), cast("object", error.message)
    return isinstance(code, int) and isinstance(message, str)


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its own __str__ failed
        return type(error).__name__
