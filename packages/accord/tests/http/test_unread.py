"""Clients that send requests and read no responses are bounded in memory and in time."""

import asyncio
import contextlib
import socket
import ssl

import pytest

import accord
from accord.http import ServerLimits, serving
from tests.http.talking import an_agent
from tests.waiting import DEADLINE

ASK = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 1000

SMALL = 4096
"""Bytes that the sockets of these clients hold, so that little is enough to fill them."""

PATIENT = ServerLimits(stalled=1.0)


@pytest.fixture(params=["plain", "tls"])
async def greedy(request):
    """A server, and the socket of a client that does not read unless it is told to."""
    tls, options = {}, {}
    if request.param == "tls":
        certificate, key = request.getfixturevalue("certificate")
        tls = {"certificate": certificate, "key": key}
        options = {"ssl": ssl.create_default_context(cafile=certificate), "server_hostname": "127.0.0.1"}
    async with serving(an_agent(), limits=PATIENT, **tls) as server, asyncio.timeout(2 * DEADLINE):
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        bare = socket.socket()
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        bare.setblocking(False)
        await asyncio.get_running_loop().sock_connect(bare, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=bare, limit=SMALL, **options)
        yield reader, writer
        writer.transport.abort()


async def ask_until_cut(writer):
    """Send requests; returns how many were accepted before the server cut the connection."""
    asked = 0
    with contextlib.suppress(OSError):
        while True:
            writer.write(ASK)
            asked += 1000
            await writer.drain()
    return asked


async def test_a_client_that_reads_no_responses_is_disconnected(greedy, caplog):
    _, writer = greedy
    writer.transport.pause_reading()
    asked = await ask_until_cut(writer)
    assert "read none of its responses" in caplog.text
    answered = sum(record.name == "accord.http.access" for record in caplog.records)
    assert answered < asked  # the server stopped answering before the client stopped asking


async def test_a_client_that_reads_late_gets_all_responses(greedy):
    reader, writer = greedy
    for _ in range(3):
        writer.write(ASK)
    rest, found = b"", 0
    while found < 3_000:
        data = rest + await reader.read(65_536)
        found += data.count(b"HTTP/1.1 200 OK")
        rest = data[-14:]


class LeavingReader:
    """The server's side of a GET whose client reads nothing and then leaves, as an ASGI server would play it."""

    def __init__(self):
        self.is_full = asyncio.Event()
        self.is_told = asyncio.Event()
        self.has_left = asyncio.Event()
        self.sent_late = b""

    def leave(self):
        self.is_told.set()
        self.has_left.set()

    async def receive(self):
        await self.is_told.wait()
        return {"type": "http.disconnect"}

    async def send(self, event):
        body = event.get("body", b"")
        if self.has_left.is_set():
            self.sent_late += body
        elif b"data:" in body:
            self.is_full.set()
            await self.has_left.wait()


async def asked(app, method, body=b"", headers=(), client=None):
    """Make one request of the application; returns the headers of its response."""
    answered = []
    arrives = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        return arrives.pop() if arrives else await asyncio.Event().wait()

    async def send(event):
        answered.extend(event.get("headers", ()))

    scope = {"type": "http", "method": method, "path": "/acp", "headers": list(headers)}
    await app(scope, *((receive, send) if client is None else (client.receive, client.send)))
    return dict(answered)


async def test_no_message_is_taken_for_a_client_that_has_left():
    app = accord.http.app(an_agent())
    json = (b"content-type", b"application/json")
    start = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
    connection = (b"acp-connection-id", (await asked(app, "POST", start, [json]))[b"acp-connection-id"])
    accepts = (b"accept", b"text/event-stream")
    client = LeavingReader()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(asked(app, "GET", headers=[accepts, connection], client=client))
        new = b'{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/project","mcpServers":[]}}'
        for number in range(2, 500):
            await asked(app, "POST", new % number, [json, connection])
        await client.is_full.wait()
        client.leave()
    await app.close()
    assert client.sent_late == b""
