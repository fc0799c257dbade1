"""`Proxy`: for authors of proxies; `LiveProxy`: a proxy on one connection.

    arrives ──▶ no handler ───────────────▶ passes as bytes        (`switchboard`)
           └──▶ a handler ──▶ `HandledRequest` ──▶ sent on, changed or as it came; or answered; or dropped

Order: each session has a lane for each direction (`engine/lanes`). While a handler of a lane has not sent its message
on, later messages of the lane wait, and answers as well. `session/cancel` never waits, because it must end the waiting
handler: it passes at once, and once more after a prompt that had not been sent on yet.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast, overload

import msgspec
from msgspec import Raw

from accord._internal.tasks import is_async, is_awaitable, name_of, within
from accord.agent.author_thread import AuthorThread, check_annotations
from accord.engine.flow_control import MARK
from accord.engine.handlers import takes_two
from accord.engine.incoming_requests import session_of
from accord.engine.lanes import Lanes
from accord.errors import RequestError
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import RequestFrame, parse
from accord.mistakes import check_callable, check_text, place_of, wrong_type
from accord.program import OWNER, Unwritable, explain_at_a_terminal, run_until_the_end
from accord.proxy import plain_hop
from accord.proxy.chain_mcp import OPENING
from accord.proxy.handled_messages import HandledNotification, HandledRequest
from accord.proxy.hop import (
    Hop,
    Instructions,
    ProxyConnection,
    ProxyHandlers,
    Side,
    StateT,
    Step,
    permission_filter,
    prompt_filter,
    update_filter,
)
from accord.proxy.link import HANDSHAKES, INITIALIZE, ComponentFailure, Link, Port, join, version_in
from accord.proxy.switchboard import OwnRequest, QueuedAnswer
from accord.schema import codec, v1, v2
from accord.schema.base import Notification, Request
from accord.schema.capabilities import declared_in
from accord.transports import End, Transport
from accord.transports.stdio_transport import StdioTransport
from accord.transports.wrapped_transport import FirstFrame

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    from accord.agent.agent import Agent
    from accord.engine.routes import Route
    from accord.mcp.tool_server import ToolServer
    from accord.schema.extension import Extension, Extensions

MessageT = TypeVar("MessageT", bound="Request[Any] | Notification")
FunctionT = TypeVar("FunctionT", bound="Callable[..., Any]")
PartT = TypeVar("PartT")
HopStateT = TypeVar("HopStateT")
GivenT = TypeVar("GivenT")

With: TypeAlias = (
    "Callable[[PartT, Hop[HopStateT]], Awaitable[GivenT]] | Callable[[PartT, plain_hop.Hop[HopStateT]], GivenT]"
)
"""An author's function that takes a part of a message and its hop."""
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

    Messages without a function pass unchanged. `state` is the class of `hop.state`, one object for each session, which
    is made without arguments: a dictionary by default. `extensions` are the proxy's own: those whose messages
    `from_client` handles are declared to the client, and those for `from_agent` to the agent.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0",
        state: type[StateT] | None = None,
        extensions: Iterable[type[Extension[Any]] | str] | Extensions = (),
    ) -> None:
        check_text("Proxy(name)", name)
        if state is not None and not isinstance(cast("object", state), type):
            raise wrong_type("Proxy(state=...)", "a class", state)
        self._info = v1.Implementation(name, version)
        self._handlers = ProxyHandlers(name)
        self._state: Callable[[], Any] = dict if state is None else state
        if extensions:
            self._declare(extensions)

    def __repr__(self) -> str:
        return f"Proxy({self.info.name!r}, version={self.info.version!r})"

    @property
    def info(self) -> v1.Implementation:
        """The proxy's name and version."""
        return self._info

    def _declare(self, given: Iterable[type[Extension[Any]] | str] | Extensions) -> None:
        """Declare to each neighbour the extensions whose messages from it are handled here."""
        from accord.schema.extension import chosen_extensions, declarations, merged_meta

        chosen = chosen_extensions("Proxy(extensions=...)", given)

        def declaring(value: Any, side: Side) -> Any:
            handled = {
                it: offer
                for it, offer in chosen.items()
                if any(
                    self._handlers.find(side, message.__method__, is_request=issubclass(message, Request), version=1)
                    for message in it.messages
                )
            }
            declared = declared_in(value)
            if declared is None or not handled:
                return value
            name = next(it for it in value.__struct_fields__ if getattr(value, it) is declared)
            meta = merged_meta(declared.meta, declarations(handled))
            return msgspec.structs.replace(value, **{name: msgspec.structs.replace(declared, meta=meta)})

        async def initialize(request: Any, hop: Any) -> Any:
            return declaring(await hop.forward(declaring(request, "agent")), "client")

        for message in (v1.InitializeRequest, v2.InitializeRequest):
            self.from_client(message)(initialize)

    # Messages by class

    def from_client(self, message: type[MessageT]) -> Callable[[With[MessageT, StateT, Any]], Callable[..., Any]]:
        """Handle this message on its way to the agent, with a function that takes it and its `Hop`.

        The function may be an `async def`, or a `def`, which gets an `accord.sync.Hop`: see docs/plain-functions.md. It
        returns the message, changed or not, which is sent on. For a request it may return an answer instead, such as
        the result of `await hop.forward(request)`. For a notification, None drops it. The message is of version 1
        (`v1.PromptRequest`) or 2, and the function is called on connections of that version.
        """
        return self._registrar("client", message)

    def from_agent(self, message: type[MessageT]) -> Callable[[With[MessageT, StateT, Any]], Callable[..., Any]]:
        """Handle this message on its way to the client; otherwise like `from_client`."""
        return self._registrar("agent", message)

    def _registrar(self, side: Side, message: type[MessageT]) -> Callable[[Any], Any]:
        given = cast("object", message)
        if not isinstance(given, type) or not issubclass(given, Request | Notification):
            raise wrong_type(f"@proxy.from_{side}()", "a message class, such as v1.PromptRequest", message)

        is_request = issubclass(given, Request)

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            step = _author_step(f"@proxy.from_{side}({message.__name__})", function, is_request=is_request)
            suspends = is_request or is_async(function)
            self._handlers.entry(side, cast("Any", message)).add(step, is_filter=False, suspends=suspends)
            return function

        return register

    # The usual things, for both versions

    @overload
    def prompts(self, function: With[list[Any], StateT, Blocks]) -> With[list[Any], StateT, Blocks]: ...
    @overload
    def prompts(self, function: Alone[list[Any], Blocks]) -> Alone[list[Any], Blocks]: ...
    def prompts(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Change the user's prompts: the function takes the prompt's content blocks, and its `Hop`.

        It returns the new blocks, or None for no change. `hop.text(...)` makes a block of text.
        """
        step = prompt_filter(_author_step("@proxy.prompts", function, is_request=True))
        self._filter("client", (v1.PromptRequest, v2.PromptRequest), step, suspends=True)
        return function

    @overload
    def updates(self, function: With[Any, StateT, Any]) -> With[Any, StateT, Any]: ...
    @overload
    def updates(self, function: Alone[Any, Any]) -> Alone[Any, Any]: ...
    def updates(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Change the agent's updates: the function takes an update of a session, and its `Hop`.

        It returns the update, changed or not; None drops it.
        """
        step = _author_step("@proxy.updates", function, is_request=False)
        step = update_filter(step, place_of(function))
        notifications = (v1.SessionNotification, v2.UpdateSessionNotification)
        self._filter("agent", notifications, step, suspends=is_async(function))
        return function

    @overload
    def permissions(self, function: With[Any, StateT, Choice]) -> With[Any, StateT, Choice]: ...
    @overload
    def permissions(self, function: Alone[Any, Choice]) -> Alone[Any, Choice]: ...
    def permissions(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Answer permission requests by a policy: the function takes the request, and its `Hop`.

        It returns True or False to allow or reject once, an option of the request to choose it, or None to ask the
        user.
        """
        step = permission_filter(_author_step("@proxy.permissions", function, is_request=True))
        self._filter("agent", (v1.RequestPermissionRequest, v2.RequestPermissionRequest), step, suspends=True)
        return function

    def instructions(self, text: str) -> None:
        """Send the agent this text with the first prompt of each session; the user does not see it.

        An agent that accepts additions to its system prompt gets it there. To others it is sent before the first
        prompt, in a marked block, which is removed when the agent replays the prompt.
        """
        check_text("proxy.instructions()", text)
        Instructions(text).register(self._handlers)

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
        self._handlers.lent.add_function(function)
        return function

    def add_server(self, server: ToolServer | Server[Any] | MCPServer) -> None:
        """Lend this MCP server to the agent, in every session: `accord.tools(...)`, or a server of your own.

        An agent that supports no MCP servers over ACP reaches it over a bridge. Needs the extra `mcp`.
        """
        self._handlers.lent.add_server(server)

    def _filter(self, side: Side, messages: tuple[Any, ...], step: Step, *, suspends: bool) -> None:
        for message in messages:
            self._handlers.entry(side, message).add(step, is_filter=True, suspends=suspends)

    # Running

    @property
    def program(self) -> str:
        """The proxy's name and the file of the program: a client remembers answers for a chain under it."""
        return f"{self.info.name} {Path(sys.argv[0]).resolve()}"

    async def serve(self, transport: Transport, *, owner: str = "") -> None:  # noqa: ARG002
        """Serve one conductor over this transport, until the link ends."""
        await LiveProxy(self.info.name, self._handlers, self._state, transport).run()

    def run(self, *, agent: Agent[Any] | None = None, uvloop: bool | None = None) -> None:
        """Serve the conductor that started this program, over standard input and output.

        With `agent`, one program is both: the proxy for a conductor, and the agent for a client that starts it.
        `uvloop` is used if it is installed; True requires it, False forbids it. What the program prints meanwhile goes
        to standard error.
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
        """Serve in the role that the first message asks for: a conductor initializes a proxy, a client an agent."""
        frame = await transport.first()
        first = None if frame is None else parse(frame)
        if isinstance(first, RequestFrame) and first.method in HANDSHAKES:
            await self.serve(transport)
        else:
            await agent.serve(transport, owner=os.environ.get(OWNER, ""))


log = logging.getLogger("accord")

CANCEL = "session/cancel"
ENDS = ("session/close", "session/delete")
"""The requests that end a session, and with it the proxy's state of it."""
GRACE = 2.0
"""Seconds that handlers have at the end of the connection."""
STUCK_AFTER = 60.0


class LiveProxy(ProxyConnection):
    """A proxy between one client and one agent."""

    def __init__(self, name: str, handlers: ProxyHandlers, new_state: Callable[[], Any], transport: Transport) -> None:
        servers = handlers.lent.servers()
        super().__init__(name, servers, new_state, transport)
        self.handlers = handlers
        self.lanes = Lanes(stuck_after=STUCK_AFTER, on_size=self._queued)
        self._looks_at_messages = bool(servers) or not handlers.is_empty
        """Whether messages must be examined; a handler may lend a server to one session."""
        self._was_busy = False
        self.board.links.append(self.link)
        self.board.on_end = self._link_ended
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
            self._enter(lane, notification.method, notification.run, notification.size)
            return
        if (begun := notification.run()) is None:
            return
        if notification.is_immediate:
            self.tasks.start(_to_its_end(begun), notification.method)
        else:
            self._enter(lane, notification.method, notification.run, 0, begun)

    def _request_arrived(self, request: HandledRequest, lane: str) -> None:
        if request.entry is None or request.entry.suspends or lane in self.lanes.busy:
            self._enter(lane, request.method, request.begin, request.size)
            return
        if (passed := request.begin()) is not None:
            self._enter(lane, request.method, request.begin, 0, passed)

    def _enter(
        self, lane: str, method: str, run: Callable[[], Any], size: int, begun: Awaitable[Any] | None = None
    ) -> None:
        """Let this wait for the messages before it in its lane; without any, it may have begun."""
        self.lanes.enter(lane).notify(cast("Route", _Turn(method, run)), None, size, begun)

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


class _Turn:
    """A message in its lane, in the form that lanes need."""

    __slots__ = ("method", "run")

    def __init__(self, method: str, run: Callable[[], Any]) -> None:
        self.method = method
        self.run = run

    def tell(self, _: Any) -> Any:
        return self.run()


def _author_step(what: str, function: Callable[..., Any], *, is_request: bool) -> Step:
    """Return an author's function as a step, even if it is plain, or takes no hop. `what` names its decorator in
    errors.
    """
    check_callable(what, function)
    check_annotations(what, function)
    with_hop: Step = function if takes_two(function) else lambda part, _: function(part)
    call: Callable[..., Any] = with_hop  # with a hop of either kind
    if is_async(function):
        return call
    if not is_request:
        return lambda part, held: call(part, plain_hop.Hop(AuthorThread(), held))

    @functools.wraps(function)
    async def step(part: Any, held: Hop[Any]) -> Any:
        thread = AuthorThread()
        work = functools.partial(call, part, plain_hop.Hop(thread, held))
        result = await thread.run(work, f"accord {name_of(function)}")
        return await result if is_awaitable(result) else result

    return step


async def _to_its_end(awaitable: Awaitable[Any]) -> None:
    await awaitable
