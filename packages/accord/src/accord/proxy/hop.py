"""`Hop`: a handler's view of a message's passage; and which handlers get which messages, and in what order.

A step that returns a message passes it to the next one, and the last one's is sent on. Any other value ends the chain:
for a notification, None drops it; for a request, the value is the answer.

Each filter (prompts, updates, permissions) is a step that takes a whole message, and calls the author's function with
the relevant part.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast, overload

import msgspec

from accord._internal.tasks import LightEvent, Tasks, is_awaitable
from accord.errors import ConnectionClosed, DecodeError, ProtocolError
from accord.mistakes import WrongReturn, wrong_type
from accord.proxy.chain_mcp import ProxyLending, ProxyServers, RequestT, as_tool_server
from accord.proxy.link import Link, Port
from accord.proxy.switchboard import OwnRequest, Switchboard
from accord.schema import codec, shared_updates as updates, v1, v2
from accord.schema.base import Notification, Request, Shape, Unknown
from accord.schema.methods import row_for
from accord.transports import Transport

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer
    from typing_extensions import TypeVar as TypeVarWithDefault  # a proxy without a state class needs no type argument

    from accord.mcp.tool_server import ToolServer

    StateT = TypeVarWithDefault("StateT", default=Any)
else:
    StateT = TypeVar("StateT")

log = logging.getLogger("accord")


ResultT = TypeVar("ResultT")

Side: TypeAlias = Literal["client", "agent"]
"""The two neighbours of a proxy."""


def other(side: Side) -> Side:
    """The other side of a proxy."""
    return "agent" if side == "client" else "client"


class ProxyConnection:
    """A proxy on one connection, as its handlers use it: both neighbours, the states of sessions, its lent servers."""

    def __init__(
        self, name: str, servers: list[ToolServer], new_state: Callable[[], Any], transport: Transport
    ) -> None:
        self.version = 1
        """The version of the protocol: first the requested one, then the one in the answer."""
        self.board = Switchboard()
        self.link = Link(self.board, transport, name, is_component=False, has_successor=True)
        self.tasks = Tasks(asyncio.get_running_loop())
        self.unsent: set[Any] = set()
        """Requests that have handlers, and have not been sent on."""
        self.own_open = 0
        """Requests of the handlers that have no answer yet: while there are any, reading continues."""
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

    def _port_from_the_other(self, side: Side) -> Port:
        """Return the port by which messages for this side arrive."""
        return self.link.wrapped if side == "client" else self.link.plain

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
        from accord.schema import v2

        return v2.TextContent(text)


Step: TypeAlias = Callable[[Any, Hop[Any]], Any]
"""Takes a message and its hop. Returns a message to pass on; an answer; or None."""

ANY = 0
"""The version of messages that have none: an author's own classes."""


class MessageHandlers:
    """The functions for one message: filters, which see it first and in order, and at most one handler."""

    def __init__(self, message: type[Request[Any] | Notification]) -> None:
        row = row_for(message, "protocol")
        self.message = message
        self.params = row.params
        self.result = row.result
        self.suspends = False
        """Whether one of the functions is an `async def`, or runs in a thread."""
        self.immediate = issubclass(message, Notification) and message.__immediate__
        self.filters: list[Step] = []
        self.handler: Step | None = None

    @property
    def steps(self) -> list[Step]:
        """The functions in the order in which they are called."""
        return self.filters if self.handler is None else [*self.filters, self.handler]

    def add(self, step: Step, *, is_filter: bool, suspends: bool = False) -> None:
        """Add a step; whether it `suspends` is known before it is called."""
        self.suspends = self.suspends or suspends
        if is_filter:
            self.filters.append(step)
        elif self.handler is not None:
            name = self.message.__name__
            raise ValueError(
                f"{name} from this side has a handler already; register one, or use proxy.prompts and others"
            )
        else:
            self.handler = step


class ProxyHandlers:
    """The entries of a proxy."""

    def __init__(self, name: str) -> None:
        self.lent = ProxyServers(name)
        """The MCP servers that the proxy lends."""
        self._entries: dict[tuple[Side, str, bool, int], MessageHandlers] = {}
        self._missed: set[tuple[Side, str, int]] = set()

    @property
    def is_empty(self) -> bool:
        """Whether no function sees any message."""
        return not self._entries

    def entry(self, side: Side, message: type[Request[Any] | Notification]) -> MessageHandlers:
        """Return the entry of a message from this side, made if there is none."""
        for version in versions_of(message):
            key = (side, message.__method__, issubclass(message, Request), version)
            made = self._entries.setdefault(key, MessageHandlers(message))
        return made  # pyright: ignore[reportPossiblyUnboundVariable]  # a message has at least one version

    def find(self, side: Side, method: str, *, is_request: bool, version: int) -> MessageHandlers | None:
        """Return the entry for a message that has arrived; None if no function sees it."""
        entries = self._entries
        found = entries.get((side, method, is_request, version)) or entries.get((side, method, is_request, ANY))
        if found is None and (side, method, is_request, 3 - version) in entries:
            self._warn_once(side, method, version)
        return found

    def _warn_once(self, side: Side, method: str, version: int) -> None:
        if (side, method, version) not in self._missed:
            self._missed.add((side, method, version))
            log.warning(
                "%s passes unseen: this connection has version %d of the protocol, and its handler is of version %d",
                method,
                version,
                3 - version,
            )


def versions_of(message: type[Request[Any] | Notification]) -> tuple[int, ...]:
    """Return the versions that a message class belongs to; some belong to both, and an author's own class to any."""
    if message.__module__.startswith("accord.schema.v2"):
        return (2,)
    if not message.__module__.startswith("accord.schema.v1"):
        return (ANY,)
    from accord.schema import v2  # loaded only for proxies, which have to know both

    return (1, 2) if getattr(v2, message.__name__, None) is message else (1,)


def run_steps(entry: MessageHandlers, message: Any, hop: Hop[Any]) -> Any:
    """Call the steps of an entry; returns the result of the last one, or an awaitable of it."""
    steps = entry.steps
    value: Any = message
    for at, step in enumerate(steps):
        value = step(value, hop)
        if is_awaitable(value):
            return _run_on(steps[at + 1 :], value, hop)
        if not is_message(value):
            return value
    return value


async def _run_on(steps: list[Step], awaited: Awaitable[Any], hop: Hop[Any]) -> Any:
    value = await awaited
    for step in steps:
        if not is_message(value):
            return value
        value = step(value, hop)
        if is_awaitable(value):
            value = await value
    return value


def is_message(value: Any) -> bool:
    """Whether a step has returned a message, which continues."""
    return isinstance(value, Request | Notification)


def prompt_filter(call: Step) -> Step:
    """Return a step with which the function changes the blocks of a prompt."""

    def finish(request: Any, blocks: Any) -> Any:
        if blocks is None or blocks is request.prompt:
            return request
        if isinstance(blocks, str) or not isinstance(blocks, list | tuple):
            raise TypeError(
                f"a function of proxy.prompts returns a list of content blocks, got {type(blocks).__name__}"
            )
        return msgspec.structs.replace(request, prompt=list(cast("list[Any]", blocks)))

    return _step(call, lambda request: request.prompt, finish)


def update_filter(call: Step, place: str) -> Step:
    """Return a step with which the function changes or drops an update; errors name the function's place."""

    def finish(notification: Any, update: Any) -> Any:
        old = notification.update
        if update is old:
            return notification
        if update is None:
            return None
        if not _is_update(update):
            raise WrongReturn(
                f"{place}, must return an update of a session, or None to drop it, got {type(update).__name__}; "
                "for other text, return v1.AgentMessageChunk.of(text)"
            )
        if isinstance(update, updates.ContentChunk) and update.message_id is None:  # part of the same message
            update = msgspec.structs.replace(update, message_id=getattr(old, "message_id", None))
            if update.message_id is None and isinstance(notification, v2.UpdateSessionNotification):
                name = type(update).__name__
                raise WrongReturn(
                    f"{place}, returned an update {name} without a message_id in place of {type(old).__name__}; "
                    f"in version 2, write {name}.of(text, message_id)"
                )
        return msgspec.structs.replace(notification, update=update)

    return _step(call, lambda notification: notification.update, finish)


def _is_update(value: Any) -> bool:
    return isinstance(value, Unknown) or (
        isinstance(value, Shape) and value.__struct_config__.tag_field == "sessionUpdate"
    )


def permission_filter(call: Step) -> Step:
    """Return a step with which the function answers a permission request."""

    def finish(request: Any, choice: Any) -> Any:
        return request if choice is None else _answer(request, choice)

    return _step(call, lambda request: request, finish)


def _answer(request: Any, choice: Any) -> Any:
    from accord.schema import v1, v2

    option = _option(request, choice)
    version = v1 if isinstance(request, v1.RequestPermissionRequest) else v2
    response: Any = version.RequestPermissionResponse
    if option is not None:
        return response.selected(option)
    return request if choice else response.cancelled()  # the user decides about requests that cannot be allowed once


def _option(request: Any, choice: Any) -> Any:
    """Return the option that a policy has chosen; None if the agent offers none of the kind."""
    if not isinstance(choice, bool):
        wanted = getattr(choice, "option_id", choice)
        found = [option for option in request.options if option.option_id == wanted]
        if not found:
            offered = ", ".join(option.option_id for option in request.options)
            raise ValueError(f"a function of proxy.permissions chose {wanted!r}; the options are {offered}")
        return found[0]
    for kind in ("allow_once",) if choice else ("reject_once", "reject_always"):
        for option in request.options:
            if option.kind == kind:
                return option
    return None


def _step(call: Step, part: Callable[[Any], Any], finish: Callable[[Any, Any], Any]) -> Step:
    def step(message: Any, hop: Hop[Any]) -> Any:
        value = call(part(message), hop)
        return _later(message, value, finish) if is_awaitable(value) else finish(message, value)

    return step


async def _later(message: Any, value: Awaitable[Any], finish: Callable[[Any, Any], Any]) -> Any:
    return finish(message, await value)


OPENING_REQUESTS = (
    v1.NewSessionRequest,
    v1.LoadSessionRequest,
    v1.ResumeSessionRequest,
    v1.ForkSessionRequest,
    v2.NewSessionRequest,
    v2.ResumeSessionRequest,
    v2.ForkSessionRequest,
)
"""The requests that open a session, and may carry an addition to its system prompt."""


class Instructions:
    """One text for the agent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._block = f"<instructions>\n{text}\n</instructions>"

    def register(self, handlers: ProxyHandlers) -> None:
        """Add the steps that the instructions need."""
        for request in OPENING_REQUESTS:
            handlers.entry("client", request).add(self._on_opening, is_filter=True)
        for prompt in (v1.PromptRequest, v2.PromptRequest):
            handlers.entry("client", prompt).add(self._on_prompt, is_filter=True)
        for update in (v1.SessionNotification, v2.UpdateSessionNotification):
            handlers.entry("agent", update).add(self._on_update, is_filter=True)

    def _on_opening(self, request: Any, hop: Hop[Any]) -> Any:
        if not hop.appends_to_system_prompt:
            return request
        given = request.system_prompt
        ours = hop.text(self._text)
        if given is None:
            given = (v1 if hop.version == 1 else v2).SystemPrompt("append", [ours])
        else:
            given = msgspec.structs.replace(given, content=[*given.content, ours])
        return msgspec.structs.replace(request, system_prompt=given)

    def _on_prompt(self, request: Any, hop: Hop[Any]) -> Any:
        if hop.appends_to_system_prompt or not hop.is_first(self):
            return request
        return msgspec.structs.replace(request, prompt=[hop.text(self._block), *request.prompt])

    def _on_update(self, notification: Any, _: Hop[Any]) -> Any:
        update = notification.update
        if isinstance(update, v1.UserMessageChunk | v2.UserMessageChunk):
            content = self._without(update.content)
            if content is update.content:
                return notification
            if content is None:
                return None
            return msgspec.structs.replace(notification, update=msgspec.structs.replace(update, content=content))
        if isinstance(update, v2.UserMessage) and isinstance(update.content, list):
            kept = [block for block in map(self._without, update.content) if block is not None]
            return msgspec.structs.replace(notification, update=msgspec.structs.replace(update, content=kept))
        return notification

    def _without(self, block: Any) -> Any:
        """Return a block of the user's message without the instructions; None if nothing else is in it."""
        text = getattr(block, "text", None)
        if not isinstance(text, str) or not text.startswith(self._block):
            return block
        rest = text.removeprefix(self._block).lstrip("\n")
        return msgspec.structs.replace(block, text=rest) if rest else None
