"""Requests that are refused, cancelled or never answered take bounded memory."""

import asyncio
import json
import socket
import tracemalloc

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection

from accord.errors import INVALID_REQUEST
from accord.http import ServerLimits, serving
from accord.http.server.http_connection import HttpConnection
from accord.http.server.unanswered_requests import UnansweredRequests
from accord.http.server.validation import Posts, Refusal
from accord.http.server.websocket_server import AsgiWebSocket
from accord.jsonrpc.wire_messages import encode_response, parse
from accord.transports import Receiver
from accord.transports.websocket_frames import masking, texts
from tests.http.talking import an_agent
from tests.waiting import DEADLINE, eventually

HANDSHAKE = (
    b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
REFUSED = b"at most 1 sessions"
ROOM = 1024 * 1024
"""Bytes that one read of requests may be answered with, past the limit."""


def call(number, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def new(number):
    return call(number, "session/new", cwd="/", mcpServers=[])


def prompt(number, session="s"):
    return call(number, "session/prompt", sessionId=session, prompt=[])


class Taken(Receiver):
    """A receiver that keeps what an agent was given."""

    def __init__(self):
        self.frames = []

    def received(self, frames):
        self.frames += frames

    def paused(self):
        pass

    def resumed(self):
        pass

    def ended(self, end):
        pass


# Refusals that are not read


async def test_reading_stops_for_a_websocket_client_that_reads_no_refusals():
    async with serving(an_agent(), limits=ServerLimits(sessions=1)) as server, asyncio.timeout(2 * DEADLINE):
        bare = socket.socket()
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        bare.setblocking(False)
        await asyncio.get_running_loop().sock_connect(bare, ("127.0.0.1", int(server.url.split(":")[2].split("/")[0])))
        reader, writer = await asyncio.open_connection(sock=bare)
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        mask = masking()
        writer.write(texts([call(0, "initialize", protocolVersion=1), new(1)], mask))
        await reader.readuntil(b'"sessionId"')
        writer.transport.pause_reading()
        (link,) = server.app._sockets
        asked = 0
        while not link._refusals_wait:
            writer.write(texts([new(asked + number) for number in range(1000)], mask))
            asked += 1000
            await asyncio.sleep(0)
        assert link.unsent < link.limits.unread + ROOM
        writer.transport.resume_reading()
        refused, rest = 0, b""
        while refused < asked:
            rest += await reader.read(65_536)
            refused += rest.count(REFUSED)
            rest = rest[rest.rfind(REFUSED) + len(REFUSED) :] if REFUSED in rest else rest[-len(REFUSED) :]
        writer.transport.abort()


async def test_reading_stops_for_an_asgi_websocket_client_that_reads_no_refusals():
    asked, may_send = 0, asyncio.Event()

    async def receive():
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return {"type": "websocket.receive", "text": new(asked).decode()}

    async def send(_):
        await may_send.wait()

    link = AsgiWebSocket(receive, send, ServerLimits(sessions=1, unread=10_000))
    await link.start(Taken())
    running = asyncio.create_task(link.run())
    await eventually(lambda: link.unsent > link.limits.unread)
    seen = -1
    while seen != asked:  # until nothing more is read, however often the task could go on
        seen = asked
        for _ in range(10):
            await asyncio.sleep(0)
    assert link.unsent < link.limits.unread + 1000
    may_send.set()
    await eventually(lambda: asked > 2 * seen)
    running.cancel()
    await asyncio.wait([running])


# POSTs that are cancelled while they wait


async def test_a_cancelled_post_leaves_nothing_and_can_be_sent_again():
    link, agent = HttpConnection("id"), Taken()
    await link.start(agent)
    link.streams.session("s")
    link.pause_reading()
    body = prompt(1)
    posted = Posts("id", parse(body), body, "s", 1)
    waiting = asyncio.create_task(link.deliver(posted))
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not link.calls.is_busy
    assert link.calls.unanswered == 0
    link.resume_reading()
    await link.deliver(posted)
    await link.deliver(posted)
    assert agent.frames == [body]
    assert link.calls.is_busy


async def test_a_waiting_refusal_is_sent_once_for_a_repeated_request():
    link, agent = HttpConnection("id", limits=ServerLimits(sessions=1, unread=1000)), Taken()
    await link.start(agent)
    await link.deliver(Posts("id", parse(new(1)), new(1)))
    link.send([call(7, "fs/read_text_file", path="/" * 2000)])
    posted = Posts("id", parse(new(2)), new(2), number=5)
    waiting = [asyncio.create_task(link.deliver(posted)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    reader = link.read(None, None)
    assert REFUSED not in await reader.next()
    await asyncio.wait(waiting)
    assert (await reader.next()).count(REFUSED) == 1
    assert agent.frames == [new(1)]


# Requests that wait for an answer


async def test_an_unanswered_request_over_the_limit_is_429():
    link = HttpConnection("id", limits=ServerLimits(requests=2))
    await link.start(Taken())

    async def post(body):
        await link.deliver(Posts("id", parse(body), body))

    await post(call(1, "_x/a"))
    await post(call(2, "_x/b"))
    with pytest.raises(Refusal, match="2 requests") as refused:
        await post(call(3, "_x/c"))
    assert refused.value.status == 429
    link.send([encode_response(1, b"{}")])
    await post(call(3, "_x/c"))


def test_unanswered_prompts_and_closes_are_bounded_and_refused_with_an_error():
    calls = UnansweredRequests(sessions=1, requests=2)
    assert calls.websocket_received(prompt(1)) is None
    assert calls.websocket_received(call(2, "session/close", sessionId="s")) is None
    refusal = json.loads(calls.websocket_received(prompt(3)))
    assert refusal["error"]["code"] == INVALID_REQUEST
    assert "2 requests" in refusal["error"]["message"]
    calls.websocket_sent(encode_response(1, b"{}"))
    assert calls.websocket_received(prompt(3)) is None


def test_the_oldest_requests_of_an_agent_are_forgotten_past_the_limit():
    calls = UnansweredRequests(requests=2)
    for number in 1, 2, 3:
        calls.sent(parse(call(number, "session/request_permission", sessionId=f"s{number}")))
    assert [calls.session_of_ours(number) for number in (1, 2, 3)] == [None, "s2", "s3"]


def test_the_name_of_an_unknown_method_is_not_kept_until_the_agent_answers():
    calls = UnansweredRequests()
    tracemalloc.start()
    try:
        for number in range(20):
            assert calls.websocket_received(call(number, "x" * ROOM)) is None
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert calls.unanswered == 20
    assert held < ROOM


# Connections that are cut in the middle of a request


@pytest.mark.parametrize("sent", [0, 10], ids=["nothing of the body", "a part of the body"])
async def test_an_http2_connection_that_is_cut_within_a_post_leaves_no_tasks(server, sent):
    tasks = asyncio.all_tasks()
    _, writer = await asyncio.open_connection("127.0.0.1", int(server.url.split(":")[2].split("/")[0]))
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    for stream in 1, 3, 5:
        head = {":method": "POST", ":path": "/acp", ":scheme": "http", ":authority": "127.0.0.1"}
        client.send_headers(stream, [*head.items(), ("content-type", "application/json"), ("content-length", "1000")])
        client.send_data(stream, b" " * sent)
    writer.write(client.data_to_send())
    await eventually(lambda: len(asyncio.all_tasks() - tasks) >= 3)
    await eventually(lambda: server.app._bodies.size == 3 * 1000)
    writer.transport.abort()
    await eventually(lambda: not asyncio.all_tasks() - tasks)
    assert server.app._bodies.size == 0
