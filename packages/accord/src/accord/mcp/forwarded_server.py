"""`ForwardedServer`: an MCP server of another component, offered again to an agent that cannot reach it over ACP.

    the agent ── its era of MCP ──▶ a server of the official package ──▶ a client of it ── mcp/message ──▶ the provider

Both ends are the official package's, so the agent may speak any revision of MCP that it knows, and the provider any
form of the wire. The server has exactly what the provider declares.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast
from weakref import WeakSet

import mcp_types
from mcp import Client
from mcp.client._transport import TransportStreams
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    SubscriptionBus,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from accord.mcp.mcp_server import subscribed
from accord.mcp.tool_server import ToolServer

Open = Callable[[], AbstractAsyncContextManager["TransportStreams"]]
"""Makes a transport of the official package to the provider."""


class ForwardedServer(ToolServer):
    """A server that passes each request on to another one."""

    def __init__(self, name: str, open_transport: Open) -> None:
        self.name = name
        self.is_bridged = True
        self._open = open_transport

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Server[Any]]:
        """Connect with the provider, for one run of the server."""
        relay = _Relay()
        client = Client(
            self._open(),
            elicitation_callback=relay.elicit,
            message_handler=relay.heard,
            cache=None,  # the agent's own client decides what to cache
        )
        async with client, relay.listening(client):
            yield relay.server(self.name, client)

    def notifications(self, server: Server[Any]) -> NotificationOptions:
        changes = server.get_request_handler("subscriptions/listen") is not None
        return NotificationOptions(prompts_changed=changes, resources_changed=changes, tools_changed=changes)


class _Relay:
    """Joins a server for the agent with a client of the provider."""

    def __init__(self) -> None:
        self._bus: SubscriptionBus = InMemorySubscriptionBus()
        """Notifies the server's subscriptions; agents of older revisions are notified directly."""
        self._running: list[ServerSession] = []
        """The sessions of requests that have no answer yet: their users may be asked questions."""
        self._connections: WeakSet[Connection] = WeakSet()
        """The connections of agents."""

    # From the agent to the provider

    def server(self, name: str, client: Client) -> Server[Any]:
        """Return a server with the features that the provider declares."""
        offers = client.server_capabilities
        info = client.server_info
        handlers: dict[str, Any] = {}
        if offers.tools:
            handlers |= {
                "on_list_tools": self._pages(client.list_tools),
                "on_call_tool": self._may_ask(
                    client, "call_tool", lambda params: (params.name, params.arguments), tells_progress=True
                ),
            }
        if offers.resources:
            handlers |= {
                "on_list_resources": self._pages(client.list_resources),
                "on_list_resource_templates": self._pages(client.list_resource_templates),
                "on_read_resource": self._may_ask(client, "read_resource", lambda params: (params.uri,)),
            }
        if offers.prompts:
            handlers |= {
                "on_list_prompts": self._pages(client.list_prompts),
                "on_get_prompt": self._may_ask(client, "get_prompt", lambda params: (params.name, params.arguments)),
            }
        if offers.completions:
            handlers["on_completion"] = self._completes(client)
        if any(it and it.list_changed for it in (offers.tools, offers.resources, offers.prompts)):
            handlers["on_subscriptions_listen"] = ListenHandler(self._bus)
        return Server(
            info.name if info else name,
            version=info.version if info else "",
            title=info.title if info else None,
            instructions=client.instructions,
            **handlers,
        )

    def _pages(self, listed: Callable[..., Any]) -> Callable[..., Any]:
        async def handler(_: ServerRequestContext[Any], params: mcp_types.PaginatedRequestParams | None) -> Any:
            return await listed(cursor=params.cursor if params else None)

        return self._watched(handler)

    def _completes(self, client: Client) -> Callable[..., Any]:
        async def handler(_: ServerRequestContext[Any], params: mcp_types.CompleteRequestParams) -> Any:
            known = None if params.context is None else params.context.arguments
            return await client.complete(params.ref, params.argument.model_dump(), known)

        return self._watched(handler)

    def _may_ask(
        self, client: Client, verb: str, arguments: Callable[[Any], tuple[Any, ...]], *, tells_progress: bool = False
    ) -> Callable[..., Any]:
        """Return a handler of a request whose provider may have to ask the user something first."""

        async def handler(context: ServerRequestContext[Any], params: Any) -> Any:
            # Reporting progress does nothing if the agent did not ask for it.
            more: dict[str, Any] = {"progress_callback": context.session.report_progress} if tells_progress else {}
            if not _asks_the_user_itself(context.session):
                return await getattr(client, verb)(*arguments(params), **more)
            more |= {"input_responses": params.input_responses, "request_state": params.request_state}
            return await getattr(client.session, verb)(*arguments(params), **more, allow_input_required=True)

        return self._watched(handler)

    def _watched(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        async def watched(context: ServerRequestContext[Any], params: Any) -> Any:
            session = context.session
            # It has no public name, and a session lasts for one request only.
            self._connections.add(cast("Any", session)._connection)  # noqa: SLF001
            self._running.append(session)
            try:
                return await handler(context, params)
            finally:
                self._running.remove(session)

        return watched

    # From the provider to the agent

    async def elicit(
        self,
        context: ClientRequestContext,  # noqa: ARG002
        params: mcp_types.ElicitRequestParams,
    ) -> mcp_types.ElicitResult:
        """Ask the agent's client of MCP; a question that it cannot ask is declined."""
        # A provider does not report for which call it asks; if several run, it is the oldest.
        session = self._running[0] if self._running else None
        declared = None if session is None else session.client_capabilities
        if session is None or not session.can_send_request or declared is None or declared.elicitation is None:
            return mcp_types.ElicitResult(action="decline")
        asked: Any = mcp_types.ElicitRequest(params=params)
        return await session.send_request(asked, mcp_types.ElicitResult)

    async def heard(self, message: IncomingMessage) -> None:
        """Notify agents that a list has changed."""
        match message:
            case mcp_types.ToolListChangedNotification():
                await self._changed("send_tool_list_changed", ToolsListChanged())
            case mcp_types.ResourceListChangedNotification():
                await self._changed("send_resource_list_changed", ResourcesListChanged())
            case mcp_types.PromptListChangedNotification():
                await self._changed("send_prompt_list_changed", PromptsListChanged())
            case _:
                pass

    async def _changed(self, send: str, event: Any) -> None:
        await self._bus.publish(event)
        for connection in list(self._connections):
            if connection.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                await getattr(connection, send)()

    @asynccontextmanager
    async def listening(self, client: Client) -> AsyncGenerator[None]:
        """Subscribe to changes of the provider's lists while the server runs."""
        async with subscribed(client):
            yield


def _asks_the_user_itself(session: ServerSession) -> bool:
    """Whether the agent's client of MCP accepts a question as the answer, and asks again, as newer revisions
    of MCP do.
    """
    declared = session.client_capabilities
    can_ask = declared is not None and declared.elicitation is not None
    return can_ask and session.protocol_version in MODERN_PROTOCOL_VERSIONS
