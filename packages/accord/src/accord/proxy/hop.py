"""`Hop`: what a handler of a proxy holds beside its message; `ProxyConnection`: what is behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast, overload

from accord._internal.light_event import LightEvent
from accord._internal.tasks import Tasks
from accord.arguments import wrong_type
from accord.errors import ConnectionClosed, DecodeError, ProtocolError
from accord.proxy.chain_mcp import OPENING, ProxyLending, RequestT, as_tool_server
from accord.proxy.link import Link, Port
from accord.proxy.own_requests import OwnRequest
from accord.proxy.switchboard import Switchboard
from accord.schema import codec, v1
from accord.schema.base import Notification, Request
from accord.schema.methods import row_for
from accord.transports.transport_interface import Transport

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer
    from typing_extensions import TypeVar as TypeVarWithDefault  # a proxy without a state class needs no type argument

    from accord.mcp.tool_server import ToolServer

    StateT = TypeVarWithDefault("StateT", default=Any)
else:
    StateT = TypeVar("StateT")

ResultT = TypeVar("ResultT")

Side: TypeAlias = Literal["client", "agent"]
"""The two neighbours of a proxy."""


def other(side: Side) -> Side:
    """The other side of a proxy."""
    return "agent" if side == "client" else "client"


class ProxyConnection:
    """A proxy on one connection, as its handlers use it: both neighbours, the states of sessions, what was lent."""

    def __init__(
        self, name: str, servers: list[ToolServer], new_state: Callable[[], Any], transport: Transport
    ) -> None:
        self.version = 1
        """The version of the protocol: the one that was asked for, then the one that was answered."""
        self.board = Switchboard()
        self.link = Link(self.board, transport, name, is_component=False, has_successor=True)
        self.tasks = Tasks(asyncio.get_running_loop())
        self.unsent: set[Any] = set()
        """Requests that have handlers, and have not been sent on."""
        self.own_open = 0
        """Requests of the handlers that have no answer yet: while there are any, reading goes on."""
        self.appends_to_system_prompt = False
        self.over = LightEvent()
        """Set when the connection has ended."""
        self.lending = ProxyLending(servers, self.board, self.link, self.tasks)
        self._seen: set[tuple[str | None, int]] = set()
        self._new_state = new_state
        self._states: dict[str | None, Any] = {}

    def port_to(self, side: Side) -> Port:
        return self.link.plain if side == "client" else self.link.wrapped

    def tell(self, side: Side, notification: Notification) -> None:
        """Send a notification to this side."""
        self.board.pass_notification(
            self._port_from_the_other(side), notification.__method__, codec.encode(notification)
        )

    async def ask(self, side: Side, request: Request[Any]) -> tuple[Any, bytes]:
        """Send a request of our own to this side; its result, and that as JSON."""
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

    def _port_from_the_other(self, side: Side) -> Port:
        """The port by which messages for this side come in."""
        return self.link.wrapped if side == "client" else self.link.plain

    def state_of(self, session: str | None) -> Any:
        """The state of a session, made when it is first asked for."""
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


class Neighbour:
    """The client or the agent, as a proxy speaks to it on its own."""

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
    """A message on its way through a proxy, and what its handler can do."""

    def __init__(
        self, live: ProxyConnection, side: Side, session_id: str | None, forward: Callable[[Any], Any]
    ) -> None:
        self.session_id = session_id
        """The session that the message belongs to; None if it names none."""
        self.client = Neighbour(live, "client")
        """The client, for messages of the proxy's own."""
        self.agent = Neighbour(live, "agent")
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
        """Whether the agent takes additions to its system prompt, in requests that open a session."""
        return self._live.appends_to_system_prompt

    def is_first(self, what: object) -> bool:
        """Whether this is asked for the first time, for this message's session on this connection."""
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
        """Send the message on, changed or as it came; for a request, wait for its result.

        A handler of a request returns the result, changed or not. Raises PeerError when the answer is an error: a
        handler that does not catch it passes the error on as it came.
        """
        return await self._forward(message)

    def with_server(self, request: RequestT, server: ToolServer | Server[Any] | MCPServer) -> RequestT:
        """The request that opens a session, with this MCP server for that session only.

            @proxy.from_client(v1.NewSessionRequest)
            def lend_notes(request, hop):
                return hop.with_server(request, accord.tools(notes_of(request.cwd)))

        It takes what `proxy.add_server` takes, and the agent reaches the server in the same ways. The server is there
        until the connection ends. Raises RequestError if the request lists a server of this name already. Needs the
        extra `mcp`.
        """
        if getattr(request, "__method__", None) not in OPENING:
            raise wrong_type("hop.with_server()", "a request that opens a session, such as NewSessionRequest", request)
        return self._live.with_server(request, as_tool_server("hop.with_server()", server))

    def text(self, text: str) -> Any:
        """A block of text in the version of this connection."""
        if self.version == 1:
            return v1.TextContent(text)
        from accord.schema import v2

        return v2.TextContent(text)
