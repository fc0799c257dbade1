"""Calls of ours: sent, waited for with deadlines, cancelled when nobody wants the answer any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from msgspec import UNSET, Raw

from accord.engine.intake import Intake
from accord.engine.lanes import Inside, Lanes, inside
from accord.engine.outbox import Outbox
from accord.errors import EncodeError, Overflow, PeerError, ProtocolError, Timeout
from accord.jsonrpc import messages
from accord.jsonrpc.endpoint import Endpoint
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Answer, CallFrame
from accord.schema import codec
from accord.transports.base import End

CANCEL_REQUEST = "$/cancel_request"

_encode = codec.strict_encode


class Asked:
    """A call of ours, from sending it until its answer may be seen. Awaiting it gives the answer."""

    __slots__ = ("answer", "future", "holding_up", "id", "lane", "maker", "method", "patient", "then")

    def __init__(self, method: str, lane: str | None, *, patient: bool, loop: asyncio.AbstractEventLoop) -> None:
        self.id = 0
        self.method = method
        self.lane = lane
        self.maker: Inside | None = (maker := inside.get())
        self.holding_up = None if maker is None else maker.holding_up
        # Inside a notification's handler none is: what fills the memory waits for that handler.
        self.patient = patient and self.holding_up is None
        """Whether it may take long without harm: reading may pause while only such ones are out."""
        self.future: asyncio.Future[Answer] = loop.create_future()
        self.answer: Answer | None = None
        self.then: Callable[[], None] | None = None
        """Called where the answer is released, before anything that arrived behind it is looked at."""

    @contextmanager
    def awaited(self) -> Generator[None]:
        """While this lasts, the handler inside which it was made waits for it."""
        if self.holding_up is None:
            yield
            return
        self.holding_up.begins_to_wait(self)
        try:
            yield
        finally:
            self.holding_up.no_longer_waits(self)

    def release(self) -> None:
        """The answer may be seen now: everything that had to be handled before it has been."""
        if self.answer is not None and not self.future.done():
            self.future.set_result(self.answer)
            if self.then is not None:
                self.then()

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # who no longer awaits it need not be told
            if self.then is not None:
                self.then()


class Sent:
    """A call that was sent, and for whose answer nobody need wait in a task of its own."""

    __slots__ = ("_asked", "_asking")

    def __init__(self, asking: Asking, asked: Asked) -> None:
        self._asking = asking
        self._asked = asked
        asked.future.add_done_callback(lambda _: asking.settle(asked))

    def then(self, call: Callable[[], None]) -> None:
        """Call this once there is a `result`: in its place among what arrives. It must be quick, and not raise."""
        self._asked.then = call

    def result(self) -> Raw:
        """The answer's result, once it is here; raises PeerError when it is an error, ConnectionClosed without one."""
        return self._asking.result(self._asked, self._asked.future.result())

    def abandon(self) -> None:
        """Nobody wants the answer any more."""
        self._asking.abandon(self._asked)
        self._asked.future.cancel()

    async def within(self, total: float | None, idle: float | None) -> None:
        """Wait for the answer, but no longer than this; raises Timeout."""
        await self._asking.wait_until(self._asked, total, idle)

    def awaited(self) -> AbstractContextManager[None]:
        """While this lasts, the handler inside which it was made waits for it."""
        return self._asked.awaited()


class Asking:
    """What one connection has asked and waits for."""

    def __init__(
        self,
        endpoint: Endpoint[Asked, Any],
        outbox: Outbox,
        intake: Intake,
        lanes: Lanes,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.ended: End | None = None
        """How the link has ended, or why it is ending."""
        self.heard: dict[str | None, float] = {}
        """When something was last heard of the sessions that somebody watches for silence."""
        self._watchers: dict[str | None, int] = {}
        self._endpoint = endpoint
        self._outbox = outbox
        self._intake = intake
        self._lanes = lanes
        self._loop = loop

    def send(self, method: str, params: Any, *, lane: str | None, patient: bool) -> Asked:
        """Send a call now; who does sees to it that `settle` follows.

        `params` are a message, or JSON that is encoded already (as `Raw`), or None.
        """
        if self.ended is not None:
            raise self.ended.error()
        asked = Asked(method, lane, patient=patient, loop=self._loop)
        asked.id = request_id = self._endpoint.ask(asked)
        try:
            frame = _encode(CallFrame(request_id, method, UNSET if params is None else params))
        except codec.ENCODE_REFUSALS:
            frame = self._with_care(request_id, method, params)
        if not asked.patient:
            self._intake.impatient += 1
            if self._intake.paused:
                self._intake.decide()
        if self._outbox.ask(frame):
            self._outbox.expect_room()
        return asked

    def _with_care(self, request_id: RequestId, method: str, params: Any) -> bytes:
        try:
            return messages.call(request_id, method, codec.encode(params))
        except EncodeError:
            del self._endpoint.asked[request_id]  # it was never sent
            raise

    async def call(
        self,
        method: str,
        params: Any,
        *,
        lane: str | None,
        patient: bool,
        total: float | None,
        idle: float | None,
    ) -> Raw:
        asked = self.send(method, params, lane=lane, patient=patient)
        del params  # a large one is not kept while we wait
        try:
            if total is not None or idle is not None:
                answer = await self.wait_until(asked, total, idle)
            elif asked.holding_up is None:
                answer = await asked.future
            else:
                with asked.awaited():
                    answer = await asked.future
        except BaseException:
            self.abandon(asked)
            raise
        finally:
            self.settle(asked)
        return self.result(asked, answer)

    def abandon(self, asked: Asked) -> None:
        """Nobody wants this answer any more."""
        if self._endpoint.abandon(asked.id):
            self._outbox.put(messages.tell(CANCEL_REQUEST, b'{"requestId":%d}' % asked.id))

    def settle(self, asked: Asked) -> None:
        """Nobody waits for this call any more."""
        if not asked.patient:
            self._intake.impatient -= 1

    @staticmethod
    def result(asked: Asked, answer: Answer) -> Raw:
        if answer.error is not None:
            raise PeerError(asked.method, answer.error.code, answer.error.message, answer.error.data)
        return answer.result  # type: ignore[return-value]  # one of the two is there

    async def wait_until(self, asked: Asked, total: float | None, idle: float | None) -> Answer:
        """Wait for an answer, but no longer than this."""
        started, owing = self._loop.time(), False
        with asked.awaited(), self._listening(asked.lane, idle):
            while True:
                now = self._loop.time()
                left = [] if total is None else [(started + total - now, f"{total:g} seconds")]
                if idle is not None:
                    silent = now - max(started, self.heard[asked.lane])
                    if silent >= idle and (owing or self._owes(asked.lane)):
                        # They wait for us: that is not their silence.
                        owing, silent = self._owes(asked.lane), 0.0
                        self.heard[asked.lane] = now
                    left.append((idle - silent, f"{idle:g} seconds without a word"))
                remaining, described = min(left)
                if remaining <= 0:
                    raise Timeout(f"{asked.method}: no answer after {described}")
                if (await asyncio.wait([asked.future], timeout=remaining))[0]:
                    return asked.future.result()

    @contextmanager
    def _listening(self, lane: str | None, idle: float | None) -> Generator[None]:
        """While this lasts, it is noted when something is heard of this session."""
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
        """Something came that belongs to this session."""
        if lane in self.heard:
            self.heard[lane] = self._loop.time()

    def _owes(self, lane: str | None) -> bool:
        """Whether they wait for an answer of ours in this session."""
        return any(owed.lane == lane for owed in self._endpoint.owed.values())

    def answered(self, answer: Answer) -> bool:
        """An answer is here; it may have to wait for the notifications before it. False if nobody waits for it."""
        asked = self._endpoint.answered(answer.id)
        if asked is None:
            return False
        asked.answer = answer
        if self.heard:
            self.hear(asked.lane)
        if self._lanes.busy:
            self._lanes.hold(asked.lane, asked)
        else:
            asked.release()
        return True

    def spoiled(self, request_id: RequestId | None, problem: str) -> None:
        """What came as this request's answer cannot be used, and no other will come."""
        asked = None if request_id is None else self._endpoint.answered(request_id)
        if asked is not None:
            asked.fail(ProtocolError(f"{asked.method}: the answer is {problem}"))

    def overflowed(self, lane: str | None, problem: str) -> None:
        """This session's notifications were given up, so its requests are as well."""
        for asked in list(self._endpoint.asked.values()):
            if asked.lane == lane:
                asked.fail(Overflow(f"{asked.method}: {problem}"))

    def fail_from_inside(self, end: End) -> None:
        """What handlers of ours asked can get no answer any more, and they must not be waited for."""
        for asked in [asked for asked in self._endpoint.asked.values() if asked.maker is not None]:
            del self._endpoint.asked[asked.id]
            asked.fail(end.error())

    def fail_all(self, end: End) -> None:
        for asked in self._endpoint.give_up():
            asked.fail(end.error())
