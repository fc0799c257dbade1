"""`AcpServer` in a program with a web framework of its own: one call for each request that it has read."""

from contextlib import aclosing, asynccontextmanager

import pytest

from accord.compat import acp
from accord.compat.acp._sse import parse_sse_stream
from accord.compat.acp.http import AcpServer
from accord.compat.acp.http.protocol import CONNECTION_ID_HEADER

JSON = "application/json"
OPENING = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


class Agent(acp.Agent):
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, **_):
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, **_):
        return acp.NewSessionResponse(session_id="one")

    async def prompt(self, session_id, **_):
        await self.client.session_update(session_id, acp.update_agent_message_text("hello"))
        return acp.PromptResponse(stop_reason="end_turn")


@pytest.fixture
async def server():
    server = AcpServer(lambda _: Agent())
    yield server
    await server.close()


async def posted(server, message, **given):
    given = {"content_type": JSON, "connection_id": None, "session_id": None, **given}
    return await server.handle_post(message, **given)


def request(number, method, params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@asynccontextmanager
async def messages(server, connection_id, session_id=None):
    """The messages of one stream."""
    async with aclosing(server.open_stream(connection_id=connection_id, session_id=session_id)) as pieces:
        yield parse_sse_stream(pieces)


async def test_a_turn_goes_through_single_requests(server):
    opened = await posted(server, OPENING)
    assert (opened.status, opened.body["id"], opened.body["result"]["protocolVersion"]) == (200, 0, 1)
    connection = opened.headers[CONNECTION_ID_HEADER]
    accepted = await posted(server, request(1, "session/new", {"cwd": "/", "mcpServers": []}), connection_id=connection)
    assert (accepted.status, accepted.body) == (202, None)
    async with messages(server, connection) as of_connection:
        assert (await anext(of_connection))["result"] == {"sessionId": "one"}
    prompt = request(2, "session/prompt", {"sessionId": "one", "prompt": []})
    assert (await posted(server, prompt, connection_id=connection, session_id="one")).status == 202
    async with messages(server, connection, "one") as of_session:
        assert (await anext(of_session))["params"]["update"]["content"]["text"] == "hello"
        assert (await anext(of_session))["result"] == {"stopReason": "end_turn"}


async def test_a_stream_ends_when_its_connection_is_deleted(server):
    connection = (await posted(server, OPENING)).headers[CONNECTION_ID_HEADER]
    async with aclosing(server.open_stream(connection_id=connection, session_id=None)) as pieces:
        assert (await anext(pieces)).startswith(b":")
        assert (await server.handle_delete(connection_id=connection)).status == 202
        assert [piece async for piece in pieces] == []
    gone = await posted(server, request(1, "session/new", {}), connection_id=connection)
    assert (gone.status, gone.body) == (404, {"error": "no such connection"})
    assert (await server.handle_delete(connection_id=connection)).status == 404


async def test_what_cannot_be_answered_is_refused_as_over_a_socket(server):
    connection = (await posted(server, OPENING)).headers[CONNECTION_ID_HEADER]
    prompt = request(1, "session/prompt", {"sessionId": "one", "prompt": []})
    assert (await posted(server, prompt, content_type="text/plain")).status == 415
    assert (await posted(server, [prompt])).status == 501
    assert (await posted(server, prompt)).body == {"error": "missing header Acp-Connection-Id"}
    assert (await posted(server, prompt, connection_id=connection)).body == {"error": "missing header Acp-Session-Id"}


async def test_a_stream_that_would_be_refused_is_told_before_it_is_opened(server):
    def refusal(connection_id, session_id=None):
        return server.validate_stream(connection_id=connection_id, session_id=session_id)

    connection = (await posted(server, OPENING)).headers[CONNECTION_ID_HEADER]
    assert refusal(None).status == 400
    assert refusal("other").status == 404
    assert refusal(connection, "other").status == 404
    assert refusal(connection) is None
    async with aclosing(server.open_stream(connection_id=connection, session_id="other")) as pieces:
        assert [piece async for piece in pieces] == []


async def test_events_that_are_not_json_objects_are_skipped():
    async def chunks():
        for piece in (b"data: 1\n\ndata: {\n", b'\ndata: {"id"', b':7}\n\n: quiet\n\ndata: {"id":8}\n'):
            yield piece

    assert [message async for message in parse_sse_stream(chunks())] == [{"id": 7}, {"id": 8}]
