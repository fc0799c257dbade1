"""`McpServer`: one MCP server, its lists, and requests to it, over one connection after the other.

    request ──▶ SessionTask, a connection ──▶ the server
                 └─ the server is gone ──▶ the next request restarts it

A server that dies is restarted by the next request, and its lists are read again. Open requests are not repeated,
because the server may have done part of them. If it fails again, the next restart waits a second, then two, and so on
up to a minute. A server that could never be reached is not tried again.

The server's questions to the user are passed on to the client; both protocols use the same JSON for them.

All MCP servers of a session, connected at the same time and used as one.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from accord import __version__
from accord.errors import AccordError, McpServerError, ProtocolError
from accord.mcp import catalog
from accord.mcp.catalog import McpMessage, McpPrompt, McpResource, McpResult, McpTool
from accord.mcp.server_transports import SessionTask, Surroundings, name_of, problem, transport_for
from accord.schema import codec, v1
from accord.schema.base import Json, Unknown
from accord.services.form_fields import asked_for, form_excess, problems, secrets_in

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client
    from mcp.client.session import ClientRequestContext, IncomingMessage
    from mcp_types import ElicitRequestParams, ElicitResult, ListRootsResult


class ServerQuestions:
    """The questions of one server."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._pages: set[str] = set()
        """Ids of the pages that the user agreed to visit."""

    async def ask(
        self, params: mcp_types.ElicitRequestParams, tool_call_id: v1.ToolCallId | None
    ) -> mcp_types.ElicitResult:
        """Ask the user; a question that this client cannot ask is declined, and so is a form that asks for secrets."""
        import mcp_types

        try:
            asked = question(self._surroundings, params, tool_call_id)
            answer = await self._surroundings.peer.request(asked)
        except AccordError:
            return mcp_types.ElicitResult(action="decline")
        if not isinstance(answer, v1.ElicitationAcceptAction):
            declined = isinstance(answer, v1.ElicitationDeclineAction)
            return mcp_types.ElicitResult(action="decline" if declined else "cancel")
        if isinstance(asked, v1.ElicitationUrlMode):
            self._pages.add(asked.elicitation_id)
        content = cast("dict[str, Any] | None", answer.content)
        if isinstance(asked, v1.ElicitationFormMode) and content is not None:
            content = cast("dict[str, Any]", asked_for(asked.requested_schema, content))
            if problems(asked.requested_schema, content):
                return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content=content)

    async def completed(self, elicitation_id: str) -> None:
        """Notify the client that the user has finished on a page."""
        if elicitation_id in self._pages:
            self._pages.discard(elicitation_id)
            done = v1.CompleteElicitationNotification(v1.ElicitationId(elicitation_id))
            await self._surroundings.peer.notify(done)


def question(
    surroundings: Surroundings, params: mcp_types.ElicitRequestParams, tool_call_id: v1.ToolCallId | None
) -> v1.CreateElicitationRequest:
    """Return the server's question as a request to the client; raises ProtocolError for one that must not be asked."""
    common: dict[str, Any] = {
        "message": params.message,
        "session_id": surroundings.session_id,
        "tool_call_id": tool_call_id,
    }
    if params.mode == "url":
        elicitation_id = v1.ElicitationId(params.elicitation_id or uuid.uuid4().hex)
        return v1.ElicitationUrlMode(**common, elicitation_id=elicitation_id, url=params.url)
    form = codec.decode(codec.encode(params.requested_schema), v1.ElicitationSchema)
    if (problem := form_excess(form)) is not None:
        raise ProtocolError(problem)
    if secrets := secrets_in(form):
        raise ProtocolError(f"form must not ask for secrets, but has {', '.join(secrets)}; use a URL for them")
    return v1.ElicitationFormMode(**common, requested_schema=form)


T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between restarts of a server that keeps failing."""

GONE = "the server closed the connection"

log = logging.getLogger("accord")

Failed = Callable[[McpServerError], Awaitable[None]]


class ToolProgress(Protocol):
    """Called with the progress of a tool call, its total if that is known, and a message if there is one."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


_OFFERED: dict[str, Callable[[str, Any], Any]] = {
    "tools": catalog.tool_of,
    "resources": catalog.resource_of,
    "prompts": catalog.prompt_of,
}
"""The lists of servers, and the function that makes our type of an item of each."""


class McpServer:
    """An MCP server, or the reason why it cannot be used."""

    def __init__(
        self,
        server: v1.McpServer | Unknown,
        surroundings: Surroundings,
        *,
        deadline: float,
        on_failure: Failed,
    ) -> None:
        self.name = name_of(server)
        self.failure: McpServerError | None = None
        """Why the server cannot be used; None while it can, or is not known yet."""
        self._server = server
        self._surroundings = surroundings
        self._deadline = deadline
        self._on_failure = on_failure
        self._held: SessionTask | None = None
        self._was_there = False
        self._pause = 0.0
        self._not_before = 0.0
        """The loop's time before which it is not restarted."""
        self._closed = False
        self._connecting = asyncio.Lock()
        self._offers: dict[str, list[Any]] = {}
        self._change_counts: Counter[str] = Counter()
        self._questions = ServerQuestions(surroundings)
        self._calls: list[v1.ToolCallId | None] = []

    # Life

    def start(self) -> None:
        """Begin to connect in the background, unless that has begun."""
        if self._held is None and not self._closed:
            self._held = SessionTask(self.name, self._connection, self._deadline)

    async def close(self) -> None:
        """Close the connection, and wait until the server has ended."""
        self._closed = True
        if self._held is not None:
            await self._held.close()

    async def _there(self) -> Client:
        """The open connection, after a restart if one is needed."""
        async with self._connecting:
            await self._restart_if_gone()
            if self._held is not None:
                await self._held.settled()
                if self._held.client is not None:
                    self._was_there = True
                    return self._held.client
                if self._held.problem is not None:
                    await self._fail(self._held.problem)
        raise self.failure or McpServerError(self.name, "the session has ended")

    async def _restart_if_gone(self) -> None:
        gone = self._held
        now = asyncio.get_running_loop().time()
        if gone is not None and gone.is_over and self._was_there and now >= self._not_before:
            self._pause = min(self._pause * 2, LONGEST_PAUSE) or FIRST_PAUSE
            self._not_before = now + self._pause
            await gone.close()
            self._held = None
            self._offers.clear()
            log.info("restarting MCP server %s", self.name)
        self.start()

    def _connection(self) -> AbstractAsyncContextManager[Client]:
        transport = transport_for(self._server, self._surroundings)  # without the package, it names what to install
        from mcp import Client
        from mcp_types import Implementation

        client = Client(
            transport,
            client_info=Implementation(name="accord", version=__version__),
            elicitation_callback=self._elicit if self._surroundings.can_elicit() else None,
            list_roots_callback=self._roots,
            message_handler=self._hear,
            cache=None,  # the lists are cached here, until the server reports that they have changed
        )
        return _listening(client)

    def _answered(self) -> None:
        """Forget earlier failures, because the server has answered."""
        self._pause = self._not_before = 0.0
        self.failure = None

    async def _fail(self, why: str) -> None:
        """Remember why the server cannot be used; reported once, until it has answered again."""
        if self.failure is not None or self._closed:
            return
        self.failure = McpServerError(self.name, why)
        log.warning("MCP server %s: %s", self.name, why)
        await self._on_failure(self.failure)

    # Messages of the server

    async def _hear(self, message: IncomingMessage) -> None:
        import mcp_types

        match message:
            case mcp_types.ToolListChangedNotification():
                self._changed("tools")
            case mcp_types.ResourceListChangedNotification():
                self._changed("resources")
            case mcp_types.PromptListChangedNotification():
                self._changed("prompts")
            case mcp_types.ElicitCompleteNotification(params=params):
                await self._questions.completed(params.elicitation_id)
            case _:
                pass

    def _changed(self, kind: str) -> None:
        self._change_counts[kind] += 1
        self._offers.pop(kind, None)

    async def _elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG002
        # A server does not report for which call it asks; if only one runs, it is that one.
        of_call = self._calls[0] if len(self._calls) == 1 else None
        return await self._questions.ask(params, of_call)

    async def _roots(self, context: ClientRequestContext) -> ListRootsResult:  # noqa: ARG002
        from mcp_types import ListRootsResult, Root

        return ListRootsResult(
            roots=[Root.model_validate({"uri": Path(root).as_uri()}) for root in self._surroundings.roots]
        )

    # Tools, resources and prompts

    async def offered(self, kind: str) -> list[Any]:
        """Return its tools, resources or prompts; raises McpServerError if it cannot be used.

        The list is cached, and read again after the server has reported a change or was restarted.
        """
        await self._there()
        if kind in self._offers:
            return self._offers[kind]
        count_before = self._change_counts[kind]

        async def listed(client: Client) -> list[Any]:
            if not getattr(client.server_capabilities, kind):
                return []
            pages = _pages(getattr(client, f"list_{kind}"))
            return [_OFFERED[kind](self.name, item) async for page in pages for item in getattr(page, kind)]

        try:
            fresh = await self._ask(listed)
        except ServerGone:
            fresh = await self._ask(listed)  # reading a list has no effects, so it can be repeated
        if self._change_counts[kind] == count_before:  # else the list changed while it was read
            self._offers[kind] = fresh
        return fresh

    # Requests

    async def call(
        self,
        tool: str,
        arguments: dict[str, Json],
        *,
        tool_call_id: v1.ToolCallId | None,
        timeout: float | None,  # noqa: ASYNC109
        on_progress: ToolProgress | None,
    ) -> McpResult:
        """Call a tool."""

        async def call(client: Client) -> mcp_types.CallToolResult:
            return await client.call_tool(tool, arguments, timeout, on_progress)

        self._calls.append(tool_call_id)
        try:
            return catalog.result_of(await self._ask(call))
        finally:
            self._calls.remove(tool_call_id)

    async def read(self, uri: str) -> list[v1.EmbeddedResource]:
        """Read a resource."""
        return catalog.contents_of(await self._ask(lambda client: client.read_resource(uri)))

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[McpMessage]:
        """Let the server fill in a prompt."""
        return catalog.messages_of(await self._ask(lambda client: client.get_prompt(name, arguments)))

    async def _ask(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Send a request when the server is connected; raises McpServerError for every failure."""
        client = await self._there()
        try:
            answer = await ask(client)
        except Exception as error:
            if self._is_gone(error):
                await self._lost(client)
                raise ServerGone(self.name, GONE) from error
            raise McpServerError(self.name, problem(error)) from error
        self._answered()
        return answer

    def _is_gone(self, error: Exception) -> bool:
        from mcp_types import CONNECTION_CLOSED

        return getattr(error, "code", None) == CONNECTION_CLOSED

    async def _lost(self, client: Client) -> None:
        held = self._held
        if held is not None and held.client is client:  # else another request has noticed it first
            held.lose(GONE)
            await self._fail(GONE)


class ServerGone(McpServerError):
    """The server closed the connection during a request."""


@asynccontextmanager
async def _listening(connecting: Client) -> AsyncGenerator[Client]:
    async with connecting as client, subscribed(client):
        yield client


@asynccontextmanager
async def subscribed(client: Client) -> AsyncGenerator[None]:
    """Subscribe to changes of the lists, which servers from protocol version 2026-07-28 on require."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    capabilities = client.server_capabilities
    tools = bool(capabilities.tools and capabilities.tools.list_changed)
    prompts = bool(capabilities.prompts and capabilities.prompts.list_changed)
    resources = bool(capabilities.resources and capabilities.resources.list_changed)
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools or prompts or resources):
        yield
        return
    async with client.listen(
        tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
    ):  # the messages still come to the message handler
        yield


async def _pages(listed: Callable[..., Awaitable[T]]) -> AsyncGenerator[T]:
    cursor: str | None = None
    while True:
        page = await listed(cursor=cursor)
        yield page
        cursor = cast("Any", page).next_cursor
        if cursor is None:
            return


DEADLINE = 30.0
"""Seconds that a server has to start and to answer; some are downloaded first."""


class McpServers:
    """The tools, resources and prompts of a session's MCP servers, and ways to use them.

    A server that cannot be reached is left out, and `on_failure` is called with its error once. A server that dies is
    restarted when it is next needed.
    """

    def __init__(
        self,
        servers: Iterable[v1.McpServer | Unknown],
        surroundings: Surroundings,
        *,
        deadline: float = DEADLINE,
        on_failure: Failed | None = None,
    ) -> None:
        self._servers = [
            McpServer(server, surroundings, deadline=deadline, on_failure=on_failure or _quietly) for server in servers
        ]

    def __len__(self) -> int:
        return len(self._servers)

    # Life

    def start(self) -> None:
        """Begin to connect all servers in the background; otherwise they are connected when first needed."""
        for server in self._servers:
            server.start()

    async def close(self) -> None:
        """Close all connections, and end the servers' processes."""
        await asyncio.gather(*(server.close() for server in self._servers))

    # Tools, resources and prompts

    async def tools(self) -> list[McpTool]:
        """The tools of all servers now."""
        return await self._of_all("tools")

    async def resources(self) -> list[McpResource]:
        """The resources of all servers now."""
        return await self._of_all("resources")

    async def prompts(self) -> list[McpPrompt]:
        """The prompts of all servers now."""
        return await self._of_all("prompts")

    async def failures(self) -> list[McpServerError]:
        """Return the errors of servers that cannot be reached; waits for those that are still connecting."""
        await self._of_all("tools")
        return [server.failure for server in self._servers if server.failure is not None]

    async def tool(self, name: str) -> McpTool:
        """The tool of this name: `server/tool`, or `tool` if only one server has it; raises McpServerError."""
        tools = await self.tools()
        found = [tool for tool in tools if name == tool.qualified_name] or [tool for tool in tools if name == tool.name]
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(tool.qualified_name for tool in found)
            raise McpServerError(found[0].server, f"several servers have a tool {name!r}; name one of {several}")
        missing = [str(server.failure) for server in self._servers if server.failure is not None]
        raise McpServerError(name.partition("/")[0], "; ".join([f"there is no tool {name}", *missing]))

    # Using it

    async def run(
        self,
        tool: McpTool,
        arguments: dict[str, Json] | None = None,
        *,
        tool_call_id: v1.ToolCallId | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        on_progress: ToolProgress | None = None,
    ) -> McpResult:
        """Call a tool; its server's questions to the user meanwhile belong to the tool call `tool_call_id`.

        `timeout` is in seconds. `on_progress` is called with the progress, its total or None, and a message or None,
        each time the server reports it.
        """
        return await self._server(tool.server).call(
            tool.name, arguments or {}, tool_call_id=tool_call_id, timeout=timeout, on_progress=on_progress
        )

    async def read(self, resource: McpResource) -> list[v1.EmbeddedResource]:
        """Read the contents of a resource."""
        return await self._server(resource.server).read(resource.uri)

    async def prompt(self, prompt: McpPrompt, arguments: dict[str, str] | None = None) -> list[McpMessage]:
        """Let its server fill in a prompt."""
        return await self._server(prompt.server).prompt(prompt.name, arguments or {})

    def _server(self, name: str) -> McpServer:
        for server in self._servers:
            if server.name == name:
                return server
        raise McpServerError(name, "this session has no server of that name")

    async def _of_all(self, kind: str) -> list[Any]:
        lists = await asyncio.gather(*(_or_nothing(server.offered(kind)) for server in self._servers))
        return [item for items in lists for item in items]


async def _or_nothing(asked: Awaitable[list[T]]) -> list[T]:
    try:
        return await asked
    except McpServerError:
        return []


async def _quietly(_: McpServerError) -> None:
    """Do nothing; `failures` has the error."""
