"""`Hop`: a handler's view of a message on its way; and `ProxyConnection`: a proxy on one connection.

    arrives ──▶ no handler ───────────────▶ passes as bytes        (`switchboard`)
           └──▶ a handler ──▶ `HandledRequest` ──▶ sent on, and its answer passes as bytes
                                              └──▶ an answer
                                              └──▶ None, after `hop.forward`: the answer that this gave, as it came

Order: each session has a lane for each direction (`engine/lanes`). While a handler of a lane has not sent its message
on, later messages of the lane wait, and answers as well. `session/cancel` never waits, because it must end the waiting
handler: it passes at once, and once more after a prompt that had not been sent on yet. A request with a handler is in
the table of its link (`unanswered`) like any other, so it can be cancelled.

**A handler's changes.** A handler gets a typed value, which has no room for members that this version of Accord does
not know. So the value is compared before and after, and only the difference is applied: everything else is sent
unchanged.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

import msgspec
from msgspec import Raw

from accord._internal.tasks import LightEvent, Tasks, give_up, is_awaitable, pass_on, within
from accord.engine.flow_control import MARK
from accord.engine.incoming_requests import session_of
from accord.engine.lanes import WEIGHT, HoldingUp, Lanes, inside
from accord.engine.routes import Route
from accord.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    REQUEST_CANCELLED,
    AccordError,
    ConnectionClosed,
    DecodeError,
    ProtocolError,
    RequestError,
)
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import key_of
from accord.mcp.tool_server import ToolServer
from accord.mistakes import error_of_author, wrong_type
from accord.proxy.chain_mcp import OPENING, ProxyLending, RequestT, as_tool_server
from accord.proxy.link import INITIALIZE, ComponentFailure, Link, Port, join, version_in
from accord.proxy.message_handlers import OPENING_REQUESTS, MessageHandlers, ProxyHandlers, Side, other, run_steps
from accord.proxy.switchboard import OwnRequest, QueuedAnswer, RawPeerError, Switchboard
from accord.schema import codec, v1, v2
from accord.schema.base import Json, Notification, Request
from accord.schema.methods import may_be_empty, row_for
from accord.trace import IN, OUT
from accord.transports import End, Transport

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer
    from typing_extensions import TypeVar as TypeVarWithDefault  # a proxy without a state class needs no type argument

    StateT = TypeVarWithDefault("StateT", default=Any)
else:
    StateT = TypeVar("StateT")

log = logging.getLogger("accord")

ResultT = TypeVar("ResultT")

PROMPT, CANCEL = "session/prompt", "session/cancel"
ENDS = ("session/close", "session/delete")
"""The requests that end a session, and with it the proxy's state of it."""
GRACE = 2.0
"""Seconds that handlers have at the end of the connection."""
STUCK_AFTER = 60.0


class Neighbour:
    """The client or the agent, for a proxy's own messages."""

    def __init__(self, live: ProxyConnection, side: Side) -> None:
        self._live = live
        self._side: Side = side

    async def request(self, request: Request[ResultT]) -> ResultT:
        """Send a request of the proxy's own, and wait for its result.

        Raises PeerError when the answer is an error, and ConnectionClosed when the connection ends first.
        """
        result, _ = await self._live.ask(self._side, request)
        return cast("ResultT", result)

    def tell(self, notification: Notification) -> None:
        """Send a notification of the proxy's own."""
        self._live.tell(self._side, notification)


class Hop(Generic[StateT]):
    """A message on its way through a proxy, with the actions of its handler."""

    def __init__(
        self, live: ProxyConnection, side: Side, session_id: str | None, forward: Callable[[Any], Any]
    ) -> None:
        self.session_id: str | None = session_id
        """The session that the message belongs to; None if it names none."""
        self.client: Neighbour = Neighbour(live, "client")
        """The client, for messages of the proxy's own."""
        self.agent: Neighbour = Neighbour(live, "agent")
        """The agent, for messages of the proxy's own."""
        self.came_from: Side = side
        """The side that sent the message: `client` or `agent`."""
        self._live = live
        self._forward = forward

    @property
    def version(self) -> int:
        """The version of the protocol on this connection: 1 or 2."""
        return self._live.version

    @property
    def appends_to_system_prompt(self) -> bool:
        """Whether the agent accepts additions to its system prompt, in requests that open a session."""
        return self._live.appends_to_system_prompt

    def is_first(self, what: object) -> bool:
        """Whether this is the first call for this message's session on this connection."""
        return self._live.is_first(self.session_id, what)

    @property
    def state(self) -> StateT:
        """The proxy's state of this session, which `Proxy(state=...)` makes; one for messages without a session."""
        return cast("StateT", self._live.state_of(self.session_id))

    @overload
    async def forward(self, message: Request[ResultT]) -> ResultT: ...
    @overload
    async def forward(self, message: Notification) -> None: ...
    @overload
    async def forward(self) -> Any: ...
    async def forward(self, message: Any = None) -> Any:
        """Send the message on, changed or not; for a request, wait for its result.

        A handler of a request returns the result, changed or not. Raises PeerError when the answer is an error: a
        handler that does not catch it passes the error on unchanged.
        """
        return await self._forward(message)

    def with_server(self, request: RequestT, server: ToolServer | Server[Any] | MCPServer) -> RequestT:
        """Return the request that opens a session, with this MCP server for that session only.

            @proxy.from_client(v1.NewSessionRequest)
            def lend_notes(request, hop):
                return hop.with_server(request, accord.tools(notes_of(request.cwd)))

        It accepts the arguments of `proxy.add_server`, and the agent reaches the server in the same ways. The server
        exists until the connection ends. Raises RequestError if the request lists a server of this name already. Needs
        the extra `mcp`.
        """
        if not isinstance(request, OPENING_REQUESTS):
            raise wrong_type("hop.with_server()", "a request that opens a session, such as NewSessionRequest", request)
        return self._live.with_server(request, as_tool_server("hop.with_server()", server))

    def text(self, text: str) -> Any:
        """A block of text in the version of this connection."""
        if self.version == 1:
            return v1.TextContent(text)
        return v2.TextContent(text)


class ProxyConnection:
    """A proxy on one connection: both neighbours, the states of sessions, its lent servers."""

    def __init__(self, name: str, handlers: ProxyHandlers, new_state: Callable[[], Any], transport: Transport) -> None:
        servers = handlers.lent.servers()
        self.version = 1
        """The version of the protocol: first the requested one, then the one in the answer."""
        self.board = Switchboard(self._link_ended)
        self.link = Link(self.board, transport, name, is_component=False, has_successor=True)
        self.tasks = Tasks(asyncio.get_running_loop())
        self.unsent: set[HandledRequest] = set()
        """Requests that have handlers, and have not been sent on."""
        self.own_open = 0
        """Requests of the handlers that have no answer yet: while there are any, reading continues."""
        self.appends_to_system_prompt = False
        self.over = LightEvent()
        """Set when the connection has ended."""
        self.lending = ProxyLending(servers, self.board, self.link, self.tasks)
        self.handlers = handlers
        self.lanes = Lanes(stuck_after=STUCK_AFTER, on_size=self._queued)
        self._seen: set[tuple[str | None, int]] = set()
        self._new_state = new_state
        self._states: dict[str | None, Any] = {}
        self._looks_at_messages = bool(servers) or not handlers.is_empty
        """Whether messages must be examined; a handler may lend a server to one session."""
        self._was_busy = False
        self.board.links.append(self.link)
        if self._looks_at_messages:
            self.board.on_answer = self._answer_arrived
        join(self.link.plain, self.link.wrapped)
        self.link.plain.intercept = functools.partial(self._arrived, "client", self.link.plain)
        self.link.wrapped.intercept = functools.partial(self._arrived, "agent", self.link.wrapped)
        self.link.is_busy = self._is_busy

    async def run(self) -> None:
        """Serve the connection until it ends."""
        await self.link.open()
        try:
            await self.over.wait()
            self.lending.close()
            await within(GRACE, self._quiet())
        finally:
            failure = ComponentFailure(self.link.name, "closed", "the connection has ended")
            await self.tasks.end(GRACE)
            await self.lanes.cancel(End("closed").error, within=GRACE)
            self.link.fail(failure)
            await self.link.transport.close(GRACE)

    async def _quiet(self) -> None:
        while self.tasks.running or self.lanes.busy:
            await self.lanes.idle()
            if self.tasks.running:
                await asyncio.wait(self.tasks.running)

    def _link_ended(self, link: Link, end: End) -> None:
        # Requests of handlers fail now, so that the handlers end.
        for awaited in [it for it in link.awaited.values() if isinstance(it, OwnRequest)]:
            awaited.failed(ComponentFailure(link.name, end.reason, str(end.error())))
        self.over.set()

    # Arriving messages

    def _arrived(self, side: Side, port: Port, request_id: RequestId | None, method: str, params: Raw | None) -> bool:
        if method == INITIALIZE and side == "client":
            self.version = version_in(params) or 1
        if not self._looks_at_messages:
            return False
        is_request = request_id is not None
        if side == "agent" and self.lending.take(request_id, method, params):
            return True
        if request_id is not None and side == "client" and method in OPENING:
            try:
                params = self.lending.added(params, self.version)
            except RequestError as error:
                port.link.put(wire_messages.encode_error(request_id, error.code, error.message, error.data))
                return True
        if method in ENDS and is_request:
            self.forget(session_of(params))
        entry = self.handlers.find(side, method, is_request=is_request, version=self.version)
        if entry is None and not is_request and not self.lanes.busy:
            return False
        session = session_of(params)
        lane = f"{side} {session or ''}"
        if method == CANCEL and side == "client" and not is_request:
            for request in self.unsent:
                request.cancelled_by(session, params)
            if entry is None:
                return False
        waits = lane in self.lanes.busy and not (entry is not None and entry.immediate)
        if entry is None and not waits:
            if request_id is not None:
                self.board.pass_request(port, request_id, method, params, lane=self.answer_lane(side, session))
            return is_request
        if request_id is None:
            self._notification_arrived(
                HandledNotification(self, side, port, method, params, session, entry), lane, waits=waits
            )
        else:
            self._request_arrived(HandledRequest(self, side, port, method, params, session, entry, request_id), lane)
        return True

    def _notification_arrived(self, notification: HandledNotification, lane: str, *, waits: bool) -> None:
        if waits or (notification.entry is not None and notification.entry.suspends and not notification.is_immediate):
            self._enter(lane, notification, notification.size)
            return
        if (begun := notification.tell()) is None:
            return
        if notification.is_immediate:
            self.tasks.start(_to_its_end(begun), notification.method)
        else:
            self._enter(lane, notification, 0, begun)

    def _request_arrived(self, request: HandledRequest, lane: str) -> None:
        if request.entry is None or request.entry.suspends or lane in self.lanes.busy:
            self._enter(lane, request, request.size)
        elif (passed := request.tell()) is not None:
            self._enter(lane, request, 0, passed)

    def _enter(
        self,
        lane: str,
        message: HandledNotification | HandledRequest,
        size: int,
        begun: Awaitable[Any] | None = None,
    ) -> None:
        """Let this wait for the messages before it in its lane; without any, it may have begun."""
        self.lanes.enter(lane).notify(cast("Route", message), None, size, begun)

    def _answer_arrived(
        self, awaited: Any, result: Raw | None, error: bytes | None, deliver: Callable[[], None]
    ) -> bool:
        if awaited.method == INITIALIZE and result is not None and awaited.lane == "agent ":
            self.version = version_in(result) or self.version
            answer = codec.loads(result)
            self.appends_to_system_prompt = appends_to_system_prompt(answer)
            self.lending.learn(answer)
        if awaited.lane not in self.lanes.busy:
            return False
        if isinstance(awaited, OwnRequest):
            awaited.outcome = result, error
            self.lanes.hold(awaited.lane, awaited)
        else:
            self.lanes.hold(awaited.lane, QueuedAnswer(deliver))
        return True

    # What handlers do

    def port_to(self, side: Side) -> Port:
        return self.link.plain if side == "client" else self.link.wrapped

    def tell(self, side: Side, notification: Notification) -> None:
        """Send a notification to this side."""
        self.board.pass_notification(self.port_to(other(side)), notification.__method__, codec.encode(notification))

    async def ask(self, side: Side, request: Request[Any]) -> tuple[Any, bytes]:
        """Send a request of our own to this side; returns its result, and that as JSON."""
        session = getattr(request, "session_id", None)
        sent = self.post(side, request.__method__, codec.encode(request), session)
        return await self.result_of(sent, row_for(type(request), side).result)

    def post(self, side: Side, method: str, params: bytes | None, session: str | None) -> OwnRequest:
        """Send a request to this side; `result_of` waits for its result."""
        if self.link.failure is not None or self.over.is_set():
            raise ConnectionClosed("closed", "the connection has ended")
        sent = OwnRequest(method, f"{side} {session or ''}", self.link)
        sent.id = self.board.ask(self.port_to(side), method, params, sent)
        return sent

    async def result_of(self, sent: OwnRequest, result_type: Any) -> tuple[Any, bytes]:
        """Wait for the result of a request: the value, and its JSON."""
        self.own_open += 1
        self.board.balance()
        try:
            raw = await sent.wait()
        finally:
            self.own_open -= 1
            self.board.balance()
        try:
            return codec.decode(raw, result_type), raw
        except DecodeError as error:
            raise ProtocolError(f"{sent.method}: the answer's result is invalid: {error}") from error

    def state_of(self, session: str | None) -> Any:
        """Return the state of a session, made on first use."""
        if session not in self._states:
            self._states[session] = self._new_state()
        return self._states[session]

    def forget(self, session: str | None) -> None:
        """Drop the state of a session that ends."""
        self._states.pop(session, None)

    def with_server(self, request: RequestT, server: ToolServer) -> RequestT:
        """A request that opens a session, with a server for this session."""
        return self.lending.with_server(request, server, self.version)

    def is_first(self, session: str | None, what: object) -> bool:
        """Whether this is asked for the first time for a session."""
        key = (session, id(what))
        found = key in self._seen
        self._seen.add(key)
        return not found

    def answer_lane(self, side: Side, session: str | None) -> str:
        """The lane in which the answer to a request from this side waits: that of the other side."""
        return f"{'agent' if side == 'client' else 'client'} {session or ''}"

    # Flow control

    def _queued(self, size: int) -> None:
        if (size > MARK) != self._was_busy:
            self._was_busy = size > MARK
            self.board.balance()

    def _is_busy(self) -> bool:
        """Whether so much waits for handlers that reading has to pause; not while a handler waits for an answer."""
        return self.lanes.size > MARK and not self.own_open


def appends_to_system_prompt(result: Any) -> bool:
    """Whether the agent that answered `initialize` with this accepts additions to its system prompt."""
    for path in SYSTEM_PROMPT:
        value = result
        for name in (*path, "systemPrompt"):
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        if value is not None:
            return True
    return False


SYSTEM_PROMPT = (("agentCapabilities", "sessionCapabilities"), ("capabilities", "session"))
"""Where the agent declares it, in version 1 and 2."""


async def _to_its_end(awaitable: Awaitable[Any]) -> None:
    await awaitable


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

    def tell(self, _: Any = None) -> Awaitable[None] | None:
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

    def tell(self, _: Any = None) -> Awaitable[None] | None:
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
