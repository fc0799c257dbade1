"""Calls of theirs: started in order, cancelled on request, and answered exactly once whatever their handler does."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Raw

from accord.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_CANCELLED,
    DecodeError,
    EncodeError,
    RequestError,
)
from accord.jsonrpc import messages
from accord.jsonrpc.endpoint import Endpoint
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Call
from accord.lanes import Held, Lanes, inside
from accord.outbox import Outbox
from accord.routes import Route, Routes
from accord.schema.codec import REFUSALS
from accord.tasks import Tasks, is_awaitable

log = logging.getLogger("accord")

EMPTY = Raw(b"{}")


class Owed:
    """A call of theirs, from its arrival until it is answered."""

    __slots__ = ("_begin", "after_answer", "cancelled", "id", "lane", "method", "running", "stepped", "task")

    def __init__(self, request_id: RequestId, method: str) -> None:
        self.id = request_id
        self.method = method
        self.lane: str | None = None
        self.running = True
        self.cancelled = False
        self.stepped = False
        """Whether the handler's task has had its first step."""
        self.task: asyncio.Task[None] | None = None
        self._begin: Callable[[], None] | None = None
        self.after_answer: list[Callable[[], Awaitable[Any] | None]] | None = None

    # A request's handler never holds up an answer, so nobody need know when it waits.

    def begins_to_wait(self, answer: Held) -> None: ...

    def no_longer_waits(self, answer: Held) -> None: ...

    def will_begin(self, begin: Callable[[], None]) -> None:
        self._begin = begin

    def begin(self) -> None:
        """Start the handler; a second time does nothing."""
        begin, self._begin = self._begin, None
        if begin is not None:
            begin()

    def cancel(self) -> None:
        """Cancel the handler. One that has not started is started first, so that it sees its cancellation."""
        self.cancelled = True
        self.begin()
        if self.task is not None:
            # The task's first step is already in the loop's queue; this comes behind it.
            asyncio.get_running_loop().call_soon(self.task.cancel)

    def after(self, do: Callable[[], Awaitable[Any] | None]) -> None:
        """Do this once the answer is on its way."""
        if self.after_answer is None:
            self.after_answer = []
        self.after_answer.append(do)


class Serving:
    """What one connection owes its peer."""

    def __init__(
        self,
        endpoint: Endpoint[Any, Owed],
        routes: Routes,
        outbox: Outbox,
        lanes: Lanes,
        tasks: Tasks,
        *,
        on_answered: Callable[[Owed, bool], None] | None,
        debug: bool,
    ) -> None:
        self.unstepped = 0
        """Handlers whose task has not had its first step."""
        self._deferred = 0
        """Requests that wait for their turn to begin."""
        self._endpoint = endpoint
        self._routes = routes
        self._outbox = outbox
        self._lanes = lanes
        self._tasks = tasks
        self.on_answered = on_answered
        """Told of each answer that is sent, and whether it is a result; None when nobody needs to know."""
        self._debug = debug
        self._loop = asyncio.get_running_loop()

    def called(self, message: Call) -> bool:
        """Serve this call. False if its id is in use: then it cannot be answered under it."""
        owed = Owed(message.id, message.method)
        if not self._endpoint.owe(message.id, owed):
            return False
        route = self._routes.calls.get(message.method) or self._routes.other_call(message.method)
        if route is None:
            self._answer_error(owed, METHOD_NOT_FOUND, "Method not found", {"method": message.method})
            return True
        raw = message.params or EMPTY
        try:
            params = route.decode(raw)
        except REFUSALS:
            try:
                params = route.decode_tolerantly(raw)
            except DecodeError as error:
                data = {"path": error.path, "problem": error.problem}
                self._answer_error(owed, INVALID_PARAMS, f"Invalid params: {error}", data)
                return True
        owed.lane = route.lane_of(params)
        if self._lanes.busy or self._deferred or self.unstepped:
            owed.will_begin(functools.partial(self._begin, owed, route, params))
            self._begin_in_order(owed, route)
        else:
            self._begin(owed, route, params)
        return True

    def begin_all_of(self, lane: str | None) -> None:
        """Begin what has arrived for this session: something that overtakes lanes must not overtake its requests."""
        for owed in list(self._endpoint.owed.values()):
            if owed.lane == lane:
                owed.begin()

    def cancel(self, request_id: RequestId | None) -> bool:
        """They no longer want this answer. False if it is not being worked on."""
        owed = None if request_id is None else self._endpoint.owed.get(request_id)
        if owed is not None:
            owed.cancel()
        return owed is not None

    async def end(self, grace: float) -> None:
        """Cancel what still runs; what was called is answered all the same."""
        for owed in list(self._endpoint.owed.values()):
            owed.begin()
        await self._tasks.end(grace)
        for owed in list(self._endpoint.owed.values()):
            self._answer_error(owed, REQUEST_CANCELLED, "Request cancelled")

    # Beginning

    def _begin_in_order(self, owed: Owed, route: Route) -> None:
        """Begin a request: behind the notifications of its session, and behind the requests that came before it."""
        in_lane = self._lanes.mark_start(owed.lane, owed.begin)
        if in_lane or self._deferred or (self.unstepped and not route.suspends):
            # A notification that is suspended must not hold it up: when this is called, whatever could start has.
            self._deferred += 1
            self._loop.call_soon(self._begin_deferred, owed)
        else:
            owed.begin()

    def _begin_deferred(self, owed: Owed) -> None:
        self._deferred -= 1
        owed.begin()

    def _begin(self, owed: Owed, route: Route, params: Any) -> None:
        if route.suspends:
            self._start(owed, route, params)
            return
        try:
            result = route.call(params, owed)
        except Exception as error:
            self._fail(owed, error)
        else:
            if result is not None and is_awaitable(result):
                self._start(owed, route, params, result)
            else:
                self._succeed(owed, route, result)

    def _start(self, owed: Owed, route: Route, params: Any, begun: Awaitable[Any] | None = None) -> None:
        self.unstepped += 1
        work = self._serve(owed, route, params, begun)
        owed.task = self._tasks.start(work, owed.method, functools.partial(self._ended, owed))

    def _ended(self, owed: Owed, task: asyncio.Task[Any]) -> None:
        self._tasks.forget(task)
        if not owed.stepped:
            # A task that is cancelled before its first step never runs its body, and so could not answer.
            self.unstepped -= 1
            self._answer_error(owed, REQUEST_CANCELLED, "Request cancelled")

    async def _serve(self, owed: Owed, route: Route, params: Any, begun: Awaitable[Any] | None) -> None:
        self.unstepped -= 1
        owed.stepped = True
        inside.set(owed)
        try:
            result = await (route.call(params, owed) if begun is None else begun)
        except BaseException as error:
            self._fail(owed, error)
            if not isinstance(error, Exception | asyncio.CancelledError):
                raise
        else:
            self._succeed(owed, route, result)

    # Answering

    def _succeed(self, owed: Owed, route: Route, result: Any) -> None:
        try:
            frame = route.answer(owed.id, result)
        except EncodeError as error:
            self._fail(owed, error)
        else:
            self._answer(owed, frame, well=True)

    def _fail(self, owed: Owed, error: BaseException) -> None:
        if isinstance(error, RequestError):
            self._answer_error(owed, error.code, error.message, error.data)
        elif isinstance(error, asyncio.CancelledError):
            self._answer_error(owed, REQUEST_CANCELLED, "Request cancelled")
        else:
            log.error("the handler of %s failed", owed.method, exc_info=error)
            data = {"error": f"{type(error).__name__}: {error}"} if self._debug else None
            self._answer_error(owed, INTERNAL_ERROR, "Internal error", data)

    def _answer_error(self, owed: Owed, code: int, message: str, data: Any = None) -> None:
        self._answer(owed, messages.error_answer(owed.id, code, message, data), well=False)

    def _answer(self, owed: Owed, frame: bytes, *, well: bool) -> None:
        owed.running = False
        if not self._endpoint.pay(owed.id):
            return
        self._outbox.put(frame)
        if self.on_answered is not None:
            self.on_answered(owed, well)
        if owed.after_answer is not None:
            for do in owed.after_answer:
                self._loop.call_soon(self._tasks.call, do, f"what comes after {owed.method}")
            owed.after_answer = None
