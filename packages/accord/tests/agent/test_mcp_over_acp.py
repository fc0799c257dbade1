"""An agent uses the MCP servers of its client, on the wire: by request, and by connection where the client is older."""

import pytest

import accord

SERVER = {"type": "acp", "name": "clock", "serverId": "sv-1"}
TOOLS = {"tools": [{"name": "now", "inputSchema": {"type": "object"}}]}
MODERN = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}


@pytest.fixture
def caller():
    """An agent that calls the tool `now`, and says what came of it."""
    agent = accord.Agent("caller")

    @agent.on_prompt
    async def call(turn):
        try:
            result = await turn.session.mcp.call(turn, "now", timeout=30)
        except accord.McpServerError as error:
            await turn.say(f"error: {error.problem}")
        else:
            await turn.say(result.text)

    return agent


async def prompted(client):
    """A session with the server, in which a prompt is sent."""
    opened = await client.request("session/new", {"cwd": "/", "mcpServers": [SERVER]})
    client.call("session/prompt", {"sessionId": opened["sessionId"], "prompt": [{"type": "text", "text": "go"}]})


async def asked(client, *, method=None):
    """The next request for the server, of this MCP method; updates before it are passed over."""
    while (message := await client.receive()).get("method") != "mcp/message":
        assert message.get("method") == "session/update", message
    if method is not None:
        assert message["params"]["method"] == method
    return message


async def said(client):
    """What the agent says in the turn, to its end."""
    words = []
    while (message := await client.receive()).get("method") == "session/update":
        if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk":
            words.append(message["params"]["update"]["content"]["text"])
    assert message["result"]["stopReason"] == "end_turn"
    return "".join(words)


def text(words):
    return {"content": [{"type": "text", "text": words}], "resultType": "complete"}


async def discovered(client):
    """The server is found to speak by request."""
    request = await asked(client, method="server/discover")
    client.answer(request, {"result": MODERN})
    request = await asked(client, method="tools/list")
    client.answer(request, {"result": TOOLS | {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}})


async def test_requests_name_their_server_and_have_ids_of_their_own(scripted, caller):
    async with scripted(caller) as client:
        await prompted(client)
        first = await asked(client, method="server/discover")
        client.answer(first, {"result": MODERN})
        second = await asked(client, method="tools/list")
        assert first["params"]["serverId"] == second["params"]["serverId"] == "sv-1"
        assert first["params"]["requestId"] != second["params"]["requestId"]
        meta = second["params"]["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        client.answer(second, {"result": TOOLS | {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}})
        call = await asked(client, method="tools/call")
        client.answer(call, {"result": text("noon")})
        assert await said(client) == "noon"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"error": {"code": -32602, "message": "no such tool"}}, "error: no such tool"),
        ({"result": None}, "error: "),
        ({}, "error: mcp/message: the answer must have a result or an error"),
        ([], "error: mcp/message: the result must be an object"),
        ({"error": "bad"}, "error: mcp/message: the answer must have a result or an error"),
    ],
)
async def test_an_error_of_the_server_or_a_bad_answer_fails_the_call_only(scripted, caller, answer, expected):
    async with scripted(caller) as client:
        await prompted(client)
        await discovered(client)
        client.answer(await asked(client, method="tools/call"), answer)
        assert (await said(client)).startswith(expected)


@pytest.mark.parametrize("code", [-33000, -33001, -33002, -32603])
async def test_an_error_of_the_way_to_the_server_fails_the_call(scripted, caller, code):
    async with scripted(caller) as client:
        await prompted(client)
        await discovered(client)
        client.error(await asked(client, method="tools/call"), code, "not now")
        assert await said(client) == "error: not now"


async def test_progress_of_an_answered_request_is_ignored(scripted, caller):
    async with scripted(caller) as client:
        await prompted(client)
        await discovered(client)
        call = await asked(client, method="tools/call")
        progress = {"serverId": "sv-1", "method": "notifications/progress"}
        for request_id in ("unknown", call["params"]["requestId"]):
            params = {"progressToken": call["params"]["params"]["_meta"]["progressToken"], "progress": 1}
            client.tell("mcp/message", progress | {"requestId": request_id, "params": params})
        client.answer(call, {"result": text("noon")})
        assert await said(client) == "noon"


async def test_a_cancelled_turn_cancels_the_message(scripted, caller):
    async with scripted(caller) as client:
        opened = await client.request("session/new", {"cwd": "/", "mcpServers": [SERVER]})
        prompt = {"sessionId": opened["sessionId"], "prompt": [{"type": "text", "text": "go"}]}
        prompted = client.call("session/prompt", prompt)
        await discovered(client)
        call = await asked(client, method="tools/call")
        client.tell("session/cancel", {"sessionId": opened["sessionId"]})
        seen = []
        while not {"$/cancel_request", prompted} <= set(seen):
            message = await client.receive()
            seen.append(message.get("id") or message["method"])
            if message.get("method") == "$/cancel_request":
                assert message["params"]["requestId"] == call["id"]
                client.error(call, -32800)


REFUSALS = [(-32601, "Method not found", None), (-32602, "Invalid params", {"path": "connectionId"})]


@pytest.mark.parametrize(("code", "words", "data"), REFUSALS)
async def test_an_older_client_is_connected_with_and_greeted(scripted, caller, code, words, data):
    async with scripted(caller) as client:
        await prompted(client)
        client.error(await asked(client), code, words, data)
        connecting = await client.expect("mcp/connect")
        assert connecting["params"] == {"serverId": "sv-1", "acpId": "sv-1"}
        client.answer(connecting, {"connectionId": "k-1"})
        client.error(await asked(client, method="server/discover"), -32601, "Method not found")
        hello = await asked(client, method="initialize")
        assert hello["params"]["connectionId"] == "k-1"
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        client.answer(hello, result | {"serverInfo": {"name": "old", "version": "1"}})
        assert (await asked(client, method="notifications/initialized"))["params"]["connectionId"] == "k-1"
        client.answer(await asked(client, method="tools/list"), TOOLS)
        call = await asked(client, method="tools/call")
        # The server asks back over its connection, with a request of the client's.
        client.call("mcp/message", {"connectionId": "k-1", "method": "roots/list"}, id=50)
        assert await client.expect_result(50) == {"roots": [{"uri": "file:///"}]}
        client.answer(call, {"content": [{"type": "text", "text": "noon"}]})
        assert await said(client) == "noon"


async def test_a_message_of_an_unknown_connection_is_refused(scripted, caller):
    async with scripted(caller) as client:
        await prompted(client)
        await discovered(client)
        client.call("mcp/message", {"connectionId": "other", "method": "roots/list"}, id=50)
        await client.expect_error(50, -32602)
        client.answer(await asked(client, method="tools/call"), {"result": text("noon")})


async def test_two_sessions_never_use_one_request_id_at_a_time(scripted, caller):
    async with scripted(caller) as client:
        await prompted(client)
        await prompted(client)
        first, second = await asked(client), await asked(client)
        assert first["params"]["requestId"] != second["params"]["requestId"]


async def test_the_client_is_gone_in_the_middle_of_a_call(scripted, caller):
    """The fixtures see to it that nothing hangs and nothing is left."""
    async with scripted(caller) as client:
        await prompted(client)
        await discovered(client)
        await asked(client, method="tools/call")
