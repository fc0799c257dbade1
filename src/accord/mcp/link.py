"""One MCP server: connected, held and let go by one task, and asked from any.

The official package's contexts must be left by the task that entered them (its cancel scopes say so). So a link has an
owner: it enters them, says so, waits until it is told to stop, and leaves them. Nobody cancels it; it is asked to stop,
and while it still connects, its scope is cancelled from outside.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar, cast

from accord import __version__
from accord.errors import McpServerError
from accord.mcp import catalog, content
from accord.mcp.catalog import McpPrompt, McpResource, McpTool
from accord.mcp.content import McpMessage, McpResult
from accord.mcp.elicitation import Questions
from accord.mcp.opening import name_of, transport_for
from accord.mcp.surroundings import Surroundings
from accord.schema import v1
from accord.schema.base import Json, Unknown

if TYPE_CHECKING:
    import anyio
    from mcp import Client
    from mcp.client.session import ClientRequestContext, IncomingMessage
    from mcp_types import ElicitRequestParams, ElicitResult, ListRootsResult

T = TypeVar("T")

CLOSING = 10.0
"""Seconds for a server to end, before its contexts are cancelled; the package's own ladder takes up to six."""

log = logging.getLogger("accord")

Failed = Callable[[McpServerError], Awaitable[None]]


class Link:
    """A connection to one MCP server, or the reason why there is none."""

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
        """Why the server is not there, once that is known."""
        self._server = server
        self._surroundings = surroundings
        self._deadline = deadline
        self._on_failure = on_failure
        self._client: Client | None = None
        self._settled = asyncio.Event()
        self._stop = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        self._owner: asyncio.Task[None] | None = None
        self._offers: dict[str, list[Any]] = {}
        self._told: Counter[str] = Counter()
        self._questions = Questions(surroundings)
        self._calls: list[v1.ToolCallId | None] = []

    # Life

    def start(self) -> None:
        """Begin to connect, in the background, unless that has begun."""
        if self._owner is not None:
            return
        # Its life is the session's, so it takes nothing along from the request in which it happens to begin.
        self._owner = asyncio.create_task(self._own(), name=f"accord mcp {self.name}", context=Context())

    async def close(self) -> None:
        """Let the server go; waits until nothing of it is left."""
        self._stop.set()
        if self._owner is None:
            return
        if not self._settled.is_set() and self._scope is not None:
            self._scope.cancel()
        done, _ = await asyncio.wait([self._owner], timeout=CLOSING)
        if not done and self._scope is not None:
            self._scope.cancel()
            await asyncio.wait([self._owner], timeout=CLOSING)

    async def _own(self) -> None:
        try:
            await self._hold()
        except Exception as error:  # whatever a server does is its own failure, never the session's
            await self._fail(problem(error))
        finally:
            self._settled.set()
            self._client = None

    async def _hold(self) -> None:
        transport = transport_for(self._server, self._surroundings.roots)
        import anyio
        from mcp import Client
        from mcp_types import Implementation

        with anyio.CancelScope(deadline=anyio.current_time() + self._deadline) as self._scope:
            client = Client(
                transport,
                client_info=Implementation(name="accord", version=__version__),
                elicitation_callback=self._elicit if self._surroundings.can_elicit() else None,
                list_roots_callback=self._roots,
                message_handler=self._hear,
                cache=None,  # what a server offers is remembered here, until it says that this has changed
            )
            async with client, self._listening(client):
                self._scope.deadline = math.inf
                self._client = client
                self._settled.set()
                await self._stop.wait()
        if self._scope.cancelled_caught and not self._stop.is_set():
            raise McpServerError(self.name, f"did not answer within {self._deadline:g} seconds")

    async def _fail(self, why: str) -> None:
        if self.failure is not None or self._stop.is_set():
            return
        self.failure = McpServerError(self.name, why)
        self._settled.set()
        log.warning("MCP server %s: %s", self.name, why)
        await self._on_failure(self.failure)

    @asynccontextmanager
    async def _listening(self, client: Client) -> AsyncGenerator[None]:
        """From 2026-07-28 on a server tells that its offers have changed only to those who listen."""
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
        ):  # what it tells comes to the message handler as well
            yield

    # What the server tells and asks

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
        self._told[kind] += 1
        self._offers.pop(kind, None)

    async def _elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG002
        # A server does not say for which call it asks: with one that runs, it can be no other.
        of_call = self._calls[0] if len(self._calls) == 1 else None
        return await self._questions.ask(params, of_call)

    async def _roots(self, context: ClientRequestContext) -> ListRootsResult:  # noqa: ARG002
        from pathlib import Path

        from mcp_types import ListRootsResult, Root

        return ListRootsResult(
            roots=[Root.model_validate({"uri": Path(root).as_uri()}) for root in self._surroundings.roots]
        )

    # What it offers

    async def tools(self) -> list[McpTool]:
        async def all_tools(client: Client) -> list[McpTool]:
            pages = [page async for page in _pages(client.list_tools)] if client.server_capabilities.tools else []
            return [catalog.tool_of(self.name, tool) for page in pages for tool in page.tools]

        return await self._offered("tools", all_tools)

    async def resources(self) -> list[McpResource]:
        async def all_resources(client: Client) -> list[McpResource]:
            there = client.server_capabilities.resources
            pages = [page async for page in _pages(client.list_resources)] if there else []
            return [catalog.resource_of(self.name, resource) for page in pages for resource in page.resources]

        return await self._offered("resources", all_resources)

    async def prompts(self) -> list[McpPrompt]:
        async def all_prompts(client: Client) -> list[McpPrompt]:
            there = client.server_capabilities.prompts
            pages = [page async for page in _pages(client.list_prompts)] if there else []
            return [catalog.prompt_of(self.name, prompt) for page in pages for prompt in page.prompts]

        return await self._offered("prompts", all_prompts)

    async def _offered(self, kind: str, listed: Callable[[Client], Awaitable[list[T]]]) -> list[T]:
        """The list, asked for once, and again after the server said that it has changed."""
        await self._there()
        if kind in self._offers:
            return cast("list[T]", self._offers[kind])
        told = self._told[kind]
        fresh = await self._ask(listed)
        if self._told[kind] == told:  # else what was read is already old
            self._offers[kind] = fresh
        return fresh

    # Asking

    async def call(
        self,
        tool: str,
        arguments: dict[str, Json],
        *,
        tool_call_id: v1.ToolCallId | None,
        timeout: float | None,  # noqa: ASYNC109
    ) -> McpResult:
        self._calls.append(tool_call_id)
        try:
            return content.result_of(
                await self._ask(lambda client: client.call_tool(tool, arguments, read_timeout_seconds=timeout))
            )
        finally:
            self._calls.remove(tool_call_id)

    async def read(self, uri: str) -> list[v1.EmbeddedResource]:
        return content.resource_of(await self._ask(lambda client: client.read_resource(uri)))

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[McpMessage]:
        return content.messages_of(await self._ask(lambda client: client.get_prompt(name, arguments)))

    async def _ask(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Ask the server when it is there; whatever goes wrong is a McpServerError."""
        client = await self._there()
        try:
            return await ask(client)
        except Exception as error:
            raise await self._asked_in_vain(error) from error

    async def _there(self) -> Client:
        if not self._stop.is_set():
            self.start()
            await self._settled.wait()
        if self._client is None or self.failure is not None:
            raise self.failure or McpServerError(self.name, "the session has ended")
        return self._client

    async def _asked_in_vain(self, error: Exception) -> McpServerError:
        from mcp_types import CONNECTION_CLOSED

        if getattr(error, "code", None) == CONNECTION_CLOSED:
            await self._fail("the server has gone")
        return self.failure or McpServerError(self.name, problem(error))


async def _pages(listed: Callable[..., Awaitable[T]]) -> AsyncGenerator[T]:
    cursor: str | None = None
    while True:
        page = await listed(cursor=cursor)
        yield page
        cursor = cast("Any", page).next_cursor
        if cursor is None:
            return


def problem(error: BaseException) -> str:
    """What went wrong, in a line: of a group of errors, the first."""
    if isinstance(error, BaseExceptionGroup):
        return problem(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    if isinstance(error, McpServerError):
        return error.problem
    return str(error) or type(error).__name__
