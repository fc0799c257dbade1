"""WebSocket frames of both our ends, checked with the `websockets` library at the other end."""

import asyncio
import json

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from accord import v1
from accord.transports.websocket_client import WebSocketTransport
from tests.http.talking import Editor
from tests.waiting import DEADLINE


@pytest.mark.requirement("websocket.gives-connection-id", "websocket.text-frames", "websocket.binary-ignored")
async def test_our_server_ignores_binary_frames_and_sends_text(server, caplog):
    async with connect(server.url.replace("http", "ws", 1)) as socket, asyncio.timeout(DEADLINE):
        assert socket.response.headers["Acp-Connection-Id"]
        await socket.send(b"\x00\x01")
        await socket.send(b"\x00\x02")
        await socket.send('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}')
        answer = await socket.recv()
        assert isinstance(answer, str)
        assert json.loads(answer)["result"]["protocolVersion"] == 1
    assert caplog.text.count("sent a binary frame, which is ignored; messages must be text frames") == 1


@pytest.mark.requirement("websocket.initialize-first", "websocket.text-frames", "websocket.binary-ignored")
async def test_our_client_ignores_binary_frames_and_sends_initialize_first_as_text():
    got = []

    async def agent(socket):
        async for message in socket:
            got.append(message)
            await socket.send(b'{"jsonrpc":"2.0","id":0,"result":7}')
            call = json.loads(message)
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": {"protocolVersion": 1}}))

    async with serve(agent, "127.0.0.1", 0) as theirs:
        port = theirs.sockets[0].getsockname()[1]
        async with Editor(WebSocketTransport(f"ws://127.0.0.1:{port}/acp")) as editor:
            await editor.initialize(v1.InitializeRequest(1), timeout=DEADLINE)
            assert editor.connection.statistics().malformed == 0
            assert editor.connection.statistics().frames_in == 1
    assert [isinstance(it, str) for it in got] == [True]
    assert json.loads(got[0])["method"] == "initialize"


async def test_a_server_that_closes_with_an_error_says_why():
    async def agent(socket):
        await socket.recv()
        await socket.close(4001, "out of patience")

    async with serve(agent, "127.0.0.1", 0) as theirs:
        port = theirs.sockets[0].getsockname()[1]
        async with Editor(WebSocketTransport(f"ws://127.0.0.1:{port}/acp")) as editor:
            await editor.notify_raw("_example.com/hello")
            end = await editor.connection.closed()
            assert end.reason == "broken"
            assert "4001: out of patience" in end.detail
