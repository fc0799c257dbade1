"""The limits of the server on counts, sizes and times, and what happens past each."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

import accord
from accord import v1
from accord.http import ServerLimits, serving
from accord.http.client.connection_pool import ConnectionPool
from accord.http.server.http_connection import HttpConnection
from accord.http.server.unanswered_requests import UnansweredRequests
from accord.http.server.validation import Refusal
from accord.jsonrpc.wire_messages import encode_response
from tests.http.talking import WAYS, Editor, an_agent, editor_of, nobody_is_connected, transport_to
from tests.waiting import DEADLINE, eventually

INITIALIZE = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
HANDSHAKE = (
    b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def address(server):
    host, _, port = server.url.removeprefix("http://").removesuffix("/acp").partition(":")
    return host, int(port)


async def raw(server, *parts):
    """A connection on which this was sent."""
    reader, writer = await asyncio.open_connection(*address(server))
    for part in parts:
        writer.write(part)
    await writer.drain()
    return reader, writer


async def all_of(reader, writer):
    """What comes until the server hangs up."""
    async with asyncio.timeout(DEADLINE):
        try:
            got = await reader.read()
        except ConnectionResetError:
            got = b""
    writer.close()
    return got


# How many


async def test_a_session_over_the_limit_of_a_connection_is_refused(way):
    async with serving(an_agent(), limits=ServerLimits(sessions=2)) as server:
        async with editor_of(transport_to(server.url, way)) as editor:
            first, _ = await editor.open_session(), await editor.open_session()
            with pytest.raises(accord.PeerError, match="at most 2 sessions"):
                await editor.open_session()
            with pytest.raises(accord.PeerError, match="at most 2 sessions"):
                await editor.request(v1.LoadSessionRequest("another", "/project", []), timeout=DEADLINE)
            await editor.prompt(first, "still here")
            await editor.request(v1.CloseSessionRequest(first), timeout=DEADLINE)
            assert await editor.open_session()
            with pytest.raises(accord.PeerError, match="at most 2 sessions"):
                await editor.open_session()
        async with editor_of(transport_to(server.url, way)) as another:
            assert await another.open_session()


def test_a_session_that_was_refused_or_loaded_again_does_not_count():
    calls = UnansweredRequests(sessions=1)
    load = b'{"jsonrpc":"2.0","id":%d,"method":"session/load","params":{"sessionId":"%s","cwd":"/","mcpServers":[]}}'
    assert calls.websocket_received(load % (1, b"a")) is None
    calls.websocket_sent(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no"}}')
    assert calls.websocket_received(load % (2, b"b")) is None
    calls.websocket_sent(encode_response(2, b"{}"))
    assert calls.websocket_received(load % (3, b"b")) is None
    assert b"at most 1 sessions" in calls.websocket_received(load % (4, b"c"))


async def test_a_stream_over_the_limit_of_a_connection_is_refused():
    link = HttpConnection("id", limits=ServerLimits(streams=2))
    link.can_load = True
    readers = [link.read(None, None), link.read("a", None), link.read("b", None)]
    with pytest.raises(Refusal) as refused:
        link.read("c", None)
    assert refused.value.status == 429
    readers[1].leave()
    link.read("c", None)


async def test_a_tcp_connection_over_the_limit_is_closed():
    async with serving(an_agent(), limits=ServerLimits(sockets=1)) as server:
        first = await raw(server, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        async with asyncio.timeout(DEADLINE):
            assert b"200" in await first[0].readline()
        assert await all_of(*await raw(server, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")) == b""
        first[1].close()


@pytest.mark.parametrize("name", ["body", "sessions", "heartbeat"])
def test_a_limit_of_zero_raises_an_error(name):
    with pytest.raises(ValueError, match=name):
        ServerLimits(**{name: 0})


# How slow


async def test_a_body_that_arrives_too_slowly_is_408():
    async with serving(an_agent(), limits=ServerLimits(arrival=0.2)) as server:
        head = b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        got = await all_of(*await raw(server, head, b"{"))
        assert got.startswith(b"HTTP/1.1 408")
        assert server.app.connections == 0


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x40\x00\x01\x04\x00\x00\x00\x01",
    ],
    ids=["nothing", "half a head", "HTTP/2 and no request", "HTTP/2 and half a head"],
)
async def test_a_connection_whose_request_headers_never_end_is_closed(begun):
    async with serving(an_agent(), limits=ServerLimits(idle=0.2)) as server:
        got = await all_of(*await raw(server, begun))
        assert b"HTTP/1.1 200" not in got


async def test_an_initialize_whose_client_disconnects_leaves_no_connection():
    silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    async with serving(silent) as server:
        body = INITIALIZE.encode()
        head = b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        _, writer = await raw(server, head % len(body), body)
        async with asyncio.timeout(DEADLINE):
            while not server.app.connections:  # noqa: ASYNC110 - an application has no event for it
                await asyncio.sleep(0)
        writer.close()
        await nobody_is_connected(server)


async def test_a_refused_body_does_not_end_its_http2_connection():
    async with serving(an_agent()) as server:
        requests = ConnectionPool(server.url, http2=True)
        connections = set()
        try:
            for content_type, status in (("text/plain", 415), ("application/json", 413), ("application/json", 400)):
                body = b"x" * (17_000_000 if status == 413 else 200_000)
                async with asyncio.timeout(DEADLINE):
                    response = await requests.request("POST", [("content-type", content_type)], body)
                    await response.body(1000)
                assert response.status == status
                connections.update(requests._multiplexed)
            assert len(connections) == 1
        finally:
            await requests.close()


# Clients that vanish


@pytest.mark.parametrize(
    ("way", "limits", "why"),
    [
        ("websocket", {"heartbeat": 0.2}, "a WebSocket client answered no ping"),
        ("http1", {"reopen": 0.2, "keepalive": 0.1, "abandoned": 0.2}, "the client had no stream and sent no request"),
        ("http2", {"heartbeat": 0.2, "abandoned": 0.2}, "an HTTP/2 client answered no ping"),
    ],
)
async def test_the_connection_of_a_frozen_client_is_closed(way, limits, why, caplog):
    async with serving(an_agent(), limits=ServerLimits(**limits)) as server:
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.http.frozen_client", server.url, way),
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[4],
        )
        try:
            async with asyncio.timeout(DEADLINE):
                assert await client.stdout.readline() == b"open\n"
            assert server.app.connections == 1
            os.kill(client.pid, signal.SIGSTOP)
            await nobody_is_connected(server)
            assert any(why in record.getMessage() for record in caplog.records)
        finally:
            client.kill()
            await client.wait()


@pytest.mark.parametrize("way", ["http1", "http2"])
async def test_a_client_that_opens_its_silent_streams_again_loses_nothing(way, caplog):
    def reopened():
        return sum(" GET /acp 200 " in record.getMessage() for record in caplog.records)

    limits = ServerLimits(reopen=0.05, keepalive=0.02, heartbeat=0.05)
    async with serving(an_agent(), limits=limits) as server, editor_of(transport_to(server.url, way)) as editor:
        session = await editor.open_session()
        for number in range(3):
            before = reopened()
            await eventually(lambda before=before: reopened() >= before + 2)
            await editor.prompt(session, f"count {number + 1}")
        assert editor.text(session) == "0 0 1 0 1 2 "
        assert server.app.connections == 1


async def test_a_websocket_whose_client_answers_pings_stays_open():
    async with serving(an_agent(), limits=ServerLimits(heartbeat=0.05)) as server:
        reader, writer = await raw(server, HANDSHAKE)
        async with asyncio.timeout(DEADLINE):
            await reader.readuntil(b"\r\n\r\n")
            for _ in range(10):
                assert await reader.readexactly(2) == b"\x89\x00"  # a ping
                writer.write(b"\x8a\x80\x00\x00\x00\x00")  # a pong, masked
            assert server.app.connections == 1
            while (await reader.read(2)) == b"\x89\x00":
                pass  # unanswered from now on
        await nobody_is_connected(server)
        writer.close()


async def test_a_websocket_whose_client_reads_nothing_has_a_problem_after_a_while():
    async with serving(an_agent()) as server, asyncio.timeout(DEADLINE):
        reader, writer = await raw(server, HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        (link,) = server.app._sockets
        link.send([b"x" * 1_000_000] * 20)
        now = asyncio.get_running_loop().time()
        assert link.problem(now) is None
        assert "the client read nothing" in link.problem(now + 10_000)
        # Whoever reads is there, also when more is sent meanwhile than is read.
        before = link.unsent
        link.send([b"x" * 1_000_000] * 5)
        while link.unsent >= before + 5_000_000:
            await reader.readexactly(100_000)
        assert link.unsent > before
        assert link.problem(now + 20_000) is None
        while link.unsent:
            await reader.read(2**20)
        assert link.problem(now + 40_000) is None
        writer.close()


# Malformed frames


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (b"\x81\x82\x00\x00\x00\x00\xff\xfe", 1007),
        (b"\x81\x01x", 1002),
        (b"\x83\x80\x00\x00\x00\x00", 1002),
        (b"\xf1\x80\x00\x00\x00\x00", 1002),
        (b"\x88\x82\x00\x00\x00\x00\x00\x05", 1002),
        (b"\x89\xfe\x00\xff\x00\x00\x00\x00" + b"x" * 255, 1002),
        (b"\x01\x81\x00\x00\x00\x00x" * 2, 1002),
        (b"\x81\xff\x00\x00\x00\x00\x00\x10\x00\x01\x00\x00\x00\x00" + b"x" * 1_048_577, 1009),
        (b"\x01\xfe\xff\xff\x00\x00\x00\x00" + b"x" * 65535 + b"\x00\xfe\xff\xff\x00\x00\x00\x00" * 0, None),
    ],
    ids=[
        "no UTF-8",
        "unmasked",
        "unknown kind",
        "reserved bits",
        "bad close code",
        "long ping",
        "text in text",
        "too big",
        "half",
    ],
)
async def test_malformed_frames_are_answered_with_their_close_code(frames, code):
    async with serving(an_agent(), limits=ServerLimits(body=1_000_000)) as server:
        reader, writer = await raw(server, HANDSHAKE)
        async with asyncio.timeout(DEADLINE):
            await reader.readuntil(b"\r\n\r\n")
        writer.write(frames)
        if code is None:  # nothing is wrong with it yet
            assert server.app.connections == 1
            writer.close()
        else:
            got = await all_of(reader, writer)
            assert got[:1] == b"\x88"
            assert int.from_bytes(got[2:4], "big") == code
        await nobody_is_connected(server)


@pytest.mark.parametrize(
    "handshake",
    [
        HANDSHAKE.replace(b"Version: 13", b"Version: 8"),
        HANDSHAKE.replace(b"Sec-WebSocket-Key", b"X"),
        HANDSHAKE + b"early",
    ],
    ids=["another version", "no key", "a frame before the answer"],
)
async def test_a_malformed_handshake_is_400_and_leaves_no_connection(handshake):
    async with serving(an_agent()) as server:
        assert (await all_of(*await raw(server, handshake))).startswith(b"HTTP/1.1 400")
        await nobody_is_connected(server)


async def test_a_fragmented_message_over_the_limit_closes_the_websocket():
    async with serving(an_agent(), limits=ServerLimits(body=1000)) as server:
        async with connect(server.url.replace("http", "ws", 1)) as socket:

            async def pieces():
                for _ in range(1000):
                    yield "é" * 100

            with contextlib.suppress(ConnectionClosed):
                await asyncio.wait_for(socket.send(pieces()), DEADLINE)
            await asyncio.wait_for(socket.wait_closed(), DEADLINE)
            assert socket.close_code == 1009
        await nobody_is_connected(server)


@pytest.mark.parametrize("way", WAYS)
async def test_the_first_message_of_a_client_is_smaller_than_later_ones_may_be(way):
    limits = ServerLimits(opening=100_000, body=1_000_000)
    large = {"_meta": {"x": "y" * 200_000}}
    async with serving(an_agent(), limits=limits) as server, asyncio.timeout(2 * DEADLINE):
        async with Editor(transport_to(server.url, way)) as editor:
            with pytest.raises(accord.AccordError, match=r"413|1009"):
                await editor.initialize(v1.InitializeRequest(1, meta=large))
        async with editor_of(transport_to(server.url, way)) as editor:
            assert await editor.request(v1.NewSessionRequest("/", [], meta=large))


async def test_the_first_message_is_bounded_behind_another_asgi_server_too():
    application = accord.http.app(an_agent(), limits=ServerLimits(opening=1_000))
    large = {"type": "websocket.receive", "text": INITIALIZE + " " * 1_000}
    events, sent = [{"type": "websocket.connect"}, large], []

    async def receive():
        return events.pop(0) if events else await asyncio.Future()

    async def send(event):
        sent.append(event)

    async with asyncio.timeout(DEADLINE):
        await application({"type": "websocket", "path": "/acp", "headers": []}, receive, send)
        await application.close()
    assert [event["type"] for event in sent] == ["websocket.accept", "websocket.close"]
    assert sent[-1]["code"] == 1009


async def test_a_body_for_an_unknown_connection_is_refused_unread():
    async with serving(an_agent()) as server:
        head = b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        reader, writer = await raw(server, head + b"Acp-Connection-Id: x\r\nContent-Length: 16000000\r\n\r\n")
        async with asyncio.timeout(DEADLINE):
            assert b" 404 " in await reader.readline()
        writer.close()


async def test_a_large_message_may_follow_the_first_at_once():
    limits = ServerLimits(opening=1_000, body=1_000_000)
    second = '{"jsonrpc":"2.0","id":2,"method":"session/list","params":{"_meta":{"x":"%s"}}}' % ("y" * 20_000)
    frames = b"".join(Frame(Opcode.TEXT, text.encode()).serialize(mask=True) for text in (INITIALIZE, second))
    async with serving(an_agent(), limits=limits) as server, connect(server.url.replace("http", "ws", 1)) as socket:
        socket.transport.write(frames)
        async with asyncio.timeout(DEADLINE):
            assert [json.loads(await socket.recv())["id"] for _ in range(2)] == [1, 2]


async def test_compression_is_not_negotiated():
    async with serving(an_agent()) as server, connect(server.url.replace("http", "ws", 1)) as socket:
        assert "Sec-WebSocket-Extensions" not in socket.response.headers
        await socket.send(INITIALIZE)
        assert json.loads(await socket.recv())["id"] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of it without reading")
@pytest.mark.parametrize(("waiting", "heartbeat"), [(0, 3600.0), (20_000_000, 0.05)])
async def test_a_websocket_client_that_leaves_is_noticed_while_its_agent_does_not_read(waiting, heartbeat):
    async with serving(an_agent(), limits=ServerLimits(heartbeat=heartbeat)) as server, asyncio.timeout(DEADLINE):
        reader, writer = await raw(server, HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        (link,) = server.app._sockets
        link.pause_reading()  # as for an agent that does not read
        writer.write(b"x" * waiting)  # more than the sockets hold: the end of the connection waits behind it
        assert bool(waiting) == bool(writer.transport.get_write_buffer_size())
        writer.transport.abort()
        await nobody_is_connected(server)
