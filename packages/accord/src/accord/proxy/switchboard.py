"""The switchboard: passes messages between the links of a chain, and reads only their envelopes.

    link ──▶ parse ──▶ its port ──▶ the port's mate ──▶ another link

Each message is passed in one step, without a task. So messages that arrive in order on one link leave in order on the
next. Params, results and errors are passed on as the bytes that arrived. Only the envelope and the id are made new: our
ids are integers that count up over all links, so that a trace can tell them apart.

| what | rule |
|---|---|
| `$/cancel_request` | is passed on under the id of the next link, once; an unknown id is ignored |
| `proxy/...` in the wrong place | a request is refused (-32600), a notification is dropped |
| a request to a component that has ended | is answered with its failure |
| malformed input | is answered as an agent would; a component's output that is not JSON is ignored |

A trace of the whole chain has one event for each message, without envelopes, with the components that it came from and
went to. So it reads as if the components were connected directly.

This program is itself an end of a few requests: it sends some by a port and awaits the answer (`OwnRequest`), and
answers others that arrived by one (`OwnAnswer`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw

from accord._internal.tasks import Tasks, give_up, pass_on
from accord.engine.lanes import Inside, inside
from accord.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    AccordError,
    ConnectionClosed,
    PeerError,
    RequestError,
)
from accord.jsonrpc import wire_messages
from accord.jsonrpc.frame_structure import members_of
from accord.jsonrpc.line_frames import Oversized, RequestId, as_id
from accord.jsonrpc.wire_messages import (
    ErrorObject,
    Malformed,
    NotificationFrame,
    RequestFrame,
    ResponseFrame,
    key_of,
    parse,
)
from accord.proxy.link import (
    CANCEL_REQUEST,
    ENVELOPES,
    HANDSHAKES,
    INITIALIZE,
    MOST_WAITING,
    OLDER,
    PROXY_METHODS,
    TODAY,
    AwaitedRequest,
    BadEnvelope,
    ComponentFailure,
    Envelope,
    Link,
    Port,
    open_envelope,
)
from accord.schema import codec
from accord.schema.base import Json
from accord.trace import IN, OUT, Direction, Observer, TraceEvent
from accord.transports import End

log = logging.getLogger("accord")


MOST_UNANSWERED = 50_000
"""Unanswered requests of one link; more are refused, so that a component that floods cannot exhaust our memory."""
LONGEST_METHOD = 200
"""Characters of a method's name that are kept until the answer."""


class PassedRequest:
    """A request on its way over the switchboard, until its answer has gone back."""

    __slots__ = ("_cancelled", "_id", "_key", "_our_id", "edit", "lane", "method", "params", "source", "to")

    def __init__(
        self, source: Port, request_id: RequestId, to: Port, our_id: int, method: str, lane: str | None
    ) -> None:
        self.source = source
        self.to = to
        self.method = method[:LONGEST_METHOD]
        """Its name, cut: a peer may choose one of megabytes, and not read its answer."""
        self.lane = lane
        """Its lane, if answers wait for earlier messages (see `lanes`)."""
        self.params: bytes | Raw | None = None
        """Kept for `initialize`, which may have to be sent again; None for others."""
        self.edit: Callable[[Raw | None], bytes | Raw | None] | None = None
        """Changes the result on its way back."""
        self._id = request_id
        self._key = key_of(request_id)
        self._our_id = our_id
        self._cancelled = False
        source.link.unanswered[self._key] = self
        to.link.awaited[our_id] = self

    def cancel(self) -> None:
        if not self._cancelled and self._our_id in self.to.link.awaited:
            self._cancelled = True
            self.to.link.send_cancel(self._our_id)

    def answered(self, result: bytes | Raw | None, error: bytes | Raw | None) -> None:
        if self.edit is not None and error is None:
            result = self.edit(cast("Raw | None", result))
        if self.source.link.claim(self._key):
            self.source.link.put(answer_frame(self._id, result, error), self.to.direction)

    def failed(self, failure: ComponentFailure) -> None:
        if self.source.link.claim(self._key):
            self.source.link.put(failure.answer(self._id, self.method), self.to.direction)

    def again(self, our_id: int) -> bytes:
        """The frame that sends this request once more, under another id."""
        self._our_id = our_id
        self.to.link.awaited[our_id] = self
        return self.to.request_frame(our_id, self.method, self.params)


class Switchboard:
    """Joins links, and passes on what arrives; an observer, such as a `TraceFile`, gets each message."""

    def __init__(self, on_end: Callable[[Link, End], None], observer: Observer | None = None) -> None:
        self._observer = observer
        self._on_end = on_end
        """Called when a link has ended."""
        self.on_answer: Callable[[Any, Raw | None, bytes | None, Callable[[], None]], bool] | None = None
        """Takes an answer that has to wait, or returns False to let it pass."""
        self._next_id = 1
        self._depth = 0
        """How many steps are running; their output is sent together at the end."""
        self.links: list[Link] = []
        self._touched: list[Link] = []
        """Links that have frames to send."""

    # In

    def receive(self, link: Link, frames: Sequence[bytes | Oversized]) -> None:
        """Pass on the frames that have arrived on this link."""
        self._depth += 1
        try:
            for frame in frames:
                if isinstance(frame, Oversized):
                    self._oversized(link, frame)
                else:
                    # A WebSocket's message may have line breaks between its values; a line must not.
                    self._read(link, frame.replace(b"\n", b" ") if b"\n" in frame else frame)
        finally:
            self._depth -= 1
            if not self._depth:
                self._flush()

    def ended(self, link: Link, end: End) -> None:
        """A link has ended."""
        self._on_end(link, end)

    def _read(self, link: Link, frame: bytes) -> None:
        message = parse(frame)
        if isinstance(message, NotificationFrame):
            if message.method in ENVELOPES:
                self._notification_in_envelope(link, message)
            else:
                self._notification(link.plain, message.method, message.params, frame)
        elif isinstance(message, ResponseFrame):
            self._answered(link, message, frame)
        elif isinstance(message, RequestFrame):
            self._called_plain_or_not(link, message)
        else:
            self._misread(link, message, frame)

    # Notifications

    def _notification_in_envelope(self, link: Link, message: NotificationFrame) -> None:
        try:
            inner = open_envelope(message.params)
        except BadEnvelope:
            return
        self._notification(link.wrapped, inner.method, inner.params, None)

    def _notification(self, port: Port, method: str, params: Raw | None, frame: bytes | None) -> None:
        if method == CANCEL_REQUEST:
            self._cancel(port.link, params)
        elif port.mate is None or method in PROXY_METHODS:
            return  # a component may not send messages for another
        elif port.intercept is None or not port.intercept(None, method, params):
            self.pass_notification(port, method, params, frame)

    def pass_notification(
        self, port: Port, method: str, params: bytes | Raw | None, frame: bytes | None = None
    ) -> None:
        """Pass on a notification that arrived by this port; `frame` is its frame, if that was plain."""
        to = port.mate
        assert to is not None
        if frame is None or to.wrapped:
            frame = to.notification_frame(method, params)
        self.put(to.link, frame, port.direction)
        if self._observer is not None:
            self._record(port, to, wire_messages.encode_notification(method, params))

    def _cancel(self, link: Link, params: Raw | None) -> None:
        request_id = _cancelled_id(params)
        unanswered = None if request_id is None else link.unanswered.get(key_of(request_id))
        if unanswered is not None:
            unanswered.cancel()

    # Requests

    def _called_plain_or_not(self, link: Link, call: RequestFrame) -> None:
        method, params, port = call.method, call.params, link.plain
        if method in ENVELOPES:
            try:
                inner: Envelope = open_envelope(params)
            except BadEnvelope as error:
                self.refuse(link, call.id, INVALID_PARAMS, f"Invalid params: {error}")
                return
            method, params, port = inner.method, inner.params, link.wrapped
        elif link.has_successor and (method in HANDSHAKES or method == INITIALIZE):
            if method == INITIALIZE:
                self.refuse(link, call.id, INVALID_REQUEST, f"Invalid request: {NOT_A_PROXY}")
                return
            link.spelling, method = HANDSHAKES[method], INITIALIZE
        self._called(port, call.id, method, params)

    def _called(self, port: Port, request_id: RequestId, method: str, params: Raw | None) -> None:
        link = port.link
        if problem := self._problem(port, request_id, method):
            self.refuse(link, request_id, INVALID_REQUEST, f"Invalid request: {problem}")
        elif port.intercept is None or not port.intercept(request_id, method, params):
            self.pass_request(port, request_id, method, params)

    def _problem(self, port: Port, request_id: RequestId, method: str) -> str | None:
        """Return why this request may not be passed on; None if it may."""
        if method in PROXY_METHODS:
            return f"{method} is for a conductor and a proxy, and {port.link.name} may not send it here"
        if port.mate is None:
            return f"{port.link.name} has no successor: it is the last component of the chain, or the client"
        if key_of(request_id) in port.link.unanswered:
            return f"id {request_id!r} is already in use by an unanswered request"
        if len(port.link.unanswered) >= MOST_UNANSWERED:
            return f"{MOST_UNANSWERED:,} requests are unanswered already; wait until some are answered"
        return None

    def pass_request(
        self, port: Port, request_id: RequestId, method: str, params: bytes | Raw | None, lane: str | None = None
    ) -> PassedRequest | None:
        """Pass on a request that arrived by this port; returns None if it was answered at once, because the component
        ended.
        """
        to = port.mate
        assert to is not None
        if to.link.failure is not None:
            port.link.put(to.link.failure.answer(request_id, method))
            return None
        our_id = self.new_id()
        passed = PassedRequest(port, request_id, to, our_id, method, lane)
        if method == INITIALIZE:
            passed.params = params
        self.put(to.link, to.request_frame(our_id, method, params), port.direction)
        if self._observer is not None:
            self._record(port, to, wire_messages.encode_request(our_id, method, params))
        return passed

    def ask(self, to: Port, method: str, params: bytes | Raw | None, awaited: AwaitedRequest) -> int:
        """Send a request of our own by this port; returns its id."""
        our_id = self.new_id()
        to.link.awaited[our_id] = awaited
        self.put(to.link, to.request_frame(our_id, method, params))
        return our_id

    def new_id(self) -> int:
        """An id that was never used on a link of this switchboard."""
        our_id, self._next_id = self._next_id, self._next_id + 1
        return our_id

    def refuse(self, link: Link, request_id: RequestId | None, code: int, message: str) -> None:
        """Answer a request with an error of our own."""
        asker = None if request_id is not None and key_of(request_id) in link.unanswered else request_id
        link.put(wire_messages.encode_error(asker, code, message))

    # Answers

    def _answered(self, link: Link, answer: ResponseFrame, frame: bytes) -> None:
        awaited = None if answer.id is None else link.awaited.pop(answer.id, None)
        if awaited is None:
            return
        error = None if answer.error is None else _error_in(frame)
        if isinstance(awaited, PassedRequest):
            if (
                awaited.method == INITIALIZE
                and link.is_proxy
                and awaited.to is link.plain
                and answer.error is not None
                and answer.error.code == METHOD_NOT_FOUND
            ):
                if link.spelling is TODAY:  # it may know the name of older SDKs
                    link.spelling = OLDER
                    self.put(link, awaited.again(self.new_id()))
                    return
                error = _no_proxy(link)
            if self._observer is not None and answer.id is not None:
                self._record(awaited.to, awaited.source, answer_frame(answer.id, answer.result, error))
        if self.on_answer is not None:
            deliver = functools.partial(awaited.answered, answer.result, error)
            if self.on_answer(awaited, answer.result, error, deliver):
                return
        awaited.answered(answer.result, error)

    def _record(self, source: Port, to: Port, frame: bytes) -> None:
        """Record a message that arrived by `source` and leaves by `to`; its frame is shown without an envelope."""
        assert self._observer is not None
        hop = source.link.name, to.link.name
        self._observer(TraceEvent(time.monotonic(), source.direction, frame, hop=hop))

    # Bad input

    def _misread(self, link: Link, message: Malformed, frame: bytes) -> None:
        self._spoiled(link, message.pending, message.problem)
        if link.is_component and message.code == PARSE_ERROR:
            # A program prints something. It gets no answer: it could answer that in turn.
            link.printed = link.printed or frame[:300].decode("utf-8", "replace")
        elif (
            reply := message.reply(named=message.id is None or key_of(message.id) not in link.unanswered)
        ) is not None:
            link.put(reply)

    def _oversized(self, link: Link, frame: Oversized) -> None:
        problem = f"a message of {frame.length:,} bytes is over the limit"
        if frame.has_id and not frame.has_method:
            self._spoiled(link, frame.id, problem)
        else:
            self.refuse(link, frame.id, INVALID_REQUEST, f"Invalid request: {problem}")

    def _spoiled(self, link: Link, request_id: RequestId | None, problem: str) -> None:
        """The answer to this request cannot be read, and no second one follows."""
        awaited = None if request_id is None else link.awaited.pop(request_id, None)
        if awaited is not None:
            awaited.failed(
                ComponentFailure(link.name, "failed", f"the answer to {awaited.method} cannot be passed on: {problem}")
            )

    # Out

    def put(self, link: Link, frame: bytes, direction: Direction | None = None) -> None:
        """Send this frame: at the end of the step that is going on, or now."""
        if not link.waiting:
            self._touched.append(link)
        link.waiting.append(frame)
        if direction == IN:
            link.inwards += len(frame) + 1
        elif direction == OUT:
            link.outwards += len(frame) + 1
        else:
            link.own += len(frame) + 1
        if not self._depth:
            self._flush()

    def balance(self) -> None:
        """Decide again which links are read; called when a link becomes full, or stops being full."""
        for link in self.links:
            link.hold(must_wait=link.must_wait())
            if link.backlog.sum.size > MOST_WAITING:
                self.ended(link, End("unresponsive", f"it does not read: {link.backlog.sum.size:,} bytes wait for it"))

    def _flush(self) -> None:
        touched, self._touched = self._touched, []
        for link in touched:
            link.flush()


def _no_proxy(link: Link) -> bytes:
    """The error for a component that knows no name of the handshake of proxies."""
    text = f"{link.name} is not a proxy: it does not know {TODAY.initialize}; name the proxies first and the agent last"
    return msgspec.json.encode({"code": METHOD_NOT_FOUND, "message": text})


def answer_frame(request_id: RequestId, result: bytes | Raw | None, error: bytes | Raw | None) -> bytes:
    """Return the frame of an answer: a result, or an error whose JSON is passed on unchanged."""
    if error is None:
        return wire_messages.encode_response(request_id, b"null" if result is None else result)
    return wire_messages.encode_raw_error(request_id, error)


def _error_in(frame: bytes) -> bytes:
    """Return the error of an answer, unchanged."""
    members = members_of(frame)
    assert members is not None
    assert members.error is not None
    return bytes(members.error)


def _cancelled_id(params: Raw | None) -> RequestId | None:
    try:
        members: Any = None if params is None else msgspec.json.decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return as_id(members.get("requestId")) if isinstance(members, dict) else None  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]


NOT_A_PROXY = (
    "a proxy is initialized with proxy/initialize: start it before an agent, as accord conduct PROXY AGENT does"
)


class RawPeerError(PeerError):
    """The other side answered with an error, which can be passed on unchanged."""

    def __init__(self, method: str, raw: bytes) -> None:
        error = codec.decode(raw, ErrorObject)
        super().__init__(method, error.code, error.message, error.data)
        self.raw = raw
        """The error as JSON."""


class OwnRequest:
    """A request that a handler sent, until its answer is passed to the handler."""

    def __init__(self, method: str, lane: str, link: Link) -> None:
        self.id = 0
        self.method = method
        self.lane = lane
        self.outcome: tuple[Raw | None, bytes | Raw | None] = None, None
        self.maker: Inside | None = (maker := inside.get())
        self._holding_up = None if maker is None else maker.holding_up
        self._link = link
        self._future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def wait(self) -> bytes:
        """The result as JSON; raises RawPeerError or ConnectionClosed. A cancelled caller cancels the request."""
        if self._holding_up is not None:
            self._holding_up.begins_to_wait(self)
        try:
            return await self._future
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            if self._holding_up is not None:
                self._holding_up.no_longer_waits(self)

    def cancel(self) -> None:
        """Notify the other side that the answer is no longer needed."""
        if self.id in self._link.awaited:
            self._link.send_cancel(self.id)

    def answered(self, result: Raw | None, error: bytes | Raw | None) -> None:
        self.outcome = result, error
        self.release()

    def failed(self, failure: ComponentFailure) -> None:
        self.fail(ConnectionClosed("closed", str(failure)))

    def release(self) -> None:
        result, error = self.outcome
        if self._future.done():
            return
        if error is None:
            self._future.set_result(b"null" if result is None else bytes(result))
        else:
            self.fail(RawPeerError(self.method, bytes(error)))

    def fail(self, error: Exception) -> None:
        if not self._future.done():
            self._future.set_exception(error)
            self._future.exception()  # mark as retrieved: there may be no caller left to await it


class QueuedAnswer:
    """An answer that is passed on when the messages before it have been."""

    def __init__(self, deliver: Callable[[], None]) -> None:
        self.maker: Inside | None = None
        self._deliver: Callable[[], None] | None = deliver

    def release(self) -> None:
        deliver, self._deliver = self._deliver, None
        if deliver is not None:
            deliver()

    def fail(self, error: Exception) -> None:  # noqa: ARG002
        self.release()


class RawNeighbour:
    """One neighbour, for this program's own messages: they leave by a port, and it takes their answers."""

    def __init__(self, board: Switchboard, port: Port) -> None:
        self._board = board
        self._port = port

    async def request_raw(self, method: str, params: Json = None) -> Json:
        """Send a request, and wait for its result; raises PeerError or ConnectionClosed."""
        link = self._port.link
        if link.failure is not None:
            raise ConnectionClosed("closed", str(link.failure))
        sent = OwnRequest(method, "", link)
        sent.id = self._board.ask(self._port, method, codec.encode(params), sent)
        return codec.loads(await sent.wait())

    async def notify_raw(self, method: str, params: Json = None) -> None:
        """Send a notification."""
        if self._port.link.failure is None:
            self._board.put(self._port.link, self._port.notification_frame(method, codec.encode(params)))


class OwnAnswer:
    """A request that arrived by a port and is answered here, until it is."""

    def __init__(
        self, port: Port, request_id: RequestId, method: str, work: Coroutine[Any, Any, Json], tasks: Tasks
    ) -> None:
        self._link = port.link
        self._id = request_id
        self._key = key_of(request_id)
        self._method = method
        self._work = work
        self._link.unanswered[self._key] = self
        self._task = tasks.start(self._answer(), method)
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        self._task.cancel()

    async def _answer(self) -> None:
        try:
            self._put(wire_messages.encode_response(self._id, codec.encode(await self._work)))
        except (RequestError, PeerError) as error:
            self._refuse(error.code, error.message, error.data)
        except Exception as error:
            log.exception("%s failed", self._method)
            is_public = isinstance(error, AccordError) and error.safe_to_tell
            self._refuse(INTERNAL_ERROR, str(error) if is_public else "Internal error")
            pass_on(error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        give_up(self._work)  # it may have been cancelled before its first step
        if task.cancelled():
            self._refuse(REQUEST_CANCELLED, "Request cancelled")

    def _refuse(self, code: int, message: str, data: Json = None) -> None:
        self._put(wire_messages.encode_error(self._id, code, message, data))

    def _put(self, frame: bytes) -> None:
        if self._link.claim(self._key):
            self._link.put(frame)
