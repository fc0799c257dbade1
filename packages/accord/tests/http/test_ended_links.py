"""An ended connection leaves no objects after garbage collection, and no buffers even before it."""

import asyncio
import gc
import json
import os
import socket
import struct
from collections import Counter
from contextlib import asynccontextmanager

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from accord import Peer, RemoteAgent, RemoteSession, Session, memory_pair, v1
from accord.agent.agent_connection import AgentConnection
from accord.engine.connection import Connection
from accord.http import App, serving
from accord.http.server.http_connection import HttpConnection
from accord.http.server.streams import Streams
from accord.http.server.websocket_server import ServerSocket
from accord.jsonrpc.line_frames import FrameReader
from accord.transports.memory_transport import MemoryTransport
from accord.transports.stdio_transport import StdioTransport
from accord.transports.websocket_frames import Frames
from tests.http.talking import an_agent, nobody_is_connected
from tests.waiting import DEADLINE, eventually

CONNECTIONS = 300
AT_ONCE = 20
HALF = 64 * 1024
"""Bytes of a message that never comes to its end."""

LIVE = (
    Connection,
    FrameReader,
    Frames,
    HttpConnection,
    MemoryTransport,
    Streams,
    Peer,
    RemoteAgent,
    RemoteSession,
    ServerSocket,
    AgentConnection,
    Session,
    StdioTransport,
)
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
ASK = {"jsonrpc": "2.0", "id": 1, "method": "_example.com/unknown"}
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing resets the connection."""


def live():
    """How many objects of a connection there are, by class."""
    gc.collect()
    return Counter(type(it).__name__ for it in gc.get_objects() if type(it) in LIVE)


@asynccontextmanager
async def nothing_stays():
    """Whatever connects and leaves in this block leaves nothing."""
    before = live()
    yield
    await eventually(lambda: live() == before)


async def many(connect):
    for _ in range(CONNECTIONS // AT_ONCE):
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(*(connect() for _ in range(AT_ONCE)))


# In one process: memory, and standard streams


async def orderly(here):
    async with Peer(here, role="client") as peer:
        await peer.initialize(v1.InitializeRequest(1), timeout=DEADLINE)


async def test_connections_in_memory_leave_no_objects():
    agent = an_agent()

    async def connect():
        here, there = memory_pair()
        serving_it = asyncio.create_task(agent.serve(there))
        await orderly(here)
        await serving_it

    async with nothing_stays():
        await many(connect)


@pytest.mark.parametrize("end", ["orderly", "half a message"])
async def test_connections_over_standard_streams_leave_no_objects(end):
    agent = an_agent()

    async def connect():
        (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
        serving_it = asyncio.create_task(agent.serve(StdioTransport(their_in, their_out)))
        if end == "orderly":
            await orderly(StdioTransport(our_in, our_out))
        else:
            os.write(our_out, json.dumps(INITIALIZE).encode() + b"\n" + b'{"half":"' + b"x" * (HALF // 2))
            os.close(our_out)
        await serving_it
        if end != "orderly":
            os.close(our_in)

    async with nothing_stays():
        await many(connect)


# Over sockets


class Wire:
    """A bare socket to a server."""

    def __init__(self, server):
        self._port = int(server.url.rpartition(":")[2].partition("/")[0])

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_):
        self.writer.transport.abort()

    def reset(self):
        wire = self.writer.get_extra_info("socket")
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.writer.transport.abort()

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()


class WebSocketClient(Wire):
    async def __aenter__(self):
        await super().__aenter__()
        protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1:{self._port}/acp"))
        protocol.send_request(protocol.connect())
        await self.send(b"".join(protocol.data_to_send()))
        await self.reader.readuntil(b"\r\n\r\n")
        await self.frame(Opcode.TEXT, json.dumps(INITIALIZE).encode())
        await self.reader.readexactly(2)
        return self

    async def frame(self, opcode, data, *, whole=True):
        written = Frame(opcode, data).serialize(mask=True)
        await self.send(written if whole else written[: len(written) // 2])


async def leave_a_websocket(client, end):
    match end:
        case "orderly":
            await client.frame(Opcode.CLOSE, struct.pack(">H", 1000))
            await client.reader.read()
        case "half a message":
            await client.frame(Opcode.TEXT, b"x" * 2 * HALF, whole=False)
        case "half a message in fragments":
            await client.send(Frame(Opcode.TEXT, b"x" * HALF, fin=False).serialize(mask=True))
        case "reset":
            await client.frame(Opcode.TEXT, json.dumps(ASK).encode())
            client.reset()


@pytest.mark.parametrize("end", ["orderly", "half a message", "half a message in fragments", "reset"])
async def test_websockets_leave_no_objects(server, end):
    async def connect():
        async with WebSocketClient(server) as client:
            await leave_a_websocket(client, end)

    async with nothing_stays():
        await many(connect)
        await nobody_is_connected(server)


@pytest.mark.parametrize("end", ["half a message", "half a message in fragments"])
async def test_half_a_message_is_dropped_when_its_websocket_ends(server, end):
    gc.collect()
    gc.disable()
    try:
        for _ in range(AT_ONCE):
            async with WebSocketClient(server) as client:
                await leave_a_websocket(client, end)
        await nobody_is_connected(server)
        sockets = [it for it in gc.get_objects() if type(it) is ServerSocket]
        assert sum(it._frames.buffered for it in sockets) == 0
    finally:
        gc.enable()


class Http1Client(Wire):
    async def post(self, message, connection=None, *, whole=True):
        body = json.dumps(message).encode()
        more = f"Acp-Connection-Id: {connection}\r\n" if connection else ""
        head = f"POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{more}Content-Length: "
        await self.send(f"{head}{len(body)}\r\n\r\n".encode() + (body if whole else body[:-1]))
        return await self.answer() if whole else None

    async def answer(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.splitlines())}
        await self.reader.readexactly(int(fields["content-length"]))
        return fields

    async def delete(self, connection):
        head = f"DELETE /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nAcp-Connection-Id: {connection}\r\n\r\n"
        await self.send(head.encode())
        await self.answer()


class Http2Client(Wire):
    """One stream after the other, with the library."""

    async def __aenter__(self):
        await super().__aenter__()
        self.http = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.http.initiate_connection()
        return self

    def ask(self, method, body=b"", connection=None, *, whole=True):
        number = self.http.get_next_available_stream_id()
        authority = f"127.0.0.1:{self._port}"
        headers = [(":method", method), (":scheme", "http"), (":authority", authority), (":path", "/acp")]
        headers.append(("content-type", "application/json"))
        if connection:
            headers.append(("acp-connection-id", connection))
        self.http.send_headers(number, headers, end_stream=whole and not body)
        if body:
            self.http.send_data(number, body, end_stream=whole)
        return number

    async def answered(self):
        await self.send(self.http.data_to_send())
        fields = {}
        while True:
            for event in self.http.receive_data(await self.reader.read(65_536)):
                if isinstance(event, ResponseReceived):
                    fields = dict(event.headers)
                elif isinstance(event, DataReceived):
                    self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, StreamEnded):
                    await self.send(self.http.data_to_send())
                    return fields
            await self.send(self.http.data_to_send())

    async def post(self, message, connection=None, *, whole=True):
        body = json.dumps(message).encode()
        self.ask("POST", body if whole else body[:-1], connection, whole=whole)
        if whole:
            return await self.answered()
        return await self.send(self.http.data_to_send())

    async def delete(self, connection):
        self.ask("DELETE", connection=connection)
        await self.answered()


def give_up_the_unused(server):
    """As it comes to be when enough time has passed."""
    server.app._close_unused(asyncio.get_running_loop().time() + 1e6)


@pytest.mark.parametrize("end", ["DELETE", "half a message", "reset"])
@pytest.mark.parametrize("client_of", [Http1Client, Http2Client])
async def test_http_connections_leave_no_objects(server, client_of, end):
    async def connect():
        async with client_of(server) as client:
            connection = (await client.post(INITIALIZE))["acp-connection-id"]
            await client.post(ASK, connection)  # its answer waits for a reader
            match end:
                case "DELETE":
                    await client.delete(connection)
                case "half a message":
                    await client.post(ASK, connection, whole=False)
                case "reset":
                    client.reset()

    async with nothing_stays():
        await many(connect)
        give_up_the_unused(server)
        await nobody_is_connected(server)


async def test_answers_that_can_no_longer_be_read_are_dropped():
    async with serving(App(an_agent())) as server, Http1Client(server) as client:
        connection = (await client.post(INITIALIZE))["acp-connection-id"]
        await client.post(ASK, connection)
        (link,) = server.app._links.values()
        await eventually(lambda: link.unsent)
        await client.delete(connection)
        assert link.unsent == 0
