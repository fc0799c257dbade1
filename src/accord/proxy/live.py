"""`LiveProxy`: a proxy on one connection: what has handlers goes through them, and all else passes as bytes.

    arrives ──▶ no handler ───────────────▶ passes as bytes        (`switchboard`)
           └──▶ a handler ──▶ `Handling` ──▶ sent on, changed or as it came; or answered; or dropped

Order: each session has a lane for each direction (`engine/lanes`). While a handler of a lane has not sent its message
on, later messages of the lane wait, and answers as well. `session/cancel` never waits, because it has to end what does:
it passes at once, and once more after a prompt that had not been sent on yet.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Raw

from accord.engine.intake import MARK
from accord.engine.lanes import Lanes
from accord.errors import ConnectionClosed, DecodeError, ProtocolError, RequestError
from accord.jsonrpc import messages
from accord.jsonrpc.frames import RequestId
from accord.light_event import LightEvent
from accord.proxy.envelopes import INITIALIZE
from accord.proxy.failure import Failure
from accord.proxy.handling import Handling
from accord.proxy.home import Side
from accord.proxy.lending import OPENING, ProxyLending, RequestT
from accord.proxy.link import Link, Port, join
from accord.proxy.opening import version_in
from accord.proxy.registered import Registered
from accord.proxy.sent import HeldAnswer, Sent
from accord.proxy.switchboard import Switchboard
from accord.proxy.told import Told
from accord.schema import codec
from accord.schema.base import Notification, Request
from accord.schema.methods import row_for
from accord.tasks import Tasks
from accord.transports.base import End, Transport
from accord.transports.closing import within

if TYPE_CHECKING:
    from accord.engine.routes import Route
    from accord.mcp.over_acp.tool_server import ToolServer

log = logging.getLogger("accord")

CANCEL = "session/cancel"
ENDS = ("session/close", "session/delete")
"""The requests that end a session, and the state that a proxy has of it."""
GRACE = 2.0
"""Seconds that handlers have at the end of the connection."""
STUCK_AFTER = 60.0


class LiveProxy:
    """A proxy between one client and one agent."""

    def __init__(self, name: str, registered: Registered, new_state: Callable[[], Any], transport: Transport) -> None:
        self.version = 1
        """The version of the protocol: the one that was asked for, then the one that was answered."""
        self.registered = registered
        self.board = Switchboard(on_end=self._link_ended)
        self.link = Link(self.board, transport, name, is_component=False, has_successor=True)
        self.board.links.append(self.link)
        self.lanes = Lanes(stuck_after=STUCK_AFTER, on_size=self._queued)
        self.tasks = Tasks(asyncio.get_running_loop())
        self.unsent: set[Handling] = set()
        """Requests that have handlers, and have not been sent on."""
        self.own_open = 0
        """Requests of the handlers that have no answer yet: while there are any, reading goes on."""
        self.appends_to_system_prompt = False
        self._seen: set[tuple[str | None, int]] = set()
        self._new_state = new_state
        self._states: dict[str | None, Any] = {}
        self._over = LightEvent()
        servers = registered.lent.servers()
        lends = bool(servers) or not registered.is_empty  # a handler may lend a server to one session
        self._lending = ProxyLending(servers, self.board, self.link, self.tasks) if lends else None
        join(self.link.plain, self.link.wrapped)
        self.link.plain.intercept = functools.partial(self._arrived, "client", self.link.plain)
        self.link.wrapped.intercept = functools.partial(self._arrived, "agent", self.link.wrapped)
        self.link.is_busy = self._is_busy
        self._was_busy = False
        if self._lending is not None:
            self.board.on_answer = self._answer_arrived

    async def run(self) -> None:
        """Serve the connection until it ends."""
        await self.link.open()
        try:
            await self._over.wait()
            if self._lending is not None:
                self._lending.close()
            await within(GRACE, self._quiet())
        finally:
            failure = Failure(self.link.name, "closed", "the connection has ended")
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
        for asked in [it for it in link.asked.values() if isinstance(it, Sent)]:
            asked.failed(Failure(link.name, end.reason, str(end.error())))
        self._over.set()

    # What arrives

    def _arrived(self, side: Side, port: Port, request_id: RequestId | None, method: str, params: Raw | None) -> bool:
        if method == INITIALIZE and side == "client":
            self.version = version_in(params) or 1
        if self._lending is None:
            return False
        is_request = request_id is not None
        if side == "agent" and self._lending.take(request_id, method, params):
            return True
        if request_id is not None and side == "client" and method in OPENING:
            try:
                params = self._lending.added(params, self.version)
            except RequestError as error:
                port.link.put(messages.error_answer(request_id, error.code, error.message, error.data))
                return True
        if method in ENDS and is_request:
            self._states.pop(session_of(params), None)
        entry = self.registered.find(side, method, is_request=is_request, version=self.version)
        if entry is None and not is_request and not self.lanes.busy:
            return False
        session = session_of(params)
        lane = f"{side} {session or ''}"
        if method == CANCEL and side == "client" and not is_request:
            for handling in self.unsent:
                handling.cancelled_by(session, params)
            if entry is None:
                return False
        waits = lane in self.lanes.busy and not (entry is not None and entry.immediate)
        if entry is None and not waits:
            if request_id is not None:
                self.board.pass_call(port, request_id, method, params, lane=self.answer_lane(side, session))
            return is_request
        if request_id is None:
            self._told(Told(self, side, port, method, params, session, entry), lane, waits=waits)
        else:
            self._called(Handling(self, side, port, method, params, session, entry, request_id), lane)
        return True

    def _told(self, told: Told, lane: str, *, waits: bool) -> None:
        if waits or (told.entry is not None and told.entry.suspends and not told.is_immediate):
            self._enter(lane, told.method, told.run, told.size)
            return
        if (begun := told.run()) is None:
            return
        if told.is_immediate:
            self.tasks.start(_to_its_end(begun), told.method)
        else:
            self._enter(lane, told.method, told.run, 0, begun)

    def _called(self, handling: Handling, lane: str) -> None:
        if handling.entry is None or handling.entry.suspends or lane in self.lanes.busy:
            self._enter(lane, handling.method, handling.begin, handling.size)
            return
        if (passed := handling.begin()) is not None:
            self._enter(lane, handling.method, handling.begin, 0, passed)

    def _enter(
        self, lane: str, method: str, run: Callable[[], Any], size: int, begun: Awaitable[Any] | None = None
    ) -> None:
        """Let this wait for the messages before it in its lane; it may have begun, if there were none."""
        self.lanes.enter(lane).notify(cast("Route", _Turn(method, run)), None, size, begun)

    def answer_lane(self, side: Side, session: str | None) -> str:
        """The lane in which the answer to a request from this side waits: that of the other side."""
        return f"{'agent' if side == 'client' else 'client'} {session or ''}"

    def _answer_arrived(self, asked: Any, result: Raw | None, error: bytes | None, deliver: Callable[[], None]) -> bool:
        if asked.method == INITIALIZE and result is not None and asked.lane == "agent ":
            self.version = version_in(result) or self.version
            answer = codec.loads(result)
            self.appends_to_system_prompt = appends_to_system_prompt(answer)
            if self._lending is not None:
                self._lending.learn(answer)
        if asked.lane not in self.lanes.busy:
            return False
        if isinstance(asked, Sent):
            asked.outcome = result, error
            self.lanes.hold(asked.lane, asked)
        else:
            self.lanes.hold(asked.lane, HeldAnswer(deliver))
        return True

    # What is sent

    def port_to(self, side: Side) -> Port:
        return self.link.plain if side == "client" else self.link.wrapped

    def tell(self, side: Side, notification: Notification) -> None:
        """Send a notification to this side."""
        self.board.pass_tell(self._port_from_the_other(side), notification.__method__, codec.encode(notification))

    async def ask(self, side: Side, request: Request[Any]) -> tuple[Any, bytes]:
        """Send a request of our own to this side; its result, and that as JSON."""
        session = getattr(request, "session_id", None)
        sent = self.post(side, request.__method__, codec.encode(request), session)
        return await self.result_of(sent, row_for(type(request), side).result)

    def post(self, side: Side, method: str, params: bytes | None, session: str | None) -> Sent:
        """Send a request to this side; `result_of` waits for its result."""
        if self.link.failure is not None or self._over.is_set():
            raise ConnectionClosed("closed", "the connection has ended")
        sent = Sent(method, f"{side} {session or ''}", self.link)
        sent.id = self.board.ask(self.port_to(side), method, params, sent)
        return sent

    async def result_of(self, sent: Sent, result_type: Any) -> tuple[Any, bytes]:
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

    def _port_from_the_other(self, side: Side) -> Port:
        """The port by which messages for this side come in."""
        return self.link.wrapped if side == "client" else self.link.plain

    def state_of(self, session: str | None) -> Any:
        """The state of a session, made when it is first asked for."""
        if session not in self._states:
            self._states[session] = self._new_state()
        return self._states[session]

    def with_server(self, request: RequestT, server: ToolServer) -> RequestT:
        """A request that opens a session, with a server for this session."""
        assert self._lending is not None
        return self._lending.with_server(request, server, self.version)

    def is_first(self, session: str | None, what: object) -> bool:
        """Whether this is asked for the first time for a session."""
        key = (session, id(what))
        found = key in self._seen
        self._seen.add(key)
        return not found

    # Flow control

    def _queued(self, size: int) -> None:
        if (size > MARK) != self._was_busy:
            self._was_busy = size > MARK
            self.board.balance()

    def _is_busy(self) -> bool:
        """Whether so much waits for handlers that reading has to pause; not while a handler waits for an answer."""
        return self.lanes.size > MARK and not self.own_open


def appends_to_system_prompt(result: Any) -> bool:
    """Whether the agent that answered `initialize` with this takes additions to its system prompt."""
    for path in SYSTEM_PROMPT:
        value = result
        for name in (*path, "systemPrompt"):
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        if value is not None:
            return True
    return False


SYSTEM_PROMPT = (("agentCapabilities", "sessionCapabilities"), ("capabilities", "session"))
"""Where the agent declares it, in version 1 and 2."""


class _Turn:
    """A message in its lane, in the form that a lane takes."""

    __slots__ = ("method", "run")

    def __init__(self, method: str, run: Callable[[], Any]) -> None:
        self.method = method
        self.run = run

    def tell(self, _: Any) -> Any:
        return self.run()


class _Session(msgspec.Struct, gc=False):
    session_id: str | None = msgspec.field(name="sessionId", default=None)


def session_of(params: Raw | bytes | None) -> str | None:
    """The session that params name; None if they name none."""
    if params is None:
        return None
    try:
        return _decode_session(params).session_id
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


async def _to_its_end(awaitable: Awaitable[Any]) -> None:
    await awaitable


_decode_session = msgspec.json.Decoder(_Session).decode
