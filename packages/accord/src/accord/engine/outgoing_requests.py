"""Our requests: sent, awaited with deadlines, and cancelled when their callers are.

A request counts as *patient* if its answer is not needed soon: a prompt, which may take an hour. Reading may pause only
while all open requests are patient (see `flow_control`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Raw

from accord.engine.flow_control import Outbox, ReadPause
from accord.engine.lanes import HoldingUp, Inside, Lanes, inside
from accord.errors import EncodeError, Overflow, PeerError, ProtocolError, Timeout
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import OpenRequests, ResponseFrame, UnencodedRequest
from accord.schema import codec
from accord.transports import End

if TYPE_CHECKING:
    from accord.engine.spans import SpanEnd

ResultT = TypeVar("ResultT")

CANCEL_REQUEST = "$/cancel_request"

_encode = codec.strict_encode

_NOTHING_WAITS = nullcontext()
_RESULT = b',"result":'


class ResultReader(msgspec.Struct, eq=False):
    """Converts the result of a request to a value."""

    strict: Callable[[bytes | Raw], Any] | None
    """Reads a whole value of the expected form, and refuses others; None if each result is read tolerantly."""
    read: Callable[[Raw], Any]
    """Returns the value of any result; raises ProtocolError."""


RAW_RESULT = ResultReader(None, lambda raw: raw)
"""The result stays JSON, for the caller to read."""


class PendingRequest(msgspec.Struct, Generic[ResultT], eq=False):
    """Our request, from sending until its answer is released to the caller."""

    owner: OutgoingRequests
    method: str
    lane: str | None
    maker: Inside | None
    holding_up: HoldingUp | None
    hurries: ReadPause | None
    """Must not pause while this is open; None for a patient request, whose answer is not needed soon."""
    future: asyncio.Future[Any]
    reading: ResultReader
    """Reads its result on arrival."""
    id: int = 0
    value: Any = None
    """The result, from its arrival on."""
    error: Exception | None = None
    """The error that came instead of a result."""
    on_answer: Callable[[Any], None] | None = None
    end_span: SpanEnd | None = None
    """Ends the request's span. A caller may take over: a turn can continue after the answer to its prompt."""

    def then(self, call: Callable[[ResultT | Exception], None]) -> None:
        """Call this with the result, or with the error if there is none, in the order of arrival.

        It is called before any message that arrived later is handled. It must be quick, and must not raise.
        """
        self.on_answer = call

    def abandon(self) -> None:
        """Cancel the request: its answer is no longer needed."""
        self.owner.abandon(self)
        self.future.cancel()

    def withdraw(self) -> None:
        """Ask the peer to stop; the answer is awaited all the same."""
        self.owner.withdraw(self)

    async def within(self, total: float | None, idle: float | None, until: asyncio.Future[Any] | None = None) -> None:
        """Wait for the answer, or for `until` if it is given; raises Timeout past a deadline."""
        await self.owner.wait_until(self, total, idle, until)

    def awaited(self) -> AbstractContextManager[None]:
        """During this block, the handler inside which the request was made waits for the answer."""
        return _NOTHING_WAITS if self.holding_up is None else self._holding(self.holding_up)

    @contextmanager
    def _holding(self, handler: HoldingUp) -> Generator[None]:
        handler.begins_to_wait(self)
        try:
            yield
        finally:
            handler.no_longer_waits(self)

    def release(self) -> None:
        """Give the answer to the caller: the messages that had to be handled before it have been handled."""
        if self.error is not None:
            self.fail(self.error)
        elif not self.future.done():
            self.future.set_result(self.value)
            if (read_pause := self.hurries) is not None:  # `settle`, without a call for each request
                read_pause.impatient -= 1
                self.hurries = None
            if self.on_answer is not None:
                self._tell(self.on_answer, self.value)

    def fail(self, error: Exception) -> None:
        """Give the caller an error instead of an answer."""
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # mark as retrieved: there may be no caller left to await it
            self.settle()
            if self.on_answer is not None:
                self._tell(self.on_answer, error)

    def settle(self) -> None:
        """Note that the answer is no longer awaited: this request no longer prevents a pause. Twice is harmless."""
        if self.hurries is not None:
            self.hurries.impatient -= 1
            self.hurries = None

    def _tell(self, call: Callable[[Any], None], result: Any) -> None:
        self.on_answer = None  # it may refer back to this object
        if self.end_span is not None:
            self.end_span(result)
        call(result)


class OutgoingRequests(msgspec.Struct, eq=False):
    """The open requests of one connection."""

    _open: OpenRequests[PendingRequest[Any], Any]
    _outbox: Outbox
    _read_pause: ReadPause
    _lanes: Lanes
    _loop: asyncio.AbstractEventLoop
    ended: End | None = None
    """How the connection has ended, or why it is ending; None while it is open."""
    heard: dict[str | None, float] = {}
    """When the last message of a session arrived, for sessions with a request that has an idle timeout."""
    _watchers: dict[str | None, int] = {}

    def send(
        self, method: str, params: Any, lane: str | None, patient: bool, reading: ResultReader
    ) -> PendingRequest[Any]:
        """Send a request now. Its future has the result, as `reading` reads it.

        `params` are a message, or encoded JSON (as `Raw`), or None. A caller that no longer awaits the future must call
        `abandon`.
        """
        if self.ended is not None:
            raise self.ended.error()
        maker = inside.get()
        holding_up = None if maker is None else maker.holding_up
        # A request made inside a notification's handler is not patient: the messages that fill memory wait for it.
        hurries = None if patient and holding_up is None else self._read_pause
        pending: PendingRequest[Any] = PendingRequest(
            self, method, lane, maker, holding_up, hurries, self._loop.create_future(), reading
        )
        pending.id = request_id = self._open.add_outgoing(pending)
        try:
            frame = _encode(UnencodedRequest(request_id, method, UNSET if params is None else params))
        except codec.ENCODE_REFUSALS:
            frame = self._with_care(request_id, method, params)
        if hurries is not None:
            hurries.impatient += 1
            if hurries.paused:
                hurries.decide()
        if self._outbox.ask(frame):
            self._outbox.expect_room()
        return pending

    def _with_care(self, request_id: int, method: str, params: Any) -> bytes:
        try:
            return wire_messages.encode_request(request_id, method, codec.encode(params))
        except EncodeError:
            self._open.forget(request_id)  # it was never sent
            raise

    async def answer_to(
        self, pending: PendingRequest[Any], total: float | None = None, idle: float | None = None
    ) -> Any:
        """Wait for the result of a request; raises PeerError when the answer is an error, and Timeout.

        Cancelling the caller cancels the request.
        """
        try:
            if total is not None or idle is not None:
                return await self.wait_until(pending, total, idle)
            with pending.awaited():
                return await pending.future
        except BaseException:
            self.abandon(pending)
            raise

    def abandon(self, pending: PendingRequest[Any]) -> None:
        """Cancel this request: its answer is no longer needed."""
        pending.settle()
        if self._open.abandon(pending.id):
            self._outbox.put(wire_messages.encode_notification(CANCEL_REQUEST, b'{"requestId":%d}' % pending.id))

    def withdraw(self, pending: PendingRequest[Any]) -> None:
        """Ask the peer to cancel this request, and still wait for its answer."""
        if self._open.is_open(pending.id) and self.ended is None:
            self._outbox.put(wire_messages.encode_notification(CANCEL_REQUEST, b'{"requestId":%d}' % pending.id))

    async def wait_until(
        self,
        pending: PendingRequest[Any],
        total: float | None,
        idle: float | None,
        until: asyncio.Future[Any] | None = None,
    ) -> Any:
        """Wait for an answer, or for `until` if it is given; raises Timeout past a deadline."""
        awaited: asyncio.Future[Any] = pending.future if until is None else until
        started, owing = self._loop.time(), False
        with pending.awaited(), self._listening(pending.lane, idle):
            while True:
                now = self._loop.time()
                left = [] if total is None else [(started + total - now, f"{total:g} seconds")]
                if idle is not None:
                    silent = now - max(started, self.heard[pending.lane])
                    if silent >= idle and (owing or self._owes(pending.lane)):
                        # The peer waits for our answer, so it is not idle.
                        owing, silent = self._owes(pending.lane), 0.0
                        self.heard[pending.lane] = now
                    left.append((idle - silent, f"{idle:g} seconds without a message"))
                remaining, described = min(left)
                if remaining <= 0:
                    raise Timeout(f"{pending.method}: no answer after {described}")
                if (await asyncio.wait([awaited], timeout=remaining))[0]:
                    return awaited.result()

    @contextmanager
    def _listening(self, lane: str | None, idle: float | None) -> Generator[None]:
        """During this block, note when messages of this session arrive."""
        if idle is None:
            yield
            return
        self._watchers[lane] = self._watchers.get(lane, 0) + 1
        self.heard.setdefault(lane, self._loop.time())
        try:
            yield
        finally:
            self._watchers[lane] -= 1
            if not self._watchers[lane]:
                del self._watchers[lane], self.heard[lane]

    def hear(self, lane: str | None) -> None:
        """A message of this session has arrived."""
        if lane in self.heard:
            self.heard[lane] = self._loop.time()

    def _owes(self, lane: str | None) -> bool:
        """Whether the peer waits for our answer in this session."""
        return any(request.lane == lane for request in self._open.incoming.values())

    def take(self, frame: bytes) -> bool:
        """Handle this frame if it is an ordinary answer to an open request, without decoding the envelope.

        The part between the head and the last brace is the result, if it is one whole value: the decoder finds out.
        """
        head, _, rest = frame.partition(_RESULT)
        requests = self._open.outgoing
        pending = requests.get(head)
        if pending is None or (strict := pending.reading.strict) is None:
            return False
        try:
            pending.value = strict(rest[:-1])
        except codec.REFUSALS:
            return False  # an answer with further members, or a result that needs the tolerant reader
        del requests[head]
        if self._lanes.busy or self.heard:
            self._arrived(pending)
        else:
            pending.release()
        return True

    def answered(self, answer: ResponseFrame) -> bool:
        """An answer has arrived; it may have to wait for earlier notifications. False if no open request has its id."""
        pending = self._open.answered(answer.id)
        if pending is None:
            return False
        if (error := answer.error) is not None:
            pending.error = PeerError(pending.method, error.code, error.message, error.data, said_by=self._open)
        elif answer.result is not None:
            try:
                pending.value = pending.reading.read(answer.result)
            except Exception as problem:
                pending.error = problem.with_traceback(None)  # its frames refer to this request
        self._arrived(pending)
        return True

    def _arrived(self, pending: PendingRequest[Any]) -> None:
        if self.heard:
            self.hear(pending.lane)
        if self._lanes.busy:
            self._lanes.hold(pending.lane, pending)
        else:
            pending.release()

    def spoiled(self, request_id: RequestId | None, problem: str) -> None:
        """Fail this request: its answer could not be read, and there is no second one."""
        pending = None if request_id is None else self._open.answered(request_id)
        if pending is not None:
            pending.fail(ProtocolError(f"{pending.method}: the answer is {problem}"))

    def undelivered(self, request_id: int, error: Exception) -> None:
        """Fail this request: it never reached the peer."""
        pending = self._open.forget(request_id)
        if pending is not None:
            pending.fail(error)

    def overflowed(self, lane: str | None, problem: str) -> None:
        """Fail this session's requests, because its notifications were dropped."""
        for pending in list(self._open.outgoing.values()):
            if pending.lane == lane:
                pending.fail(Overflow(f"{pending.method}: {problem}"))

    def fail_from_inside(self, end: End) -> None:
        """Fail the requests that our handlers made, so that the end does not wait for those handlers."""
        for pending in [pending for pending in self._open.outgoing.values() if pending.maker is not None]:
            self._open.forget(pending.id)
            pending.fail(end.error())

    def fail_all(self, end: End) -> None:
        """Fail all open requests."""
        for pending in self._open.drop_all():
            pending.fail(end.error())
