"""`Proxy`: what the author of a proxy writes; `LiveProxy`: a proxy on one connection.

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
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast, overload

import msgspec
from msgspec import Raw

from accord.arguments import check_callable, check_text, wrong_type
from accord.engine.intake import MARK
from accord.engine.lanes import Lanes
from accord.errors import ConnectionClosed, DecodeError, ProtocolError, RequestError
from accord.jsonrpc import messages
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import Call, parse
from accord.light_event import LightEvent
from accord.proxy.chain_mcp import OPENING, ProxyLending, RequestT
from accord.proxy.envelopes import HANDSHAKES, INITIALIZE, version_in
from accord.proxy.handled_messages import Handling, Told
from accord.proxy.hop import Hop, Side, StateT
from accord.proxy.link import Failure, Link, Port, join
from accord.proxy.own_requests import HeldAnswer, Sent
from accord.proxy.proxy_handlers import (
    Instructions,
    Registered,
    Step,
    permission_filter,
    prompt_filter,
    update_filter,
    with_hop,
)
from accord.proxy.switchboard import Switchboard
from accord.running import OWNER, Unwritable, explain_at_a_terminal, run_until_the_end
from accord.schema import codec, v1, v2
from accord.schema.base import Notification, Request
from accord.schema.methods import row_for
from accord.tasks import Tasks
from accord.transports.base import End, Transport
from accord.transports.closing import within
from accord.transports.first_frame import FirstFrame
from accord.transports.stdio import StdioTransport

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    from accord.agent.agent import Agent
    from accord.engine.routes import Route
    from accord.mcp.over_acp.tool_server import ToolServer

MessageT = TypeVar("MessageT", bound="Request[Any] | Notification")
FunctionT = TypeVar("FunctionT", bound="Callable[..., Any]")
PartT = TypeVar("PartT")
HopT = TypeVar("HopT")
GivenT = TypeVar("GivenT")

With: TypeAlias = Callable[[PartT, HopT], GivenT | Awaitable[GivenT]]
"""A function of the author's that takes a part of a message and its hop."""
Alone: TypeAlias = Callable[[PartT], GivenT | Awaitable[GivenT]]
"""The same, without the hop."""
Blocks: TypeAlias = "list[Any] | tuple[Any, ...] | None"
Choice: TypeAlias = "bool | str | v1.PermissionOption | v2.PermissionOption | None"


class Proxy(Generic[StateT]):
    """A proxy: functions that see messages between a client and an agent, and may change them.

        proxy = accord.Proxy("house-rules", version="1.0")


        @proxy.prompts
        def add_rules(prompt, hop):
            return [hop.text("Answer in one sentence."), *prompt]


        proxy.run()

    Messages without a function pass as the bytes that came. `state` is the class of `hop.state`, one object for each
    session, which is made without arguments: a dictionary by default.
    """

    def __init__(self, name: str, *, version: str = "0", state: type[StateT] | None = None) -> None:
        check_text("Proxy(name)", name)
        if state is not None and not isinstance(cast("object", state), type):
            raise wrong_type("Proxy(state=...)", "a class", state)
        self._info = v1.Implementation(name, version)
        self._registered = Registered(name)
        self._state: Callable[[], Any] = dict if state is None else state

    def __repr__(self) -> str:
        return f"Proxy({self.info.name!r}, version={self.info.version!r})"

    @property
    def info(self) -> v1.Implementation:
        """The proxy's name and version."""
        return self._info

    # Messages by class

    def from_client(
        self, message: type[MessageT]
    ) -> Callable[[Callable[[MessageT, Hop[StateT]], Any]], Callable[[MessageT, Hop[StateT]], Any]]:
        """Handle this message on its way to the agent, with a function that takes it and its `Hop`.

        The function may be a `def` or an `async def`. It returns the message, changed or not, which is sent on. For a
        request it may return an answer instead, such as the one that `await hop.forward(request)` gives. For a
        notification, None drops it. The message is of version 1 (`v1.PromptRequest`) or 2, and the function is called
        on connections of that version.
        """
        return self._registrar("client", message)

    def from_agent(
        self, message: type[MessageT]
    ) -> Callable[[Callable[[MessageT, Hop[StateT]], Any]], Callable[[MessageT, Hop[StateT]], Any]]:
        """Handle this message on its way to the client; as `from_client` in all else."""
        return self._registrar("agent", message)

    def _registrar(self, side: Side, message: type[MessageT]) -> Callable[[Any], Any]:
        given = cast("object", message)
        if not isinstance(given, type) or not issubclass(given, Request | Notification):
            raise wrong_type(f"@proxy.from_{side}()", "a message class, such as v1.PromptRequest", message)

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            check_callable(f"@proxy.from_{side}({message.__name__})", function)
            self._registered.entry(side, cast("Any", message)).add(function, with_hop(function), is_filter=False)
            return function

        return register

    # The usual things, for both versions

    @overload
    def prompts(self, function: With[list[Any], Hop[StateT], Blocks]) -> With[list[Any], Hop[StateT], Blocks]: ...
    @overload
    def prompts(self, function: Alone[list[Any], Blocks]) -> Alone[list[Any], Blocks]: ...
    def prompts(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Change what the user sends: the function takes the prompt's content blocks, and its `Hop`.

        It returns the new blocks, or None to leave them. `hop.text(...)` makes a block of text.
        """
        self._filter("client", (v1.PromptRequest, v2.PromptRequest), function, prompt_filter(function))
        return function

    @overload
    def updates(self, function: With[Any, Hop[StateT], Any]) -> With[Any, Hop[StateT], Any]: ...
    @overload
    def updates(self, function: Alone[Any, Any]) -> Alone[Any, Any]: ...
    def updates(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Change what the agent tells: the function takes an update of a session, and its `Hop`.

        It returns the update, changed or not; None drops it.
        """
        self._filter("agent", (v1.SessionNotification, v2.UpdateSessionNotification), function, update_filter(function))
        return function

    @overload
    def permissions(self, function: With[Any, Hop[StateT], Choice]) -> With[Any, Hop[StateT], Choice]: ...
    @overload
    def permissions(self, function: Alone[Any, Choice]) -> Alone[Any, Choice]: ...
    def permissions(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Answer permission requests by a policy: the function takes the request, and its `Hop`.

        It returns True or False to allow or reject once, an option of the request to choose it, or None to ask the
        user.
        """
        requests = (v1.RequestPermissionRequest, v2.RequestPermissionRequest)
        self._filter("agent", requests, function, permission_filter(function))
        return function

    def instructions(self, text: str) -> None:
        """Give the agent this text with the first prompt of each session; the user does not see it.

        An agent that takes additions to its system prompt gets it there. To another it is sent before the first prompt,
        in a marked block, and left out where the agent tells the prompt again.
        """
        check_text("proxy.instructions()", text)
        Instructions(text).register(self._registered)

    # MCP servers

    def tools(self, function: FunctionT) -> FunctionT:
        """Lend this function to the agent as a tool, in every session.

            @proxy.tools
            def search(query: str) -> list[str]:
                "Search the notes."

        The function's name, docstring and annotations become the tool's name, description and schema. It may be
        `async`. All functions are the tools of one MCP server, which has the proxy's name. Needs the extra `mcp`.
        """
        check_callable("@proxy.tools", function)
        self._registered.lent.add_function(function)
        return function

    def add_server(self, server: ToolServer | Server[Any] | MCPServer) -> None:
        """Lend this MCP server to the agent, in every session: `accord.tools(...)`, or a server that you made.

        An agent that takes no MCP servers over ACP reaches it over a bridge. Needs the extra `mcp`.
        """
        self._registered.lent.add_server(server)

    def _filter(self, side: Side, messages: tuple[Any, ...], function: Callable[..., Any], step: Step) -> None:
        for message in messages:
            self._registered.entry(side, message).add(function, step, is_filter=True)

    # Running

    @property
    def program(self) -> str:
        """The proxy's name and the file of the program: a client remembers answers for a chain by it."""
        return f"{self.info.name} {Path(sys.argv[0]).resolve()}"

    async def serve(self, transport: Transport, *, owner: str = "") -> None:  # noqa: ARG002
        """Serve one conductor over this transport, until the link ends."""
        await LiveProxy(self.info.name, self._registered, self._state, transport).run()

    def run(self, *, agent: Agent[Any] | None = None, uvloop: bool | None = None) -> None:
        """Serve the conductor that started this program, over standard input and output.

        With `agent`, one program is both: the proxy for a conductor, and the agent for a client that starts it.
        `uvloop` is used if it is installed; True insists on it, False refuses it. What the program prints meanwhile
        goes to standard error.
        """
        if agent is not None:
            explain_at_a_terminal(self.info.name)
        elif sys.stdin is not None and sys.stdin.isatty():
            print(
                f"{self.info.name} is a proxy. A conductor starts it, between a client and an agent:\n"
                f'  accord conduct "python {Path(sys.argv[0]).name}" AGENT\n'
                "Press Ctrl-D to end it.",
                file=sys.stderr,
            )
        run_until_the_end(self._serve_standard_streams(agent), self.info.name, uvloop=uvloop)

    async def _serve_standard_streams(self, agent: Agent[Any] | None) -> None:
        transport = StdioTransport.standard()
        if agent is None:
            await self.serve(transport)
        else:
            await self._serve_as_either(agent, FirstFrame(transport))
        if (error := transport.output_error) is not None:
            raise Unwritable(f"cannot write to standard output: {error.strerror or error}")

    async def _serve_as_either(self, agent: Agent[Any], transport: FirstFrame) -> None:
        """Serve as what the first message asks for: a conductor initializes a proxy, a client an agent."""
        frame = await transport.first()
        first = None if frame is None else parse(frame)
        if isinstance(first, Call) and first.method in HANDSHAKES:
            await self.serve(transport)
        else:
            await agent.serve(transport, owner=os.environ.get(OWNER, ""))


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
