"""Messages that go through the handlers of a proxy: `HandledNotification` and `HandledRequest`.

    arrives ──▶ steps ──▶ a request: sent on, and its answer passes as bytes
                     └──▶ an answer
                     └──▶ None, after `hop.forward`: the answer that this gave, as it came

A request is in the table of its link (`unanswered`) like any other, so it can be cancelled. While it has not been sent
on, later messages of its lane wait.

**A handler's changes.** A handler gets a typed value, which has no room for members that this version of Accord does
not know. So the value is compared before and after, and only the difference is applied: everything else is sent
unchanged.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from msgspec import Raw

from accord._internal.tasks import give_up, is_awaitable, pass_on
from accord.engine.lanes import WEIGHT, HoldingUp, inside
from accord.errors import INTERNAL_ERROR, INVALID_PARAMS, REQUEST_CANCELLED, AccordError, DecodeError, RequestError
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import key_of
from accord.mistakes import error_of_author
from accord.proxy.hop import Hop, MessageHandlers, ProxyConnection, Side, other, run_steps
from accord.proxy.link import Port
from accord.proxy.switchboard import OwnRequest, RawPeerError
from accord.schema import codec
from accord.schema.base import Json, Notification, Request
from accord.schema.methods import may_be_empty
from accord.trace import IN, OUT

log = logging.getLogger("accord")

PROMPT, CANCEL = "session/prompt", "session/cancel"


def with_changes(raw: bytes, before: Any, after: Any) -> bytes:
    """Return the JSON of `after`; its parts that equal `before` are as in `raw`.

    >>> from accord.schema.v1 import TextContent
    >>> with_changes(b'{"type":"text","text":"a","new":1}', TextContent("a"), TextContent("b"))
    b'{"type":"text","text":"b","new":1}'
    """
    if after is before:
        return raw
    old, new = codec.loads(codec.encode(before)), codec.loads(codec.encode(after))
    return raw if old == new else codec.encode(merged(codec.loads(raw), old, new))


def merged(raw: Json, before: Json, after: Json) -> Json:
    """Return `raw`, with the differences between `before` and `after` applied."""
    if before == after:
        return raw
    if isinstance(raw, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _merged_objects(cast("Any", raw), cast("Any", before), cast("Any", after))
    if isinstance(raw, list) and isinstance(before, list) and isinstance(after, list):
        return _merged_lists(cast("Any", raw), cast("Any", before), cast("Any", after))
    return after


def _merged_objects(raw: dict[str, Json], before: dict[str, Json], after: dict[str, Json]) -> dict[str, Json]:
    kept = {name: value for name, value in raw.items() if name in after or name not in before}
    changed = {
        name: merged(raw[name], before[name], value) if name in raw and name in before else value
        for name, value in after.items()
    }
    return kept | changed


def _merged_lists(raw: list[Json], before: list[Json], after: list[Json]) -> list[Json]:
    """Merge lists: existing items are unchanged, even at another index; items of the same index are merged."""
    if len(raw) != len(before):
        return after
    if len(before) == len(after):
        return [merged(*items) for items in zip(raw, before, after, strict=True)]
    found: list[Json] = []
    at = 0
    for item in after:
        place = next((i for i in range(at, len(before)) if before[i] == item), None)
        found.append(item if place is None else raw[place])
        at = at if place is None else place + 1
    return found


@dataclass(eq=False)
class _HandledMessage:
    """A message that goes through handlers, or waits for earlier ones."""

    live: ProxyConnection
    side: Side
    port: Port
    method: str
    given: Raw | None
    session: str | None
    entry: MessageHandlers | None

    def __post_init__(self) -> None:
        self.params = None if self.given is None else bytes(self.given)
        self.size = len(self.params or b"") + WEIGHT


class HandledNotification(_HandledMessage):
    """A notification that goes through handlers, or waits for earlier messages."""

    message: Any = None

    @property
    def is_immediate(self) -> bool:
        return self.entry is not None and self.entry.immediate

    def run(self) -> Awaitable[None] | None:
        """Call the steps; returns an awaitable if one of them suspends."""
        if self.entry is None:
            self._send_on(None)
            return None
        try:
            self.message = codec.decode(self.params or b"{}", self.entry.params)
        except DecodeError as error:
            log.warning("%s passes unseen: its params are invalid: %s", self.method, error)
            self._send_on(None)
            return None
        hop: Hop[Any] = Hop(self.live, self.side, self.session, self._forward)
        try:
            value = run_steps(self.entry, self.message, hop)
            if is_awaitable(value):
                return self._finish_later(value)
            self._finish(value)
        except BaseException as error:
            self._failed(error)
        return None

    async def _finish_later(self, value: Awaitable[Any]) -> None:
        try:
            self._finish(await value)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._failed(error)

    def _finish(self, value: Any) -> None:
        if value is None:
            return
        if not isinstance(value, Notification):
            raise TypeError(f"a handler of {self.method} returns a notification or None, got {type(value).__name__}")
        self._send_on(value)

    def _send_on(self, message: Any) -> None:
        same, params = message is None or message is self.message, self.params or b"{}"
        params = params if same else with_changes(params, self.message, message)
        method = self.method if message is None or same else message.__method__
        self.live.board.pass_notification(self.port, method, params)

    async def _forward(self, message: Any) -> None:
        self._send_on(self.message if message is None else message)

    def _failed(self, error: BaseException) -> None:
        # A message that a handler could not read does not pass: the handler may be there to keep something from the
        # other side.
        log.error("the handler of %s failed; the message was dropped", self.method, exc_info=error_of_author(error))
        pass_on(error)


@dataclass(eq=False)
class HandledRequest(_HandledMessage):
    """A request that goes through handlers, or waits for earlier messages, until it is answered or sent on."""

    id: RequestId
    owner = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.running = True
        """Whether the handlers may still act on the request."""
        self.cancelled = False
        self._key = key_of(self.id)
        self._message: Any = None
        self._task: asyncio.Task[Any] | None = None
        self._passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lane: HoldingUp | None = None
        self._results: list[tuple[Any, bytes]] = []
        self._cancel_again: bytes | None = None
        self.port.link.unanswered[self._key] = self
        self.live.unsent.add(self)

    @property
    def holding_up(self) -> HoldingUp | None:
        """The lane's message, while later ones wait for this request."""
        return None if self._passed.done() else self._lane

    # Opening sessions

    def begin(self) -> Awaitable[None] | None:
        """Call the steps; returns what later messages of the lane wait for, if the request has not been sent on."""
        if self.entry is None:
            self._send_on(None)
            return None
        if self.cancelled:
            self._answer_error(REQUEST_CANCELLED, "Request cancelled")
            return None
        try:
            self._message = codec.decode(self.params or b"{}", self.entry.params)
        except DecodeError as error:
            self._answer_error(INVALID_PARAMS, f"Invalid params: {error}")
            return None
        hop: Hop[Any] = Hop(self.live, self.side, self.session, self._forward)
        try:
            value = run_steps(self.entry, self._message, hop)
            if not is_awaitable(value):
                self._finish(value)
                return None
        except BaseException as error:
            self._failed(error)
            return None
        outside = inside.get()
        self._lane = None if outside is None else outside.holding_up
        ended = functools.partial(self._ended, value)
        self._task = self.live.tasks.start(self._finish_later(value), self.method, ended)
        return None if self._passed.done() else asyncio.shield(self._passed)

    async def _finish_later(self, value: Awaitable[Any]) -> None:
        inside.set(self)
        try:
            self._finish(await value)
        except BaseException as error:
            self._failed(error)

    def _ended(self, value: Awaitable[Any], task: asyncio.Task[Any]) -> None:
        self.live.tasks.forget(task)
        give_up(value)  # the task may have been cancelled before its first step
        if task.cancelled():
            self._answer_error(REQUEST_CANCELLED, "Request cancelled")

    # Cancelling

    def cancel(self) -> None:
        """Cancel the forwarded request, else the handler: the side that asked no longer wants the answer."""
        self.cancelled = True
        if self._task is None:
            return
        sent = [it for it in self.port.link.awaited.values() if isinstance(it, OwnRequest) and it.maker is self]
        for awaited in sent:
            awaited.cancel()
        if not sent:
            self._task.cancel()

    def cancelled_by(self, session: str | None, params: Raw | None) -> None:
        """Note that `session/cancel` has passed before this prompt: it must be sent once more, after it."""
        if self.method == PROMPT and self.session == session and params is not None:
            self._cancel_again = bytes(params)

    # Sending on, and answering

    async def _forward(self, message: Any) -> Any:
        message = self._message if message is None else message
        method, params = self._changed(message)
        result_type = self.entry.result if self.entry is not None else Any
        sent = self.live.post(other(self.side), method, params, self.session)
        self._has_passed()
        value, raw = await self.live.result_of(sent, result_type)
        self._results.append((value, raw))
        return value

    def _send_on(self, message: Any) -> None:
        """Send the request on; its answer passes as bytes."""
        method, params = self._changed(message)
        link = self.port.link
        link.unanswered.pop(self._key, None)
        lane = self.live.answer_lane(self.side, self.session)
        self.live.board.pass_request(self.port, self.id, method, params, lane=lane)
        self.running = False
        self._has_passed()
        if self.cancelled and (passed := link.unanswered.get(self._key)) is not None:
            passed.cancel()

    def _changed(self, message: Any) -> tuple[str, bytes | None]:
        """Return the method and the params of the request with the handler's changes."""
        if message is None or message is self._message:
            return self.method, self.params
        return message.__method__, with_changes(self.params or b"{}", self._message, message)

    def _has_passed(self) -> None:
        """Let later messages of the lane continue."""
        if self._passed.done():
            return
        self._passed.set_result(None)
        self.live.unsent.discard(self)
        if self._cancel_again is not None:
            self.live.board.pass_notification(self.port, CANCEL, self._cancel_again)

    def _finish(self, value: Any) -> None:
        if isinstance(value, Request):
            self._send_on(value)
        elif value is None and self._results:
            self._answer(wire_messages.encode_response(self.id, self._results[-1][1]))
        elif value is None and self.entry is not None and may_be_empty(self.entry.result):
            self._answer(wire_messages.encode_response(self.id, b"{}"))
        elif value is None or isinstance(value, Notification):
            found = "None" if value is None else type(value).__name__
            raise TypeError(f"a handler of {self.method} returns a request to send on or an answer, got {found}")
        else:
            self._answer(wire_messages.encode_response(self.id, self._encoded(value)))

    def _encoded(self, value: Any) -> bytes:
        """Return a result as JSON. Parts of the answer that the handler did not change are as they arrived."""
        for result, raw in reversed(self._results):
            if value is result or (type(value) is type(result) and isinstance(value, msgspec.Struct)):
                return with_changes(raw, result, value)
        return codec.encode(value)

    def _failed(self, error: BaseException) -> None:
        cancelled = isinstance(error, asyncio.CancelledError)
        if isinstance(error, RawPeerError):
            self._answer(wire_messages.encode_raw_error(self.id, error.raw))
        elif isinstance(error, RequestError):
            self._answer_error(error.code, error.message, error.data)
        elif cancelled or self.cancelled:
            self._answer_error(REQUEST_CANCELLED, "Request cancelled")
        else:
            log.error("the handler of %s failed", self.method, exc_info=error_of_author(error))
            is_public = isinstance(error, AccordError) and error.safe_to_tell
            self._answer_error(INTERNAL_ERROR, str(error) if is_public else "Internal error")
        pass_on(error)

    def _answer_error(self, code: int, message: str, data: Any = None) -> None:
        self._answer(wire_messages.encode_error(self.id, code, message, data))

    def _answer(self, frame: bytes) -> None:
        self.running = False
        if self.port.link.claim(self._key):
            self.port.link.put(frame, IN if self.port.direction == OUT else OUT)
        self._has_passed()
