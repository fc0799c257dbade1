"""What comes in is handed on."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Raw

from accord._internal.tasks import Tasks, is_awaitable, pass_on
from accord.engine.flow_control import Backlog, DecodeThread, Outbox, ReadPause
from accord.engine.incoming_requests import EMPTY, WEIGHT, HandshakeGate, IncomingRequest, IncomingRequests
from accord.engine.lanes import Lanes
from accord.engine.outgoing import CANCEL_REQUEST, OutgoingRequests, PendingRequest
from accord.engine.routes import MISFITS, Route, Routes
from accord.errors import INVALID_REQUEST, PARSE_ERROR, DecodeError
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
from accord.trace import IN, Watch
from accord.transports import Transport

# What comes in: frames become messages, and each message is handed on. Bad input gets an answer or a note.
#
#     frame ──▶ parse ──┬─ notification ──▶ its route ──▶ its handler, at once or through its lane (`lanes`)
#                       ├─ request ───────▶ the gate ───▶ `incoming_requests`
#                       ├─ answer ────────▶ `outgoing`
#                       └─ malformed ─────▶ an error to the peer; or the request that it was meant to answer fails
#
# A transport delivers many frames at a time, and each is handled before the next one is read. So the order of the wire
# is the order of handling, and what the handlers send meanwhile is joined into one write.


log = logging.getLogger("accord")


Role = Literal["agent", "client"]

BRACE = ord("}")
GIANT = 64 * 1024
"""Bytes of a frame that is read in place: cutting its params out would copy them."""

KEPT_POLLUTION = 20


class Dispatch:
    """Reads the frames of one connection and hands their messages on."""

    def __init__(
        self,
        transport: Transport,
        routes: Routes,
        open_requests: OpenRequests[PendingRequest[Any], IncomingRequest],
        outgoing: OutgoingRequests,
        incoming: IncomingRequests,
        lanes: Lanes,
        outbox: Outbox,
        backlog: Backlog,
        read_pause: ReadPause,
        tasks: Tasks,
        loop: asyncio.AbstractEventLoop,
        *,
        role: Role,
    ) -> None:
        self.watch: Watch | None = None
        self.handshake_is_repeatable = False
        """Whether the handshake may be repeated until another request comes; the handler of the handshake decides."""
        self.pollution: list[str] = []
        """The first lines of an agent's output that were not JSON, shortened."""
        self.frames = self.bytes = self.ignored = self.malformed = self.polluted = 0
        """Counts for the statistics of the connection."""
        self._transport = transport
        self._role: Role = role
        self._routes = routes
        self._open = open_requests
        self._outgoing = outgoing
        self._incoming = incoming
        self._lanes = lanes
        self._outbox = outbox
        self._backlog = backlog
        self._tasks = tasks
        self._loop = loop
        self.decode_thread = DecodeThread(read_pause, loop, self._take_heavy, self.receive)
        """Reads the heavy messages."""
        self._gate = HandshakeGate() if role == "agent" else None
        self._shut = role == "agent"
        """Whether the gate still keeps ordinary messages back."""
        # Every notification looks into these two dictionaries, so each is one attribute away.
        self._busy = lanes.busy
        self._heard = outgoing.heard

    def open_gate(self) -> None:
        """Let every message pass, also before the handshake."""
        self._gate, self._shut = None, False

    def receive(self, frames: Sequence[bytes | Oversized]) -> None:
        """Handle a delivery of the transport, frame by frame."""
        if self.decode_thread.busy:
            self.decode_thread.wait(frames)
            return
        self.frames += len(frames)
        parse, watch, size = wire_messages.parse, self.watch, 0
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
                size += len(frame)
                # Most of what a client receives are updates, and most peers spell them like this. What lies between
                # the head and the last brace is their params, if it is one whole value: the decoder finds out. So these
                # frames are decoded once, without reading the envelope first.
                if stream is not None and len(frame) < GIANT and frame.startswith(head) and frame[-1] == BRACE:
                    raw = frame[stream.body]
                    try:
                        params = stream.decode(raw)
                    except MISFITS:
                        pass  # another message, or an update that needs the tolerant reader
                    else:
                        self._handle(stream, params, raw)
                        continue
                if pending and len(frame) < GIANT and frame[-1] == BRACE and self._outgoing.take(frame):
                    continue
                if len(frame) > LIGHT and is_heavy(frame):
                    self.decode_thread.read(frame, keep=watch is not None)
                    later = list(each)
                    self.frames -= len(later)
                    self.decode_thread.wait(later)
                    return
                message = parse(frame)
                if watch is None and message.__class__ is RequestFrame:
                    self._called(message, len(frame))  # pyright: ignore[reportArgumentType]
                else:
                    self._take(message, frame, len(frame))
        finally:
            self.bytes += size
            self._outbox.uncork()

    def _take(self, message: Message | Malformed, frame: bytes, size: int) -> None:
        if self.watch is not None:
            self.watch.frame(IN, frame, message)
        # The most frequent first: a struct's class takes 700 instructions to say that it is not the one.
        if isinstance(message, RequestFrame):
            self._called(message, size)
        elif isinstance(message, NotificationFrame):
            self._told(message)
        elif isinstance(message, ResponseFrame):
            if not self._outgoing.answered(message):
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

    def _told(self, message: NotificationFrame) -> None:
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
        else:
            try:
                result = route.tell(params)
            except BaseException as error:
                log.exception("the handler of %s failed", route.method)
                pass_on(error)
            else:
                if result is not None and is_awaitable(result):
                    self._lanes.enter(route.lane_of(params)).notify(route, params, 0, result)

    def _odd_tell(self, message: NotificationFrame, route: Route | None) -> Route | None:
        """The route of a notification that has none of its own, or that came before the handshake; None to drop it."""
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
        self.ignored += 1
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
                self._backlog.add(_kept(message))
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
            self._outgoing.hear(request.lane)

    def _passes(self, gate: HandshakeGate, message: RequestFrame, *, handshake: bool) -> bool:
        """Whether a request may be handled now. One that may not waits at the gate, or is refused."""
        passage = gate.passage(message, handshake=handshake)
        if passage == "refuse":
            self._refuse(message.id, gate.problem(message))
        if passage == "wait":
            self._backlog.add(_kept(message))
        self._shut = gate.state != "after"
        return passage == "pass"

    def _handshake_answered(self, well: bool) -> None:
        if self._gate is None:
            return
        waiting = self._gate.answered(well=well, repeatable=self.handshake_is_repeatable)
        self._shut = self._gate.state != "after"
        for message in waiting:
            size = _kept(message)
            self._backlog.remove(size)
            if isinstance(message, NotificationFrame):
                self._told(message)
            else:
                self._called(message, size)

    def _refuse(self, request_id: RequestId | None, problem: str) -> None:
        self._note(f"refused: {problem}")
        asker = None if self._open.has_incoming(request_id) else request_id
        self._outbox.answer(wire_messages.encode_error(asker, INVALID_REQUEST, f"Invalid request: {problem}"))

    # Bad input

    def _misread(self, message: Malformed, frame: bytes) -> None:
        self.malformed += 1
        self._note(f"malformed: {message.problem}")
        self._outgoing.spoiled(message.pending, f"malformed: {message.problem}")
        if self._role == "client" and message.code == PARSE_ERROR:
            self._pollute(frame)
        elif (reply := message.reply(named=not self._open.has_incoming(message.id))) is not None:
            self._outbox.answer(reply)

    def _pollute(self, frame: bytes) -> None:
        """An agent printed something. It gets no answer: the agent could answer that in turn."""
        self.polluted += 1
        text = frame[:500].decode("utf-8", "replace")
        if self.polluted == 1:
            log.warning("%s wrote a line to standard output that is not JSON: %s", self._transport.name, text)
        if len(self.pollution) < KEPT_POLLUTION:
            self.pollution.append(text)

    def _oversized(self, frame: Oversized) -> None:
        self.malformed += 1
        problem = f"a message of {frame.length:,} bytes is over the limit"
        self._note(problem)
        if frame.has_id and not frame.has_method:
            self._outgoing.spoiled(frame.id, problem.removeprefix("a message "))
        elif self._role == "agent" or frame.has_method:
            self._refuse(frame.id, problem)

    def _note(self, note: str) -> None:
        if self.watch is not None:
            self.watch.note(IN, note)


def _kept(message: RequestFrame | NotificationFrame) -> int:
    """About how many bytes a message takes while it waits."""
    return WEIGHT + len(message.method) + (0 if message.params is None else len(memoryview(message.params)))
