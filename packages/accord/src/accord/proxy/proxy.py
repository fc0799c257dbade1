"""`Proxy`: for authors of proxies."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast, overload

import msgspec

from accord._internal.tasks import is_async, is_awaitable, name_of
from accord.agent.author_thread import AuthorThread, check_annotations
from accord.engine.handlers import takes_two
from accord.jsonrpc.wire_messages import RequestFrame, parse
from accord.mcp.tool_server import ToolServer
from accord.mistakes import check_callable, check_text, place_of, wrong_type
from accord.program import OWNER, Unwritable, explain_at_a_terminal, run_until_the_end
from accord.proxy import plain_hop
from accord.proxy.hop import Hop, ProxyConnection, StateT
from accord.proxy.link import HANDSHAKES
from accord.proxy.message_handlers import (
    OPENING_REQUESTS,
    ProxyHandlers,
    Side,
    Step,
    permission_filter,
    prompt_filter,
    update_filter,
)
from accord.schema import v1, v2
from accord.schema.base import Notification, Request
from accord.schema.capabilities import declared_in
from accord.schema.extension import Extension, Extensions, chosen_extensions, declarations, merged_meta
from accord.transports import Transport
from accord.transports.stdio_transport import StdioTransport
from accord.transports.wrapped_transport import FirstFrame

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    from accord.agent.agent import Agent
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
        await ProxyConnection(self.info.name, self._handlers, self._state, transport).run()

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
