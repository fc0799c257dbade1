"""A live connection, from its opening to its end: it joins the parts of the engine, sends, counts, and closes once.

In: the transport delivers frames, many at a time, and each is handled before the next one is read. So the order of the
wire is the order of handling. Bad input gets an answer or a note.

    frame ──▶ parse ──┬─ notification ──▶ its route ──▶ its handler, at once or through its lane (`lanes`)
                      ├─ request ───────▶ the gate ───▶ `incoming_requests`
                      ├─ answer ────────▶ `outgoing_requests`
                      └─ malformed ─────▶ an error to the peer; or the request that it was meant to answer fails

Out: frames go to the `outbox`, which joins several into one write, also those that handlers send during a delivery.

The end: received messages are delivered, for at most `grace`. Then lanes and handlers are cancelled and awaited, open
requests fail with `ConnectionClosed`, and queued output is flushed while the peer reads. Each step has a deadline.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
from collections.abc import Sequence
from typing import Any, Literal, Self

import msgspec
from msgspec import Raw

from accord._internal.tasks import LightEvent, Tasks, first_of, is_awaitable, pass_on, to_the_end
from accord.engine.flow_control import BACKLOG, MARK, STALLED, Backlog, DecodeThread, Early, Outbox, ReadPause
from accord.engine.incoming_requests import EMPTY, WEIGHT, HandshakeGate, IncomingRequest, IncomingRequests
from accord.engine.lanes import Lanes, inside
from accord.engine.outgoing_requests import CANCEL_REQUEST, RAW_RESULT, OutgoingRequests, PendingRequest
from accord.engine.routes import MISFITS, Route, Routes, nothing_more
from accord.errors import INVALID_REQUEST, PARSE_ERROR, ConnectionClosed, DecodeError, Overflow
from accord.jsonrpc import wire_messages
from accord.jsonrpc.chunked_decode import LIGHT, is_heavy
from accord.jsonrpc.line_frames import Oversized, RequestId
from accord.jsonrpc.wire_messages import (
    Malformed,
    Message,
    NotificationFrame,
    OpenRequests,
    RequestFrame,
    ResponseFrame,
    key_of,
)
from accord.schema.codec import decode
from accord.schema.methods import is_handshake
from accord.schema.v1 import CancelRequestNotification
from accord.trace import IN, Observer, Watch
from accord.transports import End, Transport


class Limits(msgspec.Struct, frozen=True):
    """The deadlines and limits of a connection. The defaults suit an editor and an agent on one machine."""

    grace: float = 1.0
    """Seconds that each step of closing may take."""
    stuck_after: float = 10.0
    """Seconds without progress in a session's handlers, after which the answers that wait for them are released."""
    intake: int = MARK
    """Bytes of notifications that may wait for their handlers. Past it reading pauses, if it can pause."""
    lane: int = 64 * 1024 * 1024
    """Bytes that may wait when reading cannot pause. Past it the notifications of the fullest session are dropped."""
    reply: int = 64 * 1024 * 1024
    """Bytes of updates that a Reply buffers for its reader when reading cannot pause. Past it the Reply fails."""
    early: int = 16 * 1024 * 1024
    """Bytes of updates that a client buffers for sessions that it does not know yet."""
    state: int = 32 * 1024 * 1024
    """Bytes of a session's state that a client keeps. Past it the oldest messages are forgotten."""
    backlog: int = BACKLOG
    """Bytes of waiting requests and of answers, while the peer does not read answers. Past it reading stops."""
    stalled: float = STALLED
    """Seconds that reading may stay stopped by `backlog` while the peer reads none of our output. Then the connection
    ends.
    """
    handling: int = 1_000
    """Concurrent requests of the peer. More are refused with an error."""
    handling_bytes: int = 64 * 1024 * 1024
    """Bytes of those requests together. More are refused with an error, unless there is only one."""


class Statistics(msgspec.Struct, frozen=True):
    """Counters of a connection."""

    frames_in: int
    """Messages received, malformed ones included."""
    frames_out: int
    """Messages sent."""
    bytes_in: int
    """Bytes of the messages received, without the transport's overhead."""
    bytes_out: int
    """Bytes of the messages sent, without the transport's overhead."""
    pending: int
    """Our requests that are not answered yet."""
    handling: int
    """The peer's requests that are not answered yet, including those that wait for room in the output."""
    queued: int
    """The approximate memory of the notifications that wait for their handlers, in bytes."""
    unsent: int
    """Bytes of output that the peer has not read."""
    ignored: int
    """Notifications without a handler, or with params that could not be read."""
    malformed: int
    """Frames that were not valid messages, or too large."""
    pollution: int
    """Lines on an agent's standard output that were not JSON."""
    strays: int
    """Answers to requests that we did not make."""


log = logging.getLogger("accord")


Role = Literal["agent", "client"]

BRACE = ord("}")
GIANT = 64 * 1024
"""Bytes above which a frame is read in place: cutting its params out would copy them."""

MOST_POLLUTION = 20


class Connection:
    """A connection to one peer, in raw JSON; `Peer` adds the types."""

    # More than 30 attributes would make each of them slower without slots.
    __slots__ = (  # noqa: SIM905 - as a list, each name would take a line
        "__weakref__ _backlog _busy _bytes _closed _context _decode_thread _end _frames _gate _heard _hurry "
        "_ignored _incoming _is_repeatable _lanes _loop _malformed _open _outbox _polluted _routes _shut "
        "_tasks _watch _winding_down limits outgoing pollution read_pause role transport"
    ).split()

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
        """The transport of the frames."""
        self.role: Role = role
        """The side that this end plays: `agent` or `client`."""
        self.limits = limits or Limits()
        """The deadlines and limits of this connection."""
        self._loop = loop = asyncio.get_running_loop()
        self._open: OpenRequests[PendingRequest[Any], IncomingRequest] = OpenRequests()
        self._lanes = Lanes(stuck_after=self.limits.stuck_after, on_size=self._queued)
        self.read_pause = ReadPause(transport.pause_reading, transport.resume_reading, self.limits.intake)
        self._backlog = Backlog(
            self.read_pause,
            loop,
            limit=self.limits.backlog,
            stalled=self.limits.stalled,
            taken=self._taken,
            on_stalled=self._stalled,
        )
        self._outbox = Outbox(Early(), self.read_pause, self._backlog, loop)
        self._tasks = Tasks(loop)
        self.outgoing = OutgoingRequests(self._open, self._outbox, self.read_pause, self._lanes, loop)
        """Our open requests."""
        self._incoming = IncomingRequests(
            self._open,
            self._outbox,
            self._lanes,
            self._tasks,
            self._backlog,
            most=self.limits.handling,
            most_bytes=self.limits.handling_bytes,
            debug=debug,
            debug_hint=" (Agent(debug=True) sends it the error)" if role == "agent" else "",
        )
        self.pollution: list[str] = []
        """The first lines of an agent's output that were not JSON, shortened."""
        self._routes = routes
        self._watch: Watch | None = None
        self._frames = self._bytes = self._ignored = self._malformed = self._polluted = 0
        self._decode_thread = DecodeThread(self.read_pause, loop, self._take_heavy, self._receive)
        self._gate = HandshakeGate() if role == "agent" else None
        self._shut = role == "agent"
        """Whether the gate still keeps ordinary messages back."""
        self._is_repeatable = False
        """Whether the handshake may be repeated until another request arrives; the handler of the handshake decides."""
        # Every notification looks into these two dictionaries, so each is one attribute away.
        self._busy = self._lanes.busy
        self._heard = self.outgoing.heard
        self._end: End | None = None
        self._closed = LightEvent()
        self._winding_down: asyncio.Task[None] | None = None
        self._hurry = LightEvent()

    # Life

    async def open(self) -> None:
        """Start to receive."""
        # A transport may call back from another connection's handler. This context starts outside any handler.
        self._context = contextvars.copy_context()
        self._context.run(inside.set, None)
        try:
            await self.transport.start(self)
        except BaseException as error:
            self._not_opened(error)
            raise
        self._outbox.lead_to(self.transport)

    def _not_opened(self, error: BaseException) -> None:
        """Fail the requests that were made while the transport tried to start: they will get no answer."""
        reason = error.reason if isinstance(error, ConnectionClosed) else "broken"
        end = self._end = self.outgoing.ended = End(reason, str(error) or "the connection could not be opened")
        self.outgoing.fail_all(end)
        self._closed.set()

    @property
    def is_open(self) -> bool:
        """Whether the connection has not begun to end."""
        return self._end is None

    async def closed(self) -> End:
        """Wait for the end of the connection; returns how it ended."""
        await self._closed.wait()
        return self._end or End("closed")

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
        if handler is not None and handler.running and handler.owner in (self._incoming, self._lanes):
            return True
        return asyncio.current_task() in self._tasks.running

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def observe(self, observer: Observer) -> None:
        """Show every frame from now on to this function."""
        if self._outbox.watch is None:
            self._outbox.watch = self._watch = Watch()
        self._outbox.watch.observers.append(observer)

    def statistics(self) -> Statistics:
        """The connection's counters."""
        return Statistics(
            frames_in=self._frames,
            frames_out=self._outbox.frames_out,
            bytes_in=self._bytes,
            bytes_out=self._outbox.bytes_out,
            pending=len(self._open.outgoing),
            handling=len(self._open.incoming),
            queued=self._lanes.size,
            unsent=self._unsent(),
            ignored=self._ignored,
            malformed=self._malformed,
            pollution=self._polluted,
            strays=self._open.strays,
        )

    # Sending

    async def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification; waits while the peer does not read."""
        if self.tell(wire_messages.encode_notification(method, params)):
            await self.breathe()

    def tell(self, frame: bytes) -> bool:
        """Send the frame of a notification. True if the sender should `breathe` before it sends more."""
        if self._end is not None:
            raise self._end.error()
        return self._outbox.put(frame)

    def collect(self) -> None:
        """Collect the frames of this iteration of the loop, and send them together at its end."""
        self._outbox.collect()

    def flush(self) -> None:
        """Send the collected frames now: no more are likely in this iteration of the loop."""
        self._outbox.flush()

    async def breathe(self) -> None:
        """Let other tasks run; while the peer does not read, wait for room."""
        await self._outbox.breathe()

    def open_gate(self) -> None:
        """Accept messages of the peer before the handshake."""
        self._gate, self._shut = None, False

    def undelivered(self, request_id: int, error: Exception) -> None:
        """Fail this request of ours with the error that prevented its transport from sending it."""
        self.outgoing.undelivered(request_id, error)

    def let_handshake_be_repeated(self) -> None:
        """Let the peer repeat the handshake that is being answered, until it sends another request."""
        self._is_repeatable = True

    async def wait_for_room(self) -> None:
        """Wait while the peer does not read; returns at once if there is room."""
        if self._outbox.full:
            await self._outbox.breathe()

    async def call(
        self,
        method: str,
        params: Any = None,
        *,
        lane: str | None = None,
        patient: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
        idle_timeout: float | None = None,
    ) -> Raw:
        """Send a request and wait for its result; raises PeerError when the answer is an error.

        `params` are a message of the protocol, or the JSON of one. `lane` is the session that it belongs to. A
        `patient` request may take long: reading may pause while only such requests are open. `timeout` is for the
        whole, `idle_timeout` for a time without any message of that session. Cancelling the caller cancels the request.
        """
        pending = self.ask(method, params, lane=lane, patient=patient)
        result: Raw = await self.outgoing.answer_to(pending, timeout, idle_timeout)
        return result

    def ask(
        self,
        method: str,
        params: Any = None,
        *,
        lane: str | None = None,
        patient: bool = False,
    ) -> PendingRequest[Any]:
        """Send a request now and wait for its answer later, or never; raises ConnectionClosed after the end."""
        if params.__class__ is bytes:
            params = Raw(params)
        return self.outgoing.send(method, params, lane, patient, RAW_RESULT)

    # The transport's callbacks

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        """Handle frames; the transport calls this."""
        if self._end is None:
            self._context.run(self._receive, frames)
        # Frames received while closing are dropped: a handler started now would never be awaited.

    def paused(self) -> None:
        """Note that the output is full; the transport calls this."""
        self._outbox.filled()

    def resumed(self) -> None:
        """Note that the output has room again; the transport calls this."""
        self._outbox.emptied()
        if self._incoming.held.count:
            # In the context that is outside any handler: a handler's write may have made the room.
            self._loop.call_soon(self._begin_held, context=self._context)

    def _begin_held(self) -> None:
        if self._end is None:
            self._incoming.has_room()

    def ended(self, end: End) -> None:
        """Note that the peer has disconnected; the transport calls this once."""
        if self._decode_thread.busy and self._end is None:
            self._decode_thread.on_idle = functools.partial(self._wind_down, end)
            return
        self._wind_down(end)

    # Incoming messages

    def _receive(self, frames: Sequence[bytes | Oversized]) -> None:
        """Handle a delivery of the transport, frame by frame."""
        if self._decode_thread.busy:
            self._decode_thread.wait(frames)
            return
        self._frames += len(frames)
        parse, watch, size = wire_messages.parse, self._watch, 0
        stream = None if self._shut or watch is not None else self._routes.stream
        head = b"" if stream is None else stream.head
        pending = self._open.outgoing if watch is None else None
        self._outbox.corked = True
        try:
            each = iter(frames)
            for frame in each:
                if not isinstance(frame, bytes):
                    self._oversized(frame)
                    continue
                length = len(frame)
                size += length
                # Most messages to a client are updates, and most peers spell them like this. The part between the
                # head and the last brace is their params, if it is one whole value: the decoder finds out. So these
                # frames are decoded once, without reading the envelope first.
                if stream is not None and length < GIANT and frame.startswith(head) and frame[-1] == BRACE:
                    raw = frame[stream.body]
                    try:
                        params = stream.decode(raw)
                    except MISFITS:
                        pass  # another message, or an update that needs the tolerant reader
                    else:
                        self._handle(stream, params, raw)
                        continue
                if pending and length < GIANT and frame[-1] == BRACE and self.outgoing.take(frame):
                    continue
                if length > LIGHT and is_heavy(frame):
                    self._decode_thread.read(frame, keep=watch is not None)
                    later = list(each)
                    self._frames -= len(later)
                    self._decode_thread.wait(later)
                    return
                message = parse(frame)
                if watch is None and message.__class__ is RequestFrame:
                    self._called(message, length)  # pyright: ignore[reportArgumentType]
                else:
                    self._take(message, frame, length)
        finally:
            self._bytes += size
            self._outbox.uncork()

    def _take(self, message: Message | Malformed, frame: bytes, size: int) -> None:
        if self._watch is not None:
            self._watch.frame(IN, frame, message)
        # The most frequent first: the class pattern of a struct takes 700 instructions not to match.
        if isinstance(message, RequestFrame):
            self._called(message, size)
        elif isinstance(message, NotificationFrame):
            self._handle_notification(message)
        elif isinstance(message, ResponseFrame):
            if not self.outgoing.answered(message):
                self._note(f"an answer to no open request: {message.id!r}")
        else:
            self._misread(message, frame)

    def _take_heavy(self, message: Message | Malformed, frame: bytes, size: int) -> None:
        self._outbox.corked = True
        try:
            self._take(message, frame, size)
        finally:
            self._outbox.uncork()

    # Notifications

    def _handle_notification(self, message: NotificationFrame) -> None:
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
            try:
                route.arrived(params, raw)
            except BaseException as error:
                log.exception("handling the arrival of %s failed", route.method)
                pass_on(error)
        if route.immediate:
            self._act_now(route, params)
            return
        if self._heard and (lane := route.lane_of(params)) in self._heard:
            self._heard[lane] = self._loop.time()
        if route.suspends:
            self._lanes.enter(route.lane_of(params)).notify(route, params, len(memoryview(raw)))
        elif self._busy and (waiting := self._busy.get(route.lane_of(params))) is not None:
            waiting.notify(route, params, len(memoryview(raw)))
        elif route.tell is not nothing_more:  # a call that each update would pay
            try:
                result = route.tell(params)
            except BaseException as error:
                log.exception("the handler of %s failed", route.method)
                pass_on(error)
            else:
                if result is not None and is_awaitable(result):
                    self._lanes.enter(route.lane_of(params)).notify(route, params, 0, result)

    def _odd_tell(self, message: NotificationFrame, route: Route | None) -> Route | None:
        """Return the route of a notification without its own, or before the handshake; None to drop it."""
        if self._shut and self._gate is not None and message.method != CANCEL_REQUEST:
            passage = self._gate.passage(message)
            if passage != "pass":
                if passage == "wait":
                    self._backlog.add(_size_of(message))
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
        """Handle a notification before those that wait in its lane, but after the start of all earlier requests."""
        self._incoming.begin_all_of(route.lane_of(params))
        act = functools.partial(
            self._tasks.call, functools.partial(route.tell, params), f"the handler of {route.method}"
        )
        if self._incoming.unstepped:
            # Their tasks have their first step in this turn of the loop; this must find them started.
            self._loop.call_soon(act)
        else:
            act()

    def _cancel_requested(self, message: NotificationFrame) -> None:
        try:
            wanted = decode(EMPTY if message.params is None else message.params, CancelRequestNotification)
        except DecodeError as error:
            self._ignore(f"{CANCEL_REQUEST} ignored: {error}")
        else:
            if self._gate is not None and self._gate.keeps(wanted.request_id):
                self._gate.keep(message)
                self._backlog.add(_size_of(message))
            elif not self._incoming.cancel(wanted.request_id):
                self._note(f"{CANCEL_REQUEST}: no open request has the id {wanted.request_id!r}")

    # Requests

    def _called(self, message: RequestFrame, size: int) -> None:
        route = self._routes.calls.get(message.method) or self._routes.call(message.method)
        on_answered = None
        if self._gate is not None and (self._shut or route is None or route.handshake):
            handshake = is_handshake(message.method) if route is None else route.handshake
            if not self._passes(self._gate, message, handshake=handshake):
                return
            on_answered = self._handshake_answered if handshake else None
        if not self._incoming.called(message, route, size, on_answered):
            self._refuse(message.id, f"id {message.id!r} is already in use by an unanswered request")
        elif self._heard and (request := self._open.incoming.get(key_of(message.id))) is not None:
            self.outgoing.hear(request.lane)

    def _passes(self, gate: HandshakeGate, message: RequestFrame, *, handshake: bool) -> bool:
        """Whether a request may be handled now. Otherwise it waits at the gate, or is refused."""
        passage = gate.passage(message, handshake=handshake)
        if passage == "refuse":
            self._refuse(message.id, gate.problem(message))
        if passage == "wait":
            self._backlog.add(_size_of(message))
        self._shut = gate.state != "after"
        return passage == "pass"

    def _handshake_answered(self, well: bool) -> None:
        if self._gate is None:
            return
        waiting = self._gate.answered(well=well, repeatable=self._is_repeatable)
        self._shut = self._gate.state != "after"
        for message in waiting:
            size = _size_of(message)
            self._backlog.remove(size)
            if isinstance(message, NotificationFrame):
                self._handle_notification(message)
            else:
                self._called(message, size)

    def _refuse(self, request_id: RequestId | None, problem: str) -> None:
        self._note(f"refused: {problem}")
        asker = None if self._open.has_incoming(request_id) else request_id
        self._outbox.answer(wire_messages.encode_error(asker, INVALID_REQUEST, f"Invalid request: {problem}"))

    # Bad input

    def _misread(self, message: Malformed, frame: bytes) -> None:
        self._malformed += 1
        self._note(f"malformed: {message.problem}")
        self.outgoing.spoiled(message.pending, f"malformed: {message.problem}")
        if self.role == "client" and message.code == PARSE_ERROR:
            self._pollute(frame)
        elif (reply := message.reply(named=not self._open.has_incoming(message.id))) is not None:
            self._outbox.answer(reply)

    def _pollute(self, frame: bytes) -> None:
        """Note that an agent printed something. It gets no answer: the agent could answer that in turn."""
        self._polluted += 1
        text = frame[:500].decode("utf-8", "replace")
        if self._polluted == 1:
            log.warning("%s wrote a line to standard output that is not JSON: %s", self.transport.name, text)
        if len(self.pollution) < MOST_POLLUTION:
            self.pollution.append(text)

    def _oversized(self, frame: Oversized) -> None:
        self._malformed += 1
        problem = f"a message of {frame.length:,} bytes is over the limit"
        self._note(problem)
        if frame.has_id and not frame.has_method:
            self.outgoing.spoiled(frame.id, problem.removeprefix("a message "))
        elif self.role == "agent" or frame.has_method:
            self._refuse(frame.id, problem)

    def _note(self, note: str) -> None:
        if self._watch is not None:
            self._watch.note(IN, note)

    # Flow control

    def _queued(self, size: int) -> None:
        """Note how much the lanes hold."""
        self.read_pause.resized(size)
        if size > self.limits.lane:
            lane = self._lanes.fullest()
            error = f"{lane.size:,} bytes of notifications waited for the handler of {lane.handling}"
            log.error("%s and were dropped; the limit is %s bytes", error, f"{self.limits.lane:,}")
            lane.drop(lambda: Overflow(error))
            self.outgoing.overflowed(lane.key, error)

    def _taken(self) -> int:
        """Return how many bytes of our output the other side has read, as far as its transport can tell."""
        return self._outbox.bytes_out - self._unsent()

    def _unsent(self) -> int:
        """Return how many bytes of our output wait in the transport."""
        return 0 if self._outbox.is_early else self.transport.unsent

    def _stalled(self) -> None:
        waits = f"{self._backlog.size:,} bytes of requests and answers wait"
        why = f"{waits}, and none of our output was read for {self.limits.stalled:g} seconds"
        self.transport.why = why
        self._wind_down(End("unresponsive", f"{why}: a peer has to read answers while it sends requests"))

    # The end

    def _wind_down(self, end: End) -> asyncio.Task[None]:
        if self._winding_down is None:
            self._end = self.outgoing.ended = end
            self._decode_thread.end()
            self._incoming.link_has_ended = True
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
            self.outgoing.fail_all(end)
            await self._incoming.end(grace)
            self._outbox.flush()
            # The peer may need a grace period of its own for its handlers before it closes.
            left = await self.transport.close(2 * grace)
            if end.reason == "closed":
                end = End("closed", exit_code=left.exit_code, stderr=left.stderr)
        except Exception:
            log.exception("ending the connection failed")
        finally:
            self._end = self.outgoing.ended = end
            self._closed.set()

    async def _deliver(self, end: End, grace: float) -> None:
        """Let the received messages be handled."""
        self.outgoing.fail_from_inside(end)
        await first_of(self._quiet(), self._hurry.wait(), seconds=grace)

    async def _quiet(self) -> None:
        """Wait until no handler runs and no lane has anything in it."""
        while self._tasks.running or self._lanes.busy:
            await self._lanes.idle()
            if self._tasks.running:
                await asyncio.wait(self._tasks.running)


def _size_of(message: RequestFrame | NotificationFrame) -> int:
    """Return the approximate size in bytes of a waiting message."""
    return WEIGHT + len(message.method) + (0 if message.params is None else len(memoryview(message.params)))
