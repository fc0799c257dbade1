"""MCP servers of a client's program over HTTP on loopback, for agents that start no processes."""

import asyncio
import gc
import http.client
import json
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

import accord
from accord.mcp.forwarded_server import ForwardedServer
from accord.testing import ScriptedPeer
from accord.transports import Target
from accord.transports.memory_transport import pair
from tests.waiting import DEADLINE


def add(left: int, right: int) -> int:
    """The sum."""
    return left + right


class OnlyHttp(Target):
    """An agent of version 2 that takes MCP servers over HTTP, and in no other way."""

    name = "only HTTP"

    def dial(self):
        here, there = pair()
        self.agent = ScriptedPeer(there, deadline=DEADLINE)
        self.serving = asyncio.create_task(self.serve())
        return here

    async def release(self):
        self.serving.cancel()
        await asyncio.gather(self.serving, return_exceptions=True)

    async def serve(self):
        await self.agent.open()
        asked = await self.agent.expect("initialize")
        capabilities = {"session": {"mcp": {"http": {}}}}
        info = {"name": "only-http", "version": "1"}
        self.agent.answer(asked, {"protocolVersion": 2, "capabilities": capabilities, "info": info})
        opening = await self.agent.expect("session/new")
        self.agent.answer(opening, {"sessionId": "s", "configOptions": []})
        return opening["params"]["mcpServers"]


@asynccontextmanager
async def lent(*servers):
    """The descriptions that an agent got of these servers, while the client is connected."""
    target = OnlyHttp()
    async with accord.connect(target, versions=(2,)) as remote:
        await remote.new_session("/", mcp_servers=servers)
        yield await target.serving


def post(server, message, *, path=None, **headers):
    """Send a request; the status and the body."""
    parts = urlsplit(server["url"])
    given = {header["name"]: header["value"] for header in server["headers"]}
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection = http.client.HTTPConnection(parts.netloc, timeout=DEADLINE)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {name: value for name, value in (usual | given | named).items() if value is not None}
    connection.request("POST", path or parts.path, json.dumps(message), sent)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), answer.headers
    connection.close()
    return found


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


async def test_a_client_of_todays_revision_uses_the_server():
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with lent(accord.tools(add, name="sums")) as [server]:
        headers = {header["name"]: header["value"] for header in server["headers"]}
        async with (
            create_mcp_http_client(headers=headers) as http_client,
            Client(streamable_http_client(server["url"], http_client=http_client)) as client,
        ):
            result = await client.call_tool("add", {"left": 2, "right": 3})
    assert (server["type"], server["name"]) == ("http", "sums")
    assert result.structured_content == {"result": 5}


async def test_a_client_with_the_older_handshake_uses_the_server():
    async with lent(accord.tools(add)) as [server]:
        status, body, headers = await asyncio.to_thread(post, server, INITIALIZE)
        assert status == 200
        assert '"protocolVersion":"2025-06-18"' in body.replace(" ", "")
        session = {"Mcp_Session_Id": headers["mcp-session-id"], "MCP_Protocol_Version": "2025-06-18"}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await asyncio.to_thread(post, server, ready, **session))[0] == 202
        params = {"name": "add", "arguments": {"left": 2, "right": 3}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        status, body, _ = await asyncio.to_thread(post, server, call, **session)
        assert status == 200
        assert '"structuredContent":{"result":5}' in body.replace(" ", "")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"path": "/mcp/99"}, 404),
        ({"path": "/"}, 404),
    ],
    ids=str,
)
async def test_a_request_that_may_not_use_the_server_is_refused(headers, status):
    async with lent(accord.tools(add)) as [server]:
        refused, body, _ = await asyncio.to_thread(post, server, INITIALIZE, **headers)
    assert refused == status
    assert "protocolVersion" not in body


async def test_the_token_of_one_server_opens_no_other():
    async with lent(accord.tools(add, name="one"), accord.tools(add, name="two")) as [one, two]:
        crossed = {**one, "headers": two["headers"]}
        assert (await asyncio.to_thread(post, crossed, INITIALIZE))[0] == 401
        assert (await asyncio.to_thread(post, one, INITIALIZE))[0] == 200
    assert one["url"] != two["url"]


async def test_a_body_that_is_too_long_is_refused():
    async with lent(accord.tools(add)) as [server]:
        status, _, _ = await asyncio.to_thread(post, server, {**INITIALIZE, "padding": "x" * 2_000_000})
    assert status == 413


async def test_the_server_is_reached_on_this_machine_only_and_is_gone_with_the_connection():
    async with lent(accord.tools(add)) as [server]:
        assert urlsplit(server["url"]).hostname == "127.0.0.1"
        await asyncio.to_thread(post, server, INITIALIZE)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.to_thread(post, server, INITIALIZE)


async def test_each_request_to_a_server_that_cannot_be_opened_is_refused(caplog):
    @asynccontextmanager
    async def nowhere():
        raise ConnectionError("the provider is gone")
        yield

    async with lent(ForwardedServer("gone", nowhere)) as [server]:
        for _ in range(2):
            status, body, _ = await asyncio.to_thread(post, server, INITIALIZE)
            assert (status, body) == (502, "the MCP server cannot be reached\n")
    gc.collect()
    assert [it.message for it in caplog.records if it.name == "asyncio"] == []


async def test_a_server_may_be_kept_from_the_bridge():
    with pytest.raises(accord.CapabilityMissing, match="mcp"):
        async with lent(accord.tools(add, bridge=False)):
            pass


def test_the_way_is_chosen_by_what_the_agent_declared():
    from accord.mcp.bridges import way_of

    assert way_of(None, version=1, is_here=True) == "stdio"
    assert way_of({"mcpCapabilities": {"acp": False, "http": True}}, version=1, is_here=True) == "stdio"
    assert way_of({"session": {"mcp": {"stdio": {}, "http": {}}}}, version=2, is_here=True) == "stdio"
    assert way_of({"session": {"mcp": {"http": {}}}}, version=2, is_here=False) is None
    assert way_of({"session": {"mcp": {"acp": {}}}}, version=2, is_here=False) == "acp"
    assert way_of({"session": {}}, version=2, is_here=True) is None
