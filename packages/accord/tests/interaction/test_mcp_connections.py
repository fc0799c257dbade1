"""MCP over ACP in its older forms: by connection, and with a declaration by `id`. The wire is that of other SDKs."""

from __future__ import annotations

import asyncio

import pytest

from accord import Peer
from accord.engine.handlers import Handlers
from accord.errors import PeerError, RequestError
from accord.schema import v1
from accord.testing import ScriptedPeer, connected
from accord.transports.memory_transport import pair

TOOLS = {"tools": [{"name": "echo"}]}


def mcp_host(seen):
    """A client whose MCP server is reached in both forms of `mcp/message`."""
    handlers = Handlers()

    @handlers.on(v1.ConnectMcpRequest)
    def connect(request):
        seen.append(request.acp_id)
        return v1.ConnectMcpResponse(v1.McpConnectionId("k-1"))

    @handlers.on(v1.AnyMcpRequest)
    def call(request):
        if isinstance(request, v1.MessageMcpRequest):
            return v1.MessageMcpResponse(result={"by": request.server_id})
        if request.connection_id != "k-1":
            raise RequestError.invalid_params("no such connection")
        return TOOLS if request.method == "tools/list" else None

    @handlers.on(v1.AnyMcpNotification)
    def tell(notification):
        seen.append((type(notification).__name__, notification.method))

    @handlers.on(v1.DisconnectMcpRequest)
    def disconnect(request):
        seen.append(request.connection_id)

    return handlers


@pytest.fixture
async def scripted_agent():
    """An agent that a script plays, and what its client saw."""
    here, there = pair()
    seen = []
    async with ScriptedPeer(there) as agent, Peer(here, mcp_host(seen), role="client"):
        yield agent, seen


@pytest.mark.parametrize("name", ["acpId", "serverId"])
async def test_a_connection_is_opened_by_either_name_of_the_server(scripted_agent, name):
    agent, seen = scripted_agent
    assert await agent.request("mcp/connect", {name: "sv-1"}) == {"connectionId": "k-1"}
    assert seen == ["sv-1"]


async def test_a_message_on_a_connection_is_answered_with_the_servers_own_result(scripted_agent):
    agent, seen = scripted_agent
    assert await agent.request("mcp/message", {"connectionId": "k-1", "method": "tools/list"}) == TOOLS
    assert await agent.request("mcp/message", {"connectionId": "k-1", "method": "ping", "params": None}) is None
    agent.tell("mcp/message", {"connectionId": "k-1", "method": "notifications/initialized"})
    agent.tell("mcp/message", {"serverId": "sv", "requestId": "r", "method": "notifications/progress"})
    assert await agent.request("mcp/disconnect", {"connectionId": "k-1"}) == {}
    assert seen == [
        ("McpConnectionNotification", "notifications/initialized"),
        ("MessageMcpNotification", "notifications/progress"),
        "k-1",
    ]


async def test_a_message_on_an_unknown_connection_is_answered_with_an_error(scripted_agent):
    agent, _ = scripted_agent
    await agent.expect_error(agent.call("mcp/message", {"connectionId": "k-2", "method": "ping"}), -32602)


async def test_one_handler_serves_both_forms_of_a_message(scripted_agent):
    agent, _ = scripted_agent
    by_request = {"serverId": "sv-1", "requestId": "r-1", "method": "tools/list"}
    assert await agent.request("mcp/message", by_request) == {"result": {"by": "sv-1"}}
    await agent.expect_error(agent.call("mcp/message", {"method": "tools/list"}), -32602)


async def test_a_connection_is_used_from_our_side_too():
    seen = []
    async with connected(client=mcp_host(seen), unstable=True) as both:
        opened = await both.agent.request(v1.ConnectMcpRequest(v1.McpServerAcpId("sv-1")))
        listed = await both.agent.request(v1.McpConnectionRequest(opened.connection_id, "tools/list"))
        assert listed == TOOLS
        await both.agent.notify(v1.McpConnectionNotification(opened.connection_id, "notifications/initialized"))
        with pytest.raises(PeerError, match="no such connection"):
            await both.agent.request(v1.McpConnectionRequest(v1.McpConnectionId("k-9"), "tools/list"))
        assert seen == ["sv-1", ("McpConnectionNotification", "notifications/initialized")]


async def test_an_agent_takes_an_mcp_server_that_is_declared_by_its_older_id():
    handlers = Handlers()
    given: asyncio.Future = asyncio.get_running_loop().create_future()

    @handlers.on(v1.NewSessionRequest)
    def new(request):
        given.set_result(request.mcp_servers)
        return v1.NewSessionResponse(v1.SessionId("s"))

    here, there = pair()
    handlers.on(v1.InitializeRequest)(lambda _: v1.InitializeResponse(1))
    async with ScriptedPeer(here) as editor, Peer(there, handlers, role="agent"):
        await editor.request("initialize", {"protocolVersion": 1})
        await editor.request("session/new", {"cwd": "/", "mcpServers": [{"type": "acp", "name": "t", "id": "sv-1"}]})
        assert await given == [v1.McpServerAcp("t", v1.McpServerAcpId("sv-1"))]
