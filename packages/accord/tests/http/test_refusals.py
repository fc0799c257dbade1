"""A refused message fails its request, and the client's connection stays open."""

from __future__ import annotations

import asyncio

import pytest

from accord import Handlers, Peer, v1
from accord.errors import PeerError, ProtocolError
from accord.http import serving
from accord.http.client.connection_pool import ConnectionPool
from accord.http.headers import CONNECTION_ID, EVENTS, JSON
from accord.http.server.agent_host import Host
from accord.http.server.app import App
from accord.http.server.server_limits import ServerLimits
from accord.testing import ScriptedPeer
from tests.http.talking import transport_to
from tests.waiting import DEADLINE

HTTP = ("http1", "http2")


class Asking(Host):
    """An agent that asks its client, and says what came of it."""

    name = "asking"

    def __init__(self):
        self.attempts = 0
        self.handlers = Handlers()
        self.handlers.on(v1.InitializeRequest)(self.open)
        self.handlers.on_request("_example.com/ask")(self.ask)
        self.handlers.on_request("_example.com/echo")(lambda params: params)
        self.handlers.on_request("_example.com/big")(lambda params: {"text": "x" * params["size"]})

    def open(self, request):
        self.attempts += 1
        if self.attempts == 1 and request.client_info is not None:
            raise ValueError("not at the first attempt")
        return v1.InitializeResponse(1)

    async def ask(self, params, context):
        try:
            size = (params or {}).get("size", 0)
            return {"got": await context.peer.request_raw("_example.com/asked", {"text": "x" * size}, timeout=DEADLINE)}
        except (PeerError, ProtocolError) as error:
            return {"problem": str(error)}

    async def serve(self, transport, owner):  # noqa: ARG002
        async with Peer(transport, self.handlers, role="agent") as peer:
            await peer.connection.closed()


@pytest.mark.parametrize("http", HTTP)
async def test_a_failed_initialize_opens_nothing_and_can_be_repeated(http):
    async with serving(Asking()) as server, ScriptedPeer(transport_to(server.url, http), deadline=DEADLINE) as script:
        info = {"clientInfo": {"name": "x", "version": "1"}}
        first = script.call("initialize", {"protocolVersion": 1} | info)
        waiting = script.call("_example.com/echo")
        await script.expect_error(first, -32603)
        await script.expect_error(waiting, -32600)
        await script.request("initialize", {"protocolVersion": 1} | info)
        assert await script.request("_example.com/echo", {"a": 1}) == {"a": 1}
        await script.expect_error(script.call("initialize", {"protocolVersion": 1}), -32600)
        assert server.app.connections == 1


@pytest.mark.parametrize("http", HTTP)
async def test_an_answer_that_the_server_refuses_fails_its_request(http):
    async with (
        serving(App(Asking(), limits=ServerLimits(body=10_000))) as server,
        ScriptedPeer(transport_to(server.url, http), deadline=DEADLINE) as script,
    ):
        await script.request("initialize", {"protocolVersion": 1})
        asked = script.call("_example.com/ask")
        script.answer(await script.expect("_example.com/asked"), {"text": "x" * 20_000})
        assert "413" in (await script.expect_result(asked))["problem"]
        await script.expect_silence()


@pytest.mark.parametrize("http", HTTP)
async def test_a_message_too_large_for_the_server_fails_and_the_connection_stays_open(http):
    async with (
        serving(App(Asking(), limits=ServerLimits(body=10_000))) as server,
        ScriptedPeer(transport_to(server.url, http), deadline=DEADLINE) as script,
    ):
        await script.request("initialize", {"protocolVersion": 1})
        await script.expect_error(script.call("_example.com/echo", {"text": "x" * 20_000}), -32600)
        script.tell("_example.com/news", {"text": "x" * 20_000})
        await script.expect_error(None, -32600)
        await script.expect_silence()


@pytest.mark.parametrize("http", HTTP)
async def test_a_message_of_the_agent_over_the_limit_fails_its_request_and_not_the_connection(http):
    handlers = Handlers()
    handlers.on_request("_example.com/asked")(lambda params: {"length": len(params["text"])})
    async with (
        serving(Asking()) as server,
        Peer(transport_to(server.url, http, limit=10_000), handlers, role="client") as client,
    ):
        await client.initialize(v1.InitializeRequest(1), timeout=DEADLINE)
        with pytest.raises(ProtocolError, match=r"of 20,0\d\d bytes is over the limit"):
            await client.request_raw("_example.com/big", {"size": 20_000}, timeout=DEADLINE)
        refused = await client.request_raw("_example.com/ask", {"size": 20_000}, timeout=DEADLINE)
        assert "is over the limit" in refused["problem"]
        assert await client.request_raw("_example.com/ask", {"size": 5_000}, timeout=DEADLINE) == {
            "got": {"length": 5_000}
        }


@pytest.mark.parametrize("http", HTTP)
async def test_a_malformed_answer_fails_its_request(http):
    async with serving(Asking()) as server, ScriptedPeer(transport_to(server.url, http), deadline=DEADLINE) as script:
        await script.request("initialize", {"protocolVersion": 1})
        asked = script.call("_example.com/ask")
        call = await script.expect("_example.com/asked")
        script.send({"jsonrpc": "2.0", "id": call["id"], "result": 1, "error": {"code": 1, "message": "no"}})
        assert "problem" in await script.expect_result(asked)
        await script.expect_silence()


async def test_event_streams_over_the_limit_of_an_http2_connection_use_another():
    body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
    async with serving(App(Asking(), limits=ServerLimits(streams=3))) as server:
        requests = ConnectionPool(server.url, http2=True)
        reading = []
        try:
            async with asyncio.timeout(DEADLINE):
                for _ in range(5):
                    opened = await requests.request("POST", [("content-type", JSON)], body)
                    await opened.body(1000)
                    identity = (CONNECTION_ID, opened.header(CONNECTION_ID))
                    reading.append(await requests.request("GET", [("accept", EVENTS), identity]))
            assert [stream.status for stream in reading] == [200] * 5
        finally:
            for stream in reading:
                await stream.close()
            await requests.close()
