"""`Proxy`: what the author of a proxy writes. It holds functions and nothing live; each connection is a `LiveProxy`."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast, overload

from accord.arguments import check_callable, check_text, wrong_type
from accord.jsonrpc.messages import Call, parse
from accord.proxy.envelopes import HANDSHAKES
from accord.proxy.filters import permission_filter, prompt_filter, update_filter
from accord.proxy.home import Side
from accord.proxy.hop import Hop, StateT
from accord.proxy.instructions import Instructions
from accord.proxy.live import LiveProxy
from accord.proxy.registered import Registered, Step, with_hop
from accord.running import OWNER, Unwritable, explain_at_a_terminal, run_until_the_end
from accord.schema import v1, v2
from accord.schema.base import Notification, Request
from accord.transports.base import Transport
from accord.transports.first_frame import FirstFrame
from accord.transports.stdio import StdioTransport

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    from accord.agent.agent import Agent
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
