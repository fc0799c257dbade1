"""The live link: an endpoint, a transport, and the tasks between them. It closes once.

In: the transport delivers frames, many at a time; each becomes a message and is handled where it arrives, unless order
says that it has to stand in a lane (`lanes`). Nothing here makes a task for a message that needs none.

Out: frames go to the `outbox`, which joins what belongs together.

The end, whoever brings it about: what was received is delivered, for at most `grace`; then lanes and handlers are
cancelled and awaited, requests that are out fail with `ConnectionClosed`, and what is queued is flushed while the other
side still reads. Every step has a deadline.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from msgspec import Raw

from accord.calls import Asked, Owed
from accord.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    DecodeError,
    EncodeError,
    Overflow,
    PeerError,
    ProtocolError,
    RequestError,
    Timeout,
)
from accord.gate import INITIALIZERS, Gate
from accord.intake import MARK, Intake
from accord.jsonrpc import messages
from accord.jsonrpc.endpoint import Endpoint
from accord.jsonrpc.frames import Oversized, RequestId
from accord.jsonrpc.messages import Answer, Call, Malformed, Tell
from accord.lanes import Lanes, inside
from accord.outbox import Outbox
from accord.routes import Route, Routes
from accord.schema.codec import REFUSALS, decode
from accord.schema.v1.protocol import CancelRequestNotification
from accord.trace import IN, Observer, Watch
from accord.transports.base import End, Transport

log = logging.getLogger("accord")

Role = Literal["agent", "client"]

EMPTY = Raw(b"{}")
CANCEL_REQUEST = "$/cancel_request"
KEPT_POLLUTION = 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The deadlines and marks of a connection; the defaults suit an editor and an agent on one machine."""

    grace: float = 1.0
    """How long each step of the end may take."""
    stuck_after: float = 10.0
    """After how long a lane that gets nowhere lets the answers behind it go."""
    intake: int = MARK
    """Bytes received and not yet handled, past which reading pauses where it may."""
    lane: int = 64 * 1024 * 1024
    """Bytes received and not yet handled, past which the fullest lane is given up: reading could not pause."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a connection has done and is doing."""

    frames_in: int
    frames_out: int
    bytes_in: int
    bytes_out: int
    pending: int
    """Requests of ours that are out."""
    handling: int
    """Requests of theirs that are being worked on."""
    queued: int
    """Bytes received and waiting for their handlers."""
    unsent: int
    """Bytes of output that the other side has not taken."""
    ignored: int
    """Notifications that nobody here handles."""
    malformed: int
    pollution: int
    """Lines on an agent's stdout that are no messages."""
    strays: int
    """Answers to nothing that we asked."""


class Connection:
    """One link to one peer, in raw JSON; `dispatch` gives it types."""

    def __init__(
        self,
        transport: Transport,
        routes: Routes,
        *,
        role: Role,
        limits: Limits | None = None,
        debug: bool = False,
    ) -> None:
        self.transport = transport
        self.role: Role = role
        self.limits = limits or Limits()
        self.debug = debug
        self.pollution: list[str] = []
        """The first lines that were no messages, shortened."""
        self._loop = asyncio.get_running_loop()
        self._routes = routes
        self._endpoint: Endpoint[Asked, Owed] = Endpoint()
        self._lanes = Lanes(stuck_after=self.limits.stuck_after, on_size=self._queued)
        self._intake = Intake(transport.pause_reading, transport.resume_reading, self.limits.intake)
        self._outbox = Outbox(transport, self._intake, self._loop)
        self._gate = Gate() if role == "agent" else None
        self._shut = role == "agent"
        """Whether the gate still stands in the way of ordinary messages."""
        self._watch: Watch | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._heard: dict[str | None, float] = {}
        self._deferred = self._unstepped = 0
        self._frames_in = self._bytes_in = self._ignored = self._malformed = self._polluted = 0
        self._end: End | None = None
        self._closed: asyncio.Future[End] = self._loop.create_future()
        self._winding_down: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    # Life

    async def open(self) -> None:
        """Start to receive."""
        await self.transport.start(self)

    @property
    def is_open(self) -> bool:
        return self._end is None

    async def closed(self) -> End:
        """Wait for the end of the link, and learn how it ended."""
        return await asyncio.shield(self._closed)

    async def close(self) -> End:
        """End the link. Safe to call twice, at the same time, and from inside a handler."""
        self._wind_down(End("closed"))
        self._hurry.set()
        if inside.get() is not None:
            return End("closed")  # the handler that closes must not wait for its own end
        return await asyncio.shield(self._closed)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def observe(self, observer: Observer) -> None:
        """Show every frame from now on to this function."""
        if self._watch is None:
            self._watch = self._outbox.watch = Watch()
        self._watch.observers.append(observer)

    def statistics(self) -> Statistics:
        return Statistics(
            frames_in=self._frames_in,
            frames_out=self._outbox.frames_out,
            bytes_in=self._bytes_in,
            bytes_out=self._outbox.bytes_out,
            pending=len(self._endpoint.asked),
            handling=len(self._endpoint.owed),
            queued=self._lanes.size,
            unsent=self.transport.unsent,
            ignored=self._ignored,
            malformed=self._malformed,
            pollution=self._polluted,
            strays=self._endpoint.strays,
        )

    # Sending

    async def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification; waits while the other side does not take what it is sent."""
        if self._end is not None:
            raise self._end.error()
        if self._outbox.put(messages.tell(method, params)):
            await self._outbox.breathe()

    async def call(
        self,
        method: str,
        params: bytes | None = None,
        *,
        lane: str | None = None,
        patient: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
        idle_timeout: float | None = None,
    ) -> Raw:
        """Send a request and wait for its result; raises PeerError when the answer is an error.

        `lane` is the session it belongs to. `timeout` is for the whole, `idle_timeout` for the time in which nothing
        is heard of that session. Cancelling the caller cancels the request.
        """
        if self._end is not None:
            raise self._end.error()
        asked = Asked(method, lane, patient=patient, loop=self._loop)
        asked.id = self._endpoint.ask(asked)
        if not patient:
            self._intake.impatient += 1
        if self._intake.paused:
            self._intake.decide()
        try:
            if self._outbox.put(messages.call(asked.id, method, params)) and self._outbox.full:
                await self._outbox.breathe()
            if timeout is None and idle_timeout is None:
                answer = await asked.wait()
            else:
                answer = await self._wait_until(asked, timeout, idle_timeout)
        except BaseException:
            if self._endpoint.abandon(asked.id) and self._end is None:
                self._outbox.put(messages.tell(CANCEL_REQUEST, b'{"requestId":%d}' % asked.id))
            raise
        finally:
            if not patient:
                self._intake.impatient -= 1
        if answer.error is not None:
            raise PeerError(method, answer.error.code, answer.error.message, answer.error.data)
        return cast("Raw", answer.result)

    async def _wait_until(self, asked: Asked, total: float | None, idle: float | None) -> Answer:
        """Wait for an answer with deadlines."""
        started = self._loop.time()
        if idle is not None:
            self._heard[asked.lane] = started
        waiting = asyncio.ensure_future(asked.wait())
        try:
            while True:
                now = self._loop.time()
                left = [] if total is None else [(started + total - now, f"{total:g} seconds")]
                if idle is not None:
                    left.append((self._heard[asked.lane] + idle - now, f"{idle:g} seconds without a word"))
                remaining, described = min(left)
                if remaining <= 0:
                    raise Timeout(f"{asked.method}: no answer after {described}")
                if (await asyncio.wait([waiting], timeout=remaining))[0]:
                    return waiting.result()
        finally:
            waiting.cancel()
            if idle is not None and not any(
                other.lane == asked.lane for other in self._endpoint.asked.values() if other is not asked
            ):
                self._heard.pop(asked.lane, None)

    # Receiving

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        self._frames_in += len(frames)
        watch = self._watch
        self._outbox.corked = True
        try:
            for frame in frames:
                if isinstance(frame, Oversized):
                    self._oversized(frame)
                    continue
                self._bytes_in += len(frame)
                message = messages.parse(frame)
                if watch is not None:
                    watch.frame(IN, frame, message)
                if isinstance(message, Tell):
                    self._told(message)
                elif isinstance(message, Answer):
                    self._answered(message)
                elif isinstance(message, Call):
                    self._called(message)
                else:
                    self._misread(message, frame)
        finally:
            self._outbox.uncork()

    def paused(self) -> None:
        self._outbox.filled()

    def resumed(self) -> None:
        self._outbox.emptied()

    def ended(self, end: End) -> None:
        self._wind_down(end)

    def _told(self, message: Tell) -> None:
        route = self._routes.tells.get(message.method)
        if route is None or self._shut:
            route = self._odd_tell(message, route)
            if route is None:
                return
        raw = EMPTY if message.params is None else message.params
        try:
            params = route.decode(raw)
        except REFUSALS:
            try:
                params = route.decode_tolerantly(raw)
            except DecodeError as error:
                self._ignore(f"{message.method} ignored: {error}")
                return
        if self._heard and (lane := route.lane_of(params)) in self._heard:
            self._heard[lane] = self._loop.time()
        if route.immediate:
            self._act_now(route, params)
        elif route.suspends:
            self._lanes.enter(route.lane_of(params)).notify(route, params, len(memoryview(raw)))
        elif self._lanes.busy and (waiting := self._lanes.busy.get(route.lane_of(params))) is not None:
            waiting.notify(route, params, len(memoryview(raw)))
        else:
            try:
                awaitable = route.tell(params)
            except Exception:
                log.exception("the handler of %s failed", route.method)
            else:
                if awaitable is not None and hasattr(awaitable, "__await__"):
                    self._spawn(_awaited(awaitable), route.method)

    def _odd_tell(self, message: Tell, route: Route | None) -> Route | None:
        if self._shut and self._gate is not None and message.method != CANCEL_REQUEST:
            passage = self._gate.passage(message)
            if passage != "pass":
                if passage == "ignore":
                    self._ignore(f"{message.method} ignored: it came before initialize")
                return None
        if message.method == CANCEL_REQUEST:
            self._cancel_requested(message)
            return None
        if route is None and (route := self._routes.other_tell(message.method)) is None:
            self._ignore(f"{message.method} ignored: nobody handles it")
        return route

    def _ignore(self, why: str) -> None:
        self._ignored += 1
        self._note(why)

    def _act_now(self, route: Route, params: Any) -> None:
        """A notification that overtakes what waits in its lane, but not the start of a request that came before it."""
        lane = route.lane_of(params)
        for owed in list(self._endpoint.owed.values()):
            if owed.lane == lane:
                owed.begin()
        if self._unstepped:
            # The requests' tasks have their first step in this turn of the loop; this must find them started.
            self._loop.call_soon(self._tell_now, route, params)
        else:
            self._tell_now(route, params)

    def _tell_now(self, route: Route, params: Any) -> None:
        try:
            awaitable = route.tell(params)
        except Exception:
            log.exception("the handler of %s failed", route.method)
        else:
            if awaitable is not None and hasattr(awaitable, "__await__"):
                self._spawn(_awaited(awaitable), route.method)

    def _cancel_requested(self, message: Tell) -> None:
        try:
            wanted = decode(EMPTY if message.params is None else message.params, CancelRequestNotification)
        except DecodeError as error:
            self._ignore(f"{CANCEL_REQUEST} ignored: {error}")
            return
        owed = self._endpoint.owed.get(wanted.request_id)  # type: ignore[arg-type]
        if owed is None:
            self._note(f"{CANCEL_REQUEST}: {wanted.request_id!r} is not being worked on")
        else:
            owed.cancel()

    def _answered(self, message: Answer) -> None:
        asked = self._endpoint.answered(message.id)
        if asked is None:
            self._note(f"an answer to nothing that waits: {message.id!r}")
            return
        asked.answer = message
        if self._lanes.busy:
            self._lanes.hold(asked.lane, asked)
        else:
            asked.release()

    def _called(self, message: Call) -> None:
        gate = self._gate
        if gate is not None and (self._shut or message.method in INITIALIZERS):
            passage = gate.passage(message)
            if passage == "refuse":
                self._refuse(message.id, INVALID_REQUEST, f"Invalid request: {gate.problem(message)}")
            if passage != "pass":
                return
        owed = Owed(message.id, message.method)
        if not self._endpoint.owe(message.id, owed):
            self._refuse(None, INVALID_REQUEST, f"Invalid request: the id {message.id!r} is being worked on")
            return
        route = self._routes.calls.get(message.method) or self._routes.other_call(message.method)
        if route is None:
            self._answer_error(owed, METHOD_NOT_FOUND, "Method not found", {"method": message.method})
            return
        raw = EMPTY if message.params is None else message.params
        try:
            params = route.decode(raw)
        except REFUSALS:
            try:
                params = route.decode_tolerantly(raw)
            except DecodeError as error:
                data = {"path": error.path, "problem": error.problem}
                self._answer_error(owed, INVALID_PARAMS, f"Invalid params: {error}", data)
                return
        owed.lane = route.lane_of(params)
        owed.will_begin(lambda: self._begin(owed, route, params))
        self._begin_in_order(owed, route)

    def _begin_in_order(self, owed: Owed, route: Route) -> None:
        """Start a request: behind the notifications of its session, and behind the requests that came before it."""
        in_lane = bool(self._lanes.busy) and self._lanes.mark_start(owed.lane, owed.begin)
        if in_lane or self._deferred or (self._unstepped and not route.suspends):
            # What is suspended must not hold it up: by then whatever could start has started.
            self._deferred += 1
            self._loop.call_soon(self._begin_deferred, owed)
        else:
            owed.begin()

    def _begin_deferred(self, owed: Owed) -> None:
        self._deferred -= 1
        owed.begin()

    def _begin(self, owed: Owed, route: Route, params: Any) -> None:
        if route.suspends:
            self._unstepped += 1
            owed.task = self._spawn(self._serve(owed, route, params), route.method, owed)
            return
        try:
            result = route.call(params, owed)
        except Exception as error:
            self._fail(owed, error)
        else:
            if result is not None and hasattr(result, "__await__"):
                self._unstepped += 1
                owed.task = self._spawn(self._finish(owed, route, result), route.method, owed)
            else:
                self._succeed(owed, route, result)

    async def _serve(self, owed: Owed, route: Route, params: Any) -> None:
        await self._finish(owed, route, route.call(params, owed))

    async def _finish(self, owed: Owed, route: Route, awaitable: Awaitable[Any]) -> None:
        self._unstepped -= 1
        owed.stepped = True
        inside.set(owed)
        try:
            result = await awaitable
        except BaseException as error:
            self._fail(owed, error)
            if not isinstance(error, Exception | asyncio.CancelledError):
                raise
        else:
            self._succeed(owed, route, result)

    # Answering

    def _succeed(self, owed: Owed, route: Route, result: Any) -> None:
        try:
            encoded = route.encode(result)
        except EncodeError as error:
            self._fail(owed, error)
            return
        self._answer(owed, messages.answer(owed.id, encoded), well=True)

    def _fail(self, owed: Owed, error: BaseException) -> None:
        if isinstance(error, RequestError):
            self._answer_error(owed, error.code, error.message, error.data)
        elif isinstance(error, asyncio.CancelledError):
            self._answer_error(owed, REQUEST_CANCELLED, "Request cancelled")
        else:
            log.error("the handler of %s failed", owed.method, exc_info=error)
            data = {"error": f"{type(error).__name__}: {error}"} if self.debug else None
            self._answer_error(owed, INTERNAL_ERROR, "Internal error", data)

    def _answer_error(self, owed: Owed, code: int, message: str, data: Any = None) -> None:
        self._answer(owed, messages.error_answer(owed.id, code, message, data), well=False)

    def _answer(self, owed: Owed, frame: bytes, *, well: bool) -> None:
        owed.running = False
        if not self._endpoint.pay(owed.id):
            return
        self._outbox.put(frame)
        if owed.method in INITIALIZERS and self._gate is not None:
            self._open_gate(self._gate, well=well)
        for do in owed.what_comes_after():
            self._spawn(_soon(do), f"after {owed.method}")

    def _open_gate(self, gate: Gate, *, well: bool) -> None:
        waiting = gate.initialized(well=well)
        self._shut = not well
        for message in waiting:
            if isinstance(message, Tell):
                self._told(message)
            else:
                self._called(message)

    def _refuse(self, request_id: RequestId | None, code: int, message: str) -> None:
        self._note(message)
        self._outbox.put(messages.error_answer(request_id, code, message))

    # Bad input

    def _misread(self, message: Malformed, frame: bytes) -> None:
        self._malformed += 1
        self._note(f"malformed: {message.problem}")
        if message.pending is not None and (asked := self._endpoint.answered(message.pending)) is not None:
            asked.fail(ProtocolError(f"{asked.method}: the answer is malformed: {message.problem}"))
        if self.role == "client" and message.code == PARSE_ERROR:
            self._pollute(frame)
        elif (reply := message.reply()) is not None:
            self._outbox.put(reply)

    def _pollute(self, frame: bytes) -> None:
        """An agent printed something: never answered, for it would be answered as well."""
        self._polluted += 1
        text = frame[:500].decode("utf-8", "replace")
        if self._polluted == 1:
            log.warning("%s wrote something that is no message: %s", self.transport.name, text)
        if len(self.pollution) < KEPT_POLLUTION:
            self.pollution.append(text)

    def _oversized(self, frame: Oversized) -> None:
        self._malformed += 1
        problem = f"a message of {frame.length:,} bytes is over the limit"
        self._note(problem)
        if frame.has_id and not frame.has_method:
            if (asked := self._endpoint.answered(frame.id)) is not None:
                asked.fail(ProtocolError(f"{asked.method}: the answer is {problem.removeprefix('a message ')}"))
        elif self.role == "agent" or frame.has_method:
            self._refuse(frame.id, INVALID_REQUEST, f"Invalid request: {problem}")

    def _queued(self, size: int) -> None:
        """The lanes hold this much now."""
        self._intake.resized(size)
        if size > self.limits.lane:
            lane = self._lanes.fullest()
            error = f"{lane.size:,} bytes waited for the handler of {lane.handling}"
            log.error("%s, and were given up", error)
            lane.drop()
            for asked in [asked for asked in self._endpoint.asked.values() if asked.lane == lane.key]:
                asked.fail(Overflow(f"{asked.method}: {error}"))

    def _note(self, note: str) -> None:
        if self._watch is not None:
            self._watch.note(IN, note)

    # Tasks and the end

    def _spawn(self, work: Coroutine[Any, Any, Any], name: str, owed: Owed | None = None) -> asyncio.Task[Any]:
        """A task of this connection's, started at once where the platform can."""
        task = _start_task(work, self._loop, f"accord {name}")
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if owed is not None:
            task.add_done_callback(lambda _: self._never_stepped(owed))
        return task

    def _never_stepped(self, owed: Owed) -> None:
        """A task that is cancelled before its first step never runs its body, and so cannot answer."""
        if not owed.stepped:
            self._unstepped -= 1
            self._answer_error(owed, REQUEST_CANCELLED, "Request cancelled")

    def _wind_down(self, end: End) -> None:
        if self._winding_down is None:
            self._end = end
            self._outbox.emptied()  # nobody waits for room any more
            self._winding_down = self._loop.create_task(self._end_all(end), name="accord end")

    async def _end_all(self, end: End) -> None:
        grace = self.limits.grace
        try:
            if end.reason != "closed":
                await self._deliver(end, grace)
            await self._lanes.cancel(within=grace)
            for asked in self._endpoint.give_up():
                asked.fail(end.error())
            await self._cancel_handlers(grace)
            self._outbox.flush()
            left = await self.transport.close(grace)
            if end.reason == "closed":
                end = End("closed", exit_code=left.exit_code, stderr=left.stderr)
        except Exception:
            log.exception("ending the connection failed")
        finally:
            self._end = end
            if not self._closed.done():
                self._closed.set_result(end)

    async def _deliver(self, end: End, grace: float) -> None:
        """Let what was received be handled. What a handler itself asked can get no answer any more, and fails now."""
        for asked in list(self._endpoint.asked.values()):
            if asked.maker is not None:
                self._endpoint.abandon(asked.id)
                asked.fail(end.error())
        done = asyncio.ensure_future(self._quiet())
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait([done, hurry], timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        for waiting in (done, hurry):
            waiting.cancel()

    async def _quiet(self) -> None:
        """Wait until no handler runs and no lane has anything in it."""
        while self._tasks or self._lanes.busy:
            await self._lanes.idle()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def _cancel_handlers(self, grace: float) -> None:
        for owed in list(self._endpoint.owed.values()):
            owed.begin()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=grace)
            for task in stuck:
                log.warning("%s does not end when it is cancelled", task.get_name())
        for owed in list(self._endpoint.owed.values()):
            self._answer_error(owed, REQUEST_CANCELLED, "Request cancelled")


async def _awaited(awaitable: Awaitable[Any]) -> None:
    try:
        await awaitable
    except Exception:
        log.exception("a handler failed")


async def _soon(do: Any) -> None:
    await asyncio.sleep(0)
    try:
        awaitable = do()
        if awaitable is not None and hasattr(awaitable, "__await__"):
            await awaitable
    except Exception:
        log.exception("what was to come after an answer failed")


def _start_task(work: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop, name: str) -> asyncio.Task[Any]:
    """A task that has its first step now where the platform can (3.12), else in this turn of the loop."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, name=name, eager_start=True)
    return loop.create_task(work, name=name)
