"""MCP servers that a client lends to an agent, on the wire: in the form of the schema, and in that of the page."""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest
from mcp.server import Server
from mcp.server.mcpserver import Context

import accord
from tests.client.conftest import staged

VERSION = "io.modelcontextprotocol/protocolVersion"
ENVELOPE = {VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
TAKES_ACP = {"mcpCapabilities": {"acp": True}}


def add(left: int, right: int) -> int:
    """The sum."""
    return left + right


async def lent(stage, server):
    """The id under which this server is lent to the agent."""
    opening = asyncio.create_task(stage.remote.new_session("/", mcp_servers=[server]))
    request = await stage.agent.expect("session/new")
    [described] = request["params"]["mcpServers"]
    assert (described["type"], described["name"]) == ("acp", server.name)
    stage.agent.answer(request, {"sessionId": "s"})
    await opening
    return described["serverId"]


def call(server_id, request_id, method, params=None, meta=ENVELOPE):
    fields = (params or {}) | ({"_meta": meta} if meta is not None else {})
    return {"serverId": server_id, "requestId": request_id, "method": method, "params": fields}


SUM = {"name": "add", "arguments": {"left": 2, "right": 3}}


async def test_a_tool_is_called_by_request():
    async with staged(capabilities=TAKES_ACP) as stage:
        server = await lent(stage, accord.tools(add))
        answer = await stage.agent.request("mcp/message", call(server, "r-1", "tools/call", SUM))
        assert answer["result"]["structuredContent"] == {"result": 5}
        assert "error" not in answer


@pytest.mark.parametrize("meta", [None, {}, {"traceparent": "00-1-2-01"}])
async def test_a_request_without_a_version_is_taken_as_of_the_newest(meta):
    async with staged(capabilities=TAKES_ACP) as stage:
        server = await lent(stage, accord.tools(add))
        answer = await stage.agent.request("mcp/message", call(server, "1", "tools/list", meta=meta))
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["add"]


async def test_a_version_that_the_server_does_not_have_is_its_error():
    async with staged(capabilities=TAKES_ACP) as stage:
        server = await lent(stage, accord.tools(add))
        answer = await stage.agent.request(
            "mcp/message", call(server, "1", "tools/list", meta=ENVELOPE | {VERSION: "1999-01-01"})
        )
        assert answer["error"]["code"] == -32022
        assert answer["error"]["data"]["requested"] == "1999-01-01"


async def test_an_error_of_the_server_is_part_of_a_successful_answer():
    async with staged(capabilities=TAKES_ACP) as stage:
        server = await lent(stage, accord.tools(add))
        answer = await stage.agent.request("mcp/message", call(server, "1", "no/such/method"))
        assert answer["error"]["code"] == -32601


async def test_progress_names_the_request_it_belongs_to():
    async def paint(context: Context) -> str:
        await context.report_progress(1, 2)
        return "painted"

    async with staged(capabilities=TAKES_ACP) as stage:
        server = await lent(stage, accord.tools(paint))
        params = {"name": "paint", "arguments": {}}
        meta = ENVELOPE | {"progressToken": "token"}
        asking = asyncio.create_task(
            stage.agent.request("mcp/message", call(server, "r-9", "tools/call", params, meta))
        )
        told = (await stage.agent.expect("mcp/message"))["params"]
        assert (told["serverId"], told["requestId"], told["method"]) == (server, "r-9", "notifications/progress")
        assert told["params"]["progressToken"] == "token"
        assert (await asking)["result"]["content"][0]["text"] == "painted"


async def test_cancelling_the_message_cancels_the_tool():
    running, cancelled = asyncio.Event(), asyncio.Event()

    async def sleep() -> str:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with staged(capabilities=TAKES_ACP) as stage:
        server = await lent(stage, accord.tools(sleep))
        asking = call(server, "1", "tools/call", {"name": "sleep", "arguments": {}})
        stage.agent.send({"jsonrpc": "2.0", "id": 77, "method": "mcp/message", "params": asking})
        async with asyncio.timeout(30):
            await running.wait()
            stage.agent.tell("$/cancel_request", {"requestId": 77})
            await stage.agent.expect_error(77, -32800)
            await cancelled.wait()


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"serverId": "other", "requestId": "1", "method": "tools/list"}, -33001),
        ({"requestId": "1", "method": "tools/list"}, -32602),
        ({"serverId": "SERVER", "method": "tools/list"}, -32602),
        ({"serverId": "SERVER", "requestId": "1"}, -32602),
        ({"serverId": "SERVER", "requestId": "1", "method": "tools/list", "params": []}, -32602),
        ({"serverId": "SERVER", "requestId": "1", "method": "tools/list", "params": {"_meta": 1}}, -32602),
        ({"connectionId": "mcp-9", "method": "tools/list"}, -32602),
    ],
)
async def test_a_bad_envelope_is_the_answers_own_error(params, code):
    async with staged(capabilities=TAKES_ACP) as stage:
        server = await lent(stage, accord.tools(add))
        sent = {key: server if value == "SERVER" else value for key, value in params.items()}
        stage.agent.send({"jsonrpc": "2.0", "id": 1, "method": "mcp/message", "params": sent})
        await stage.agent.expect_error(1, code)


async def test_a_request_id_may_not_be_used_twice_at_a_time_and_there_is_a_limit():
    go_on = asyncio.Event()

    async def wait() -> str:
        await go_on.wait()
        return "waited"

    async with staged(capabilities=TAKES_ACP) as stage:
        server = await lent(stage, accord.tools(wait))
        params = {"name": "wait", "arguments": {}}

        def ask(number, request_id):
            asked = call(server, request_id, "tools/call", params)
            stage.agent.send({"jsonrpc": "2.0", "id": number, "method": "mcp/message", "params": asked})

        for number in range(64):
            ask(number, f"r-{number}")
        ask(100, "r-5")
        await stage.agent.expect_error(100, -32602)
        ask(101, "r-64")
        await stage.agent.expect_error(101, -33000)
        go_on.set()
        answers = [await stage.agent.receive() for _ in range(64)]
        assert {answer["id"] for answer in answers} == set(range(64))


@pytest.mark.parametrize("key", ["serverId", "acpId"])
async def test_an_older_agent_connects_shakes_hands_and_calls(key):
    async with staged(capabilities=TAKES_ACP) as stage:
        agent = stage.agent
        server = await lent(stage, accord.tools(add))
        connection = {"connectionId": (await agent.request("mcp/connect", {key: server}))["connectionId"]}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
        answer = await agent.request("mcp/message", connection | {"method": "initialize", "params": hello})
        assert answer["protocolVersion"] == "2025-06-18"
        agent.tell("mcp/message", connection | {"method": "notifications/initialized"})
        answer = await agent.request("mcp/message", connection | {"method": "tools/call", "params": SUM})
        assert answer["structuredContent"] == {"result": 5}
        assert await agent.request("mcp/disconnect", connection) == {}
        agent.send({"jsonrpc": "2.0", "id": 99, "method": "mcp/message", "params": connection | {"method": "ping"}})
        await agent.expect_error(99, -32602)


async def test_an_error_over_a_connection_is_the_answers_own():
    async with staged(capabilities=TAKES_ACP) as stage:
        server = await lent(stage, accord.tools(add))
        connection = await stage.agent.request("mcp/connect", {"serverId": server})
        message = connection | {"method": "no/such/method"}
        stage.agent.send({"jsonrpc": "2.0", "id": 5, "method": "mcp/message", "params": message})
        await stage.agent.expect_error(5, -32601)


async def test_a_server_that_cannot_start_is_said_to_have_failed(caplog):
    caplog.set_level(logging.CRITICAL)

    @asynccontextmanager
    async def lifespan(_):
        raise RuntimeError("no database")
        yield

    async with staged(capabilities=TAKES_ACP) as stage:
        server = await lent(stage, accord.tools(Server("broken", lifespan=lifespan)))
        asked = call(server, "1", "tools/list")
        stage.agent.send({"jsonrpc": "2.0", "id": 5, "method": "mcp/message", "params": asked})
        await stage.agent.expect_error(5, -33002)
