"""A live connection: an endpoint, a transport, and the tasks between them. It closes once.

In: the transport delivers frames, many at a time. Each becomes a message and is handled at once, unless it has to wait
in a lane for earlier messages (`lanes`). A message gets a task only if its handler needs one.

Out: frames go to the `outbox`, which joins what belongs together.

The end: received messages are delivered, for at most `grace`. Then lanes and handlers are cancelled and awaited, open
requests fail with `ConnectionClosed`, and queued output is flushed while the peer reads. Each step has a deadline.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Literal, Self

from msgspec import Raw

from accord.engine.answering import EMPTY, WEIGHT, Answering, Owed
from accord.engine.asking import CANCEL_REQUEST, Asked, Asking, Sent
from accord.engine.backlog import Backlog
from accord.engine.gate import INITIALIZERS, Gate
from accord.engine.intake import Intake
from accord.engine.lanes import Lanes, inside
from accord.engine.limits import Limits, Statistics
from accord.engine.outbox import Outbox
from accord.engine.routes import MISFITS, Route, Routes
from accord.errors import INVALID_REQUEST, PARSE_ERROR, DecodeError, Overflow
from accord.jsonrpc import messages
from accord.jsonrpc.endpoint import Endpoint, key_of
from accord.jsonrpc.frames import Oversized, RequestId
from accord.jsonrpc.messages import Answer, Call, Malformed, Tell
from accord.schema.codec import decode
from accord.schema.v1.protocol import CancelRequestNotification
from accord.tasks import Tasks, is_awaitable, pass_on
from accord.trace import IN, Observer, Watch
from accord.transports.base import End, Transport
from accord.transports.closing import first_of, to_the_end

log = logging.getLogger("accord")

Role = Literal["agent", "client"]

UPDATE = "session/update"
UPDATE_HEAD = b'{"jsonrpc":"2.0","method":"session/update","params":'
UPDATE_HEAD_LENGTH = len(UPDATE_HEAD)
BRACE = ord("}")
GIANT = 64 * 1024

KEPT_POLLUTION = 20


def _kept(message: Call | Tell) -> int:
    """About how many bytes a message takes while it waits."""
    return WEIGHT + len(message.method) + (0 if message.params is None else len(memoryview(message.params)))


class Connection:
    """A connection to one peer, in raw JSON; `Peer` adds the types."""

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
        self.pollution: list[str] = []
        """The first lines of an agent's output that were not JSON, shortened."""
        self._loop = loop = asyncio.get_running_loop()
        self._routes = routes
        self._endpoint: Endpoint[Asked, Owed] = Endpoint()
        self._lanes = Lanes(stuck_after=self.limits.stuck_after, on_size=self._queued)
        self.intake = Intake(transport.pause_reading, transport.resume_reading, self.limits.intake)
        self._backlog = Backlog(
            self.intake,
            loop,
            limit=self.limits.backlog,
            stalled=self.limits.stalled,
            taken=self._taken,
            on_stalled=self._stalled,
        )
        self._outbox = Outbox(transport, self.intake, self._backlog, loop)
        self._tasks = Tasks(loop)
        self._asking = Asking(self._endpoint, self._outbox, self.intake, self._lanes, loop)
        self._serving = Answering(
            self._endpoint,
            routes,
            self._outbox,
            self._lanes,
            self._tasks,
            self._backlog,
            most=self.limits.handling,
            most_bytes=self.limits.handling_bytes,
            on_answered=self._has_answered if role == "agent" else None,
            debug=debug,
            debug_hint=" (Agent(debug=True) sends it the error)" if role == "agent" else "",
        )
        self._gate = Gate() if role == "agent" else None
        self._shut = role == "agent"
        """Whether the gate still stands in the way of ordinary messages."""
        self._busy = self._lanes.busy
        self._heard = self._asking.heard
        self._watch: Watch | None = None
        self._frames_in = self._bytes_in = self._ignored = self._malformed = self._polluted = 0
        self._end: End | None = None
        self._closed: asyncio.Future[End] = loop.create_future()
        self._winding_down: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    # Life

    async def open(self) -> None:
        """Start to receive."""
        # A transport may call back from another connection's handler. This context starts outside any handler.
        self._context = contextvars.copy_context()
        self._context.run(inside.set, None)
        await self.transport.start(self)

    @property
    def is_open(self) -> bool:
        return self._end is None

    async def closed(self) -> End:
        """Wait for the end of the connection; returns how it ended."""
        return await asyncio.shield(self._closed)

    async def close(self) -> End:
        """End the connection. Safe to call twice, at the same time, and from inside a handler."""
        winding_down = self._wind_down(End("closed"))
        self._hurry.set()
        if not self._is_inside():  # a handler that closes must not wait for its own end
            await to_the_end(winding_down)
        return self._end or End("closed")

    def _is_inside(self) -> bool:
        """Whether the caller is one of our running handlers, or a task that such a handler has started."""
        handler = inside.get()
        if handler is not None and handler.running and handler.home in (self._serving, self._lanes):
            return True
        return asyncio.current_task() in self._tasks.running

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
        """Send a notification; waits while the peer does not read."""
        if self.tell(messages.tell(method, params)):
            await self.breathe()

    def tell(self, frame: bytes) -> bool:
        """Send the frame of a notification. True if the sender should `breathe` before it sends more."""
        if self._end is not None:
            raise self._end.error()
        return self._outbox.put(frame)

    async def breathe(self) -> None:
        """Let other tasks run; while the peer does not read, wait for room."""
        await self._outbox.breathe()

    async def wait_for_room(self) -> None:
        """Wait while the peer does not read; returns at once if there is room."""
        if self._outbox.full:
            await self._outbox.breathe()

    def call(
        self,
        method: str,
        params: Any = None,
        *,
        lane: str | None = None,
        patient: bool = False,
        timeout: float | None = None,
        idle_timeout: float | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """Send a request and wait for its result; raises PeerError when the answer is an error.

        `params` are a message of the protocol, or the JSON of one. `lane` is the session that it belongs to. A
        `patient` request may take long: reading may pause while only such requests are open. `timeout` is for the
        whole, `idle_timeout` for a time without any message of that session. Cancelling the caller cancels the request.
        """
        if params.__class__ is bytes:
            params = Raw(params)
        return self._asking.call(method, params, lane=lane, patient=patient, total=timeout, idle=idle_timeout)

    def ask(self, method: str, params: Any = None, *, lane: str | None = None, patient: bool = False) -> Sent:
        """Send a request now and wait for its answer later, or never; raises ConnectionClosed after the end."""
        if params.__class__ is bytes:
            params = Raw(params)
        return Sent(self._asking, self._asking.send(method, params, lane=lane, patient=patient))

    # Receiving

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        if self._end is None:
            self._context.run(self._receive, frames)
        # Frames received while closing are dropped: a handler started now would never be awaited.

    def _receive(self, frames: Sequence[bytes | Oversized]) -> None:
        self._frames_in += len(frames)
        parse, watch, size = messages.parse, self._watch, 0
        update = None if self._shut or watch is not None else self._routes.tells.get(UPDATE)
        self._outbox.corked = True
        try:
            for frame in frames:
                if isinstance(frame, Oversized):
                    self._oversized(frame)
                    continue
                size += len(frame)
                # Most of what a client receives are updates, spelled like this. What lies between this start and the
                # last brace is their params, if it is one whole value: the decoder says so. No envelope is read then.
                # A giant is read in place instead: cutting costs a copy.
                if update is not None and len(frame) < GIANT and frame.startswith(UPDATE_HEAD) and frame[-1] == BRACE:
                    raw = frame[UPDATE_HEAD_LENGTH:-1]
                    try:
                        params = update.decode(raw)
                    except MISFITS:
                        pass  # anything else, or an update that is read with care
                    else:
                        self._handle(update, params, raw)
                        continue
                message = parse(frame)
                if watch is not None:
                    watch.frame(IN, frame, message)
                if isinstance(message, Tell):
                    self._told(message)
                elif isinstance(message, Answer):
                    if not self._asking.answered(message):
                        self._note(f"an answer to no open request: {message.id!r}")
                elif isinstance(message, Call):
                    self._called(message, len(frame))
                else:
                    self._misread(message, frame)
        finally:
            self._bytes_in += size
            self._outbox.uncork()

    def paused(self) -> None:
        self._outbox.filled()

    def resumed(self) -> None:
        self._outbox.emptied()
        if self._serving.holds:
            # In the context that is outside any handler: a handler's write may have made the room.
            self._loop.call_soon(self._begin_held, context=self._context)

    def _begin_held(self) -> None:
        if self._end is None:
            self._serving.has_room()

    def ended(self, end: End) -> None:
        self._wind_down(end)

    def _told(self, message: Tell) -> None:
        route = self._routes.tells.get(message.method)
        if route is None or self._shut:
            route = self._odd_tell(message, route)
            if route is None:
                return
        raw = message.params or EMPTY
        try:
            params = route.read(raw)
        except DecodeError as error:
            self._ignore(f"{message.method} ignored: {error}")
            return
        self._handle(route, params, raw)

    def _handle(self, route: Route, params: Any, raw: bytes | Raw) -> None:
        """Handle a notification now, or after the unfinished ones of its session."""
        if route.arrived is not None:
            self._arrived(route, params, raw)
        if route.immediate:
            self._act_now(route, params)
            return
        if self._heard and (lane := route.lane_of(params)) in self._heard:
            self._heard[lane] = self._loop.time()
        if route.suspends:
            self._lanes.enter(route.lane_of(params)).notify(route, params, len(memoryview(raw)))
        elif self._busy and (waiting := self._busy.get(route.lane_of(params))) is not None:
            waiting.notify(route, params, len(memoryview(raw)))
        else:
            try:
                result = route.tell(params)
            except BaseException as error:
                log.exception("the handler of %s failed", route.method)
                pass_on(error)
            else:
                if result is not None and is_awaitable(result):
                    self._lanes.enter(route.lane_of(params)).notify(route, params, 0, result)

    def _arrived(self, route: Route, params: Any, raw: bytes | Raw) -> None:
        try:
            route.arrived(params, raw)  # type: ignore[misc]
        except BaseException as error:
            log.exception("handling the arrival of %s failed", route.method)
            pass_on(error)

    def _odd_tell(self, message: Tell, route: Route | None) -> Route | None:
        if self._shut and self._gate is not None and message.method != CANCEL_REQUEST:
            passage = self._gate.passage(message)
            if passage != "pass":
                if passage == "wait":
                    self._backlog.add(_kept(message))
                if passage == "ignore":
                    self._ignore(f"{message.method} ignored: it came before initialize")
                return None
        if message.method == CANCEL_REQUEST:
            self._cancel_requested(message)
            return None
        if route is None and (route := self._routes.other_tell(message.method)) is None:
            self._ignore(f"{message.method} ignored: it has no handler")
        return route

    def _ignore(self, why: str) -> None:
        self._ignored += 1
        self._note(why)

    def _act_now(self, route: Route, params: Any) -> None:
        """A notification that overtakes what waits in its lane, but not the start of a request that came before it."""
        self._serving.begin_all_of(route.lane_of(params))
        act = functools.partial(
            self._tasks.call, functools.partial(route.tell, params), f"the handler of {route.method}"
        )
        if self._serving.unstepped:
            # Their tasks have their first step in this turn of the loop; this must find them started.
            self._loop.call_soon(act)
        else:
            act()

    def _cancel_requested(self, message: Tell) -> None:
        try:
            wanted = decode(EMPTY if message.params is None else message.params, CancelRequestNotification)
        except DecodeError as error:
            self._ignore(f"{CANCEL_REQUEST} ignored: {error}")
        else:
            if self._gate is not None and self._gate.keeps(wanted.request_id):
                self._gate.keep(message)
                self._backlog.add(_kept(message))
            elif not self._serving.cancel(wanted.request_id):
                self._note(f"{CANCEL_REQUEST}: no open request has the id {wanted.request_id!r}")

    def _called(self, message: Call, size: int) -> None:
        gate = self._gate
        if gate is not None and (self._shut or message.method in INITIALIZERS):
            passage = gate.passage(message)
            if passage == "refuse":
                self._refuse(message.id, gate.problem(message))
            if passage == "wait":
                self._backlog.add(_kept(message))
            if passage != "pass":
                return
        if not self._serving.called(message, size):
            self._refuse(None, f"id {message.id!r} is already in use by an unanswered request")
        elif self._heard and (owed := self._endpoint.owed.get(key_of(message.id))) is not None:
            self._asking.hear(owed.lane)

    def _has_answered(self, owed: Owed, well: bool) -> None:
        if self._gate is None or owed.method not in INITIALIZERS:
            return
        if well:
            self._serving.on_answered = None
        waiting = self._gate.initialized(well=well)
        self._shut = not well
        for message in waiting:
            size = _kept(message)
            self._backlog.remove(size)
            if isinstance(message, Tell):
                self._told(message)
            else:
                self._called(message, size)

    def _refuse(self, request_id: RequestId | None, problem: str) -> None:
        self._note(f"refused: {problem}")
        self._outbox.answer(messages.error_answer(request_id, INVALID_REQUEST, f"Invalid request: {problem}"))

    # Bad input

    def _misread(self, message: Malformed, frame: bytes) -> None:
        self._malformed += 1
        self._note(f"malformed: {message.problem}")
        self._asking.spoiled(message.pending, f"malformed: {message.problem}")
        if self.role == "client" and message.code == PARSE_ERROR:
            self._pollute(frame)
        elif (reply := message.reply()) is not None:
            self._outbox.answer(reply)

    def _pollute(self, frame: bytes) -> None:
        """An agent printed something. It gets no answer: the agent could answer that in turn."""
        self._polluted += 1
        text = frame[:500].decode("utf-8", "replace")
        if self._polluted == 1:
            log.warning("%s wrote a line to standard output that is not JSON: %s", self.transport.name, text)
        if len(self.pollution) < KEPT_POLLUTION:
            self.pollution.append(text)

    def _oversized(self, frame: Oversized) -> None:
        self._malformed += 1
        problem = f"a message of {frame.length:,} bytes is over the limit"
        self._note(problem)
        if frame.has_id and not frame.has_method:
            self._asking.spoiled(frame.id, problem.removeprefix("a message "))
        elif self.role == "agent" or frame.has_method:
            self._refuse(frame.id, problem)

    def _queued(self, size: int) -> None:
        """The lanes hold this much now."""
        self.intake.resized(size)
        if size > self.limits.lane:
            lane = self._lanes.fullest()
            error = f"{lane.size:,} bytes of notifications waited for the handler of {lane.handling}"
            log.error("%s and were dropped; the limit is %s bytes", error, f"{self.limits.lane:,}")
            lane.drop(lambda: Overflow(error))
            self._asking.overflowed(lane.key, error)

    def _note(self, note: str) -> None:
        if self._watch is not None:
            self._watch.note(IN, note)

    def _taken(self) -> int:
        """How many bytes of our output the other side has taken, as far as its transport can tell."""
        return self._outbox.bytes_out - self.transport.unsent

    def _stalled(self) -> None:
        waits = f"{self._backlog.size:,} bytes of requests and answers wait"
        why = f"{waits}, and none of our output was read for {self.limits.stalled:g} seconds"
        self.transport.why = why
        self._wind_down(End("unresponsive", f"{why}: a peer has to read answers while it sends requests"))

    # The end

    def _wind_down(self, end: End) -> asyncio.Task[None]:
        if self._winding_down is None:
            self._end = self._asking.ended = end
            self._serving.link_has_ended = True
            self._outbox.emptied()  # wakes those that wait for room
            self._backlog.end()
            self._winding_down = self._loop.create_task(self._end_all(end), name="accord end")
        return self._winding_down

    async def _end_all(self, end: End) -> None:
        grace = self.limits.grace
        try:
            if end.reason != "closed":
                await self._deliver(end, grace)
            await self._lanes.cancel(end.error, within=grace)
            self._asking.fail_all(end)
            await self._serving.end(grace)
            self._outbox.flush()
            # The peer may take a grace of its own for its handlers before it closes.
            left = await self.transport.close(2 * grace)
            if end.reason == "closed":
                end = End("closed", exit_code=left.exit_code, stderr=left.stderr)
        except Exception:
            log.exception("ending the connection failed")
        finally:
            self._end = self._asking.ended = end
            if not self._closed.done():
                self._closed.set_result(end)

    async def _deliver(self, end: End, grace: float) -> None:
        """Let what was received be handled."""
        self._asking.fail_from_inside(end)
        await first_of(self._quiet(), self._hurry.wait(), seconds=grace)

    async def _quiet(self) -> None:
        """Wait until no handler runs and no lane has anything in it."""
        while self._tasks.running or self._lanes.busy:
            await self._lanes.idle()
            if self._tasks.running:
                await asyncio.wait(self._tasks.running)
