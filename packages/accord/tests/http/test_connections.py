"""The server over plain sockets: requests in parts, pipelined and malformed, and WebSocket frames."""

import asyncio
import base64
import gc
import hashlib
import json
import os
import socket
import sys
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed as Closed

import accord
from accord.http import App, ServerLimits, serving
from accord.http.h1 import RequestReader
from accord.http.server.http1_server import PREFACE
from accord.transports.websocket_frames import (
    CLOSE,
    PING,
    PONG,
    TEXT,
    Frames,
    closed_with,
    closing,
    control,
    masking,
    texts,
)
from accord.transports.websocket_transport import Framed
from tests.http.talking import an_agent, editor_of, nobody_is_connected, transport_to
from tests.waiting import DEADLINE, eventually

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Line:
    """A TCP connection to a server."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self):
        """Status, fields and body of the next answer, whose length it has to say."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.splitlines()
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await self.reader.readexactly(int(fields.get("content-length", 0)))
        return int(first.split()[1]), fields, body

    async def is_closed(self):
        return await self.reader.read() == b""


@pytest.fixture
async def line(server):
    async with a_line(server) as line, asyncio.timeout(DEADLINE):
        yield line


def a_line(server):
    return _Opening(int(server.url.rpartition(":")[2].partition("/")[0]))


class _Opening:
    def __init__(self, port):
        self.port = port

    async def __aenter__(self):
        self.line = Line(*await asyncio.open_connection("127.0.0.1", self.port))
        return self.line

    async def __aexit__(self, *_):
        self.line.writer.close()


def post(body, *fields, length=True):
    size = (b"Content-Length: %d" % len(body),) if length else ()
    head = (b"POST /acp HTTP/1.1", b"Host: 127.0.0.1", b"Content-Type: application/json", *size, *fields, b"", b"")
    return b"\r\n".join(head) + body


INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'


async def test_a_request_that_arrives_in_single_bytes_is_answered(line):
    for byte in post(INITIALIZE):
        await line.send(bytes([byte]))
    status, fields, body = await line.answer()
    assert (status, json.loads(body)["id"]) == (200, 1)
    assert fields["acp-connection-id"]
    assert fields["date"].endswith("GMT")


async def test_pipelined_requests_are_answered_in_order(line):
    await line.send(HEALTH + post(b"[]") + b"\r\n" + HEALTH)
    assert [(await line.answer())[0] for _ in range(3)] == [200, 400, 200]


async def test_a_chunked_body_is_read(line):
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (INITIALIZE[:7], INITIALIZE[7:]))
    await line.send(post(b"", b"Transfer-Encoding: chunked", length=False) + chunks + b"0\r\n\r\n" + HEALTH)
    assert (await line.answer())[0] == 200
    assert (await line.answer())[2] == b"ok"


async def test_expect_100_continue_is_answered(line):
    await line.send(post(INITIALIZE, b"Expect: 100-continue")[: -len(INITIALIZE)])
    assert (await line.answer())[0] == 100
    await line.send(INITIALIZE)
    assert (await line.answer())[0] == 200


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /acp HTTP/1.1\r\n\r\n", 400),
        (b"GET /acp HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /acp HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 70_000, 431),
        (post(b"{}", b"Transfer-Encoding: chunked"), 400),
        (post(b"{}", b"Content-Length: 5"), 400),
        (post(b"", b"Transfer-Encoding: gzip", length=False), 501),
    ],
    ids=["no HTTP", "no host", "two hosts", "a head without end", "chunks and a length", "two lengths", "zipped"],
)
async def test_a_malformed_request_is_answered_and_ends_the_connection(line, request_, status):
    await line.send(request_)
    got, fields, _ = await line.answer()
    assert (got, fields["connection"]) == (status, "close")
    assert await line.is_closed()


async def test_a_message_over_the_limit_is_refused_while_it_is_sent():
    async with (
        serving(App(an_agent(), limits=ServerLimits(body=1000))) as server,
        a_line(server) as line,
        asyncio.timeout(DEADLINE),
    ):
        await line.send(post(b"x" * 5_000_000))
        status, fields, _ = await line.answer()
        assert (status, fields["connection"]) == (413, "close")
        assert await line.is_closed()


async def test_an_http_1_0_client_gets_its_response_and_the_end_of_the_connection(line):
    await line.send(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    status, fields, body = await line.answer()
    assert (status, fields["connection"], body) == (200, "close", b"ok")
    assert await line.is_closed()


async def test_a_response_to_head_has_no_body(line):
    await line.send(HEALTH.replace(b"GET", b"HEAD") + HEALTH)
    head = await line.reader.readuntil(b"\r\n\r\n")
    assert b"content-length: " in head
    assert (await line.answer())[2] == b"ok"


async def test_http2_is_recognized_by_its_preface_in_single_bytes(line):
    for byte in PREFACE:
        await line.send(bytes([byte]))
    assert (await line.reader.readexactly(9))[3] == 4  # a SETTINGS frame


@pytest.mark.parametrize("begun", [HEALTH, PREFACE, b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n"])
async def test_the_parser_of_a_connection_is_freed_without_the_garbage_collector(server, begun):
    def readers():
        return sum(type(it) is RequestReader for it in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        async with a_line(server) as line, asyncio.timeout(DEADLINE):
            await line.send(begun)
            assert await line.reader.read(1)
        await eventually(lambda: readers() == 0)
    finally:
        gc.enable()


async def test_an_idle_connection_does_not_delay_the_end_of_a_server():
    async with serving(an_agent()) as server:
        opening = a_line(server)
        line = await opening.__aenter__()
        await line.send(HEALTH)
        await line.answer()
    assert await line.is_closed()
    await opening.__aexit__()


UPGRADE = (
    b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (b"Version: 13", b"Version: 8", 400),
        (b"Key: AAAA", b"Key: ", 400),
        (b"keep-alive, Upgrade", b"keep-alive", 426),
        (b"/acp", b"/elsewhere", 404),
        (b"\r\n\r\n", b"\r\nOrigin: https://evil.example\r\n\r\n", 403),
        (b"Host: 127.0.0.1", b"Host: evil.example", 421),
    ],
    ids=["version", "key", "connection", "path", "origin", "host"],
)
async def test_a_websocket_without_access_is_refused_before_the_upgrade(line, old, new, status):
    await line.send(UPGRADE.replace(old, new, 1))
    assert (await line.answer())[0] == status


async def opened(line):
    await line.send(UPGRADE)
    assert (await line.answer())[0] == 101
    await line.send(texts([INITIALIZE], masking()))
    return Frames(10**7, masked=False)


async def frames_until(line, frames, kind):
    found = []
    while not any(it == kind for it, _ in found):
        data = await line.reader.read(65536)
        assert data, "the connection ended"
        found += frames.feed(data)
    return found


async def test_messages_that_follow_the_handshake_at_once_are_not_lost():
    async def greet(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        key = next(line for line in head.splitlines() if line.lower().startswith(b"sec-websocket-key:")).split()[1]
        accepted = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        fields = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accepted
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\n" + fields + b"\r\n\r\n" + texts([b"one", b"two"]))
        writer.write(control(CLOSE, closing(1000)))
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    transport = transport_to(f"http://127.0.0.1:{port}/acp", "websocket")
    heard = Heard()
    async with asyncio.timeout(DEADLINE):
        await transport.start(heard)
        assert (await heard.end).reason == "peer_closed"
        await transport.close()
    assert heard.frames == [b"one", b"two"]
    listening.close()


async def test_a_fragmented_message_is_joined_and_a_ping_between_fragments_is_answered(server):
    async with connect(server.url.replace("http", "ws", 1)) as socket, asyncio.timeout(DEADLINE):
        text = INITIALIZE.decode()

        async def fragments():
            yield text[:9]
            await (await socket.ping())
            yield text[9:]

        await socket.send(fragments())
        assert json.loads(await socket.recv())["id"] == 1


@pytest.mark.parametrize(
    ("sent", "code"),
    [(texts([b"{}"]), 1002), (bytes([0xC1, 0x80]) + b"mask", 1002), (control(TEXT, b"\xff", masking()), 1007)],
    ids=["not masked", "compressed", "no text"],
)
async def test_a_protocol_violation_closes_the_websocket_with_its_code(line, server, sent, code):
    frames = await opened(line)
    await line.send(sent)
    found = await frames_until(line, frames, CLOSE)
    assert closed_with(found[-1][1])[0] == code
    await nobody_is_connected(server)


async def test_a_message_over_the_limit_closes_the_websocket_with_1009():
    async with (
        serving(App(an_agent(), limits=ServerLimits(body=1000))) as server,
        connect(server.url.replace("http", "ws", 1)) as socket,
        asyncio.timeout(DEADLINE),
    ):
        await socket.send("x" * 1001)
        with pytest.raises(Closed):
            await socket.recv()
        assert socket.close_code == 1009


async def test_a_reset_websocket_ends_its_connection(line, server):
    await opened(line)
    line.writer.transport.abort()
    await nobody_is_connected(server)


async def test_an_unread_websocket_pauses_its_agent_and_loses_nothing():
    sent = 0
    agent = accord.Agent("talker")

    @agent.on_prompt
    async def talk(turn):
        nonlocal sent
        for _ in range(400):
            await turn.say("x" * 50_000)
            sent += 1

    async with serving(agent) as server, asyncio.timeout(DEADLINE):
        transport = transport_to(server.url, "websocket")
        async with editor_of(transport) as editor:
            session = await editor.open_session()
            transport.pause_reading()
            turn = asyncio.ensure_future(editor.prompt(session, "go"))
            (link,) = server.app._sockets
            before = -1
            while before != sent or link.unsent == 0:  # until it has stopped
                before = sent
                await asyncio.wait([turn], timeout=0.05)
            assert sent < 400
            assert link.unsent < 3_000_000
            transport.resume_reading()
            await turn
            assert len(editor.text(session)) == 400 * 50_000


class Heard:
    """A receiver that keeps what it gets."""

    def __init__(self):
        self.end = asyncio.get_running_loop().create_future()
        self.frames = []
        self._news = asyncio.Event()

    def received(self, frames):
        self.frames += frames
        self._news.set()

    async def more(self):
        """Wait for the next frames."""
        self._news.clear()
        await self._news.wait()

    def paused(self): ...
    def resumed(self): ...

    def ended(self, end):
        self.end.set_result(end)


beating = pytest.mark.parametrize("pair", [0.05], indirect=True)
"""With frequent pings."""


@pytest.fixture(params=[None])
async def pair(request):
    """A server's end, and the bare socket of the other."""
    loop = asyncio.get_running_loop()
    framed = Framed(limit=1000, is_client=False, ping_every=request.param)

    class First(asyncio.Protocol):
        def connection_made(self, transport):
            framed.attach(transport)
            attached.set_result(None)

    attached = loop.create_future()
    listening = await loop.create_server(First, "127.0.0.1", 0)
    line = Line(*await asyncio.open_connection(*listening.sockets[0].getsockname()))
    await attached
    heard = Heard()
    await framed.start(heard)
    async with asyncio.timeout(DEADLINE):
        yield framed, heard, line
    await framed.close(0)
    line.writer.close()
    listening.close()


@beating
async def test_a_peer_that_answers_no_ping_is_dropped(pair):
    _, heard, _ = pair
    assert (await heard.end).reason == "unresponsive"


@beating
async def test_a_peer_that_answers_pings_stays_connected(pair):
    _, heard, line = pair
    frames, pings = Frames(1000, masked=False), 0
    while pings < 5:
        for kind, payload in frames.feed(await line.reader.read(1000)):
            assert kind == PING
            pings += 1
            await line.send(control(0xA, payload, masking()))
    line.writer.close()
    assert (await heard.end).reason in ("peer_closed", "broken")


async def test_messages_sent_before_the_close_frame_are_delivered(pair):
    framed, heard, line = pair
    await line.send(texts([b"one", b"two"], masking()) + control(CLOSE, b"", masking()))
    assert (await heard.end).reason == "peer_closed"
    assert heard.frames == [b"one", b"two"]
    framed.send([b"too late"])
    assert framed.unsent == 0


async def test_a_flush_waits_until_everything_is_written(pair):
    framed, heard, line = pair
    framed.send([os.urandom(500).hex().encode()] * 20_000)
    flushing = asyncio.ensure_future(framed.flush())
    await asyncio.sleep(0)
    assert not flushing.done()
    frames, got = Frames(1000, masked=False), 0
    while got < 20_000:
        got += sum(kind == TEXT for kind, _ in frames.feed(await line.reader.read(2**20)))
    await flushing
    assert framed.unsent == 0
    assert not heard.end.done()


PINGS = 300


@pytest.mark.parametrize("between", [0, 1], ids=["pings alone", "messages between the pings"])
async def test_a_peer_that_sends_pings_and_reads_nothing_makes_one_pong_wait(pair, between):
    framed, heard, line = pair
    framed.send([os.urandom(500).hex().encode()] * 20_000)
    waiting, said = framed.unsent, 0
    for number in range(PINGS):
        await line.send(control(PING, b"%d" % number, masking()) + texts([b"hello"], masking()))
        while len(heard.frames) <= number:
            await heard.more()
        framed.send([b"x"] * between)
        said += 3 * between
    assert waiting > 0
    assert framed.unsent <= waiting + said + len(control(PONG, b"%d" % PINGS))
    frames, pongs, got = Frames(1000, masked=False), [], 0
    while got < 20_000 or pongs[-1:] != [b"%d" % (PINGS - 1)]:
        for kind, payload in frames.feed(await line.reader.read(2**20)):
            got += kind == TEXT
            pongs += [payload] if kind == PONG else []
    assert len(pongs) < PINGS, "the latest ping is answered, and not each"


async def test_pings_of_a_peer_that_reads_slowly_are_answered_while_much_is_sent_to_it(pair):
    framed, _, line = pair
    frames = Frames(1000, masked=False)
    for number in range(5):
        framed.send([os.urandom(500).hex().encode()] * 5_000)
        await line.send(control(PING, b"%d" % number, masking()))
        answered = False
        while not answered:
            framed.send([b"x"])
            answered = (PONG, b"%d" % number) in frames.feed(await line.reader.read(2**16))


ELSEWHERE = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[4])!r})
from accord.http import App
from tests.http.talking import an_agent
app = App(an_agent())
"""


async def test_the_application_runs_in_another_asgi_server(tmp_path):
    (tmp_path / "elsewhere.py").write_text(ELSEWHERE)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        bound = f"fd://{listening.fileno()}"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hypercorn", "--bind", bound, "elsewhere:app"),
            cwd=tmp_path,
            pass_fds=[listening.fileno()],
            stderr=asyncio.subprocess.DEVNULL,
        )
        port = listening.getsockname()[1]
    try:
        for way in ("websocket", "http1"):
            async with editor_of(transport_to(f"http://127.0.0.1:{port}/acp", way)) as editor:
                session = await editor.open_session()
                await editor.prompt(session, "count 50")
                assert editor.text(session) == "".join(f"{number} " for number in range(50))
    finally:
        process.terminate()
        await process.wait()
