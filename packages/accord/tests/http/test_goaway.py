"""A server that ends its HTTP/2 connections gracefully (RFC 9113, 6.8), as nginx does after `keepalive_requests`."""

import asyncio
import json
from collections import Counter
from contextlib import asynccontextmanager

import h2.connection
import h2.events
from h2.config import H2Configuration
from hyperframe.frame import GoAwayFrame

from accord.http import HttpTransport
from tests.http.talking import editor_of
from tests.waiting import DEADLINE, eventually


class Leaver:
    """A server that numbers nothing, and takes `requests` requests on each connection before it says goodbye."""

    def __init__(self, requests, *, refuses_the_last=False):
        self.requests, self.refuses_the_last = requests, refuses_the_last
        self.connections = []
        self.streams = {}
        self.taken = Counter()

    def send(self, session, message):
        connection, number = self.streams[session]
        connection.say(number, b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n")

    def take(self, message, session):
        method = message.get("method")
        self.taken[method] += 1
        if method == "session/new":
            self.send(None, {"id": message["id"], "result": {"sessionId": "s"}})
        elif method == "session/prompt":
            content = {"type": "text", "text": f"{self.taken[method]} "}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            self.send(session, {"method": "session/update", "params": {"sessionId": session, "update": update}})
            self.send(session, {"id": message["id"], "result": {"stopReason": "end_turn"}})


class Connection(asyncio.Protocol):
    def __init__(self, server):
        self.server, self.http = server, h2.connection.H2Connection(H2Configuration(client_side=False))
        self.bodies, self.heads, self.opened, self.goodbye = {}, {}, 0, None
        server.connections.append(self)

    def connection_made(self, transport):
        self.transport = transport
        self.http.initiate_connection()

    def data_received(self, data):
        for event in self.http.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self.heads[event.stream_id] = {name.decode(): value.decode() for name, value in event.headers}
                self.bodies[event.stream_id] = b""
                self.opened += 1
                self.leave_in_time(event.stream_id)
            elif isinstance(event, h2.events.DataReceived):
                self.bodies[event.stream_id] += event.data
            elif isinstance(event, h2.events.StreamEnded) and not self.is_refused(event.stream_id):
                self.answer(event.stream_id, self.heads[event.stream_id])
        self.transport.write(self.http.data_to_send())

    def leave_in_time(self, number):
        if self.opened == self.server.requests:
            self.goodbye = number - 2 if self.server.refuses_the_last else number
            self.transport.write(self.http.data_to_send() + GoAwayFrame(0, last_stream_id=self.goodbye).serialize())

    def is_refused(self, number):
        return self.goodbye is not None and number > self.goodbye

    def answer(self, number, head):
        session = head.get("acp-session-id")
        if head[":method"] == "GET":
            self.http.send_headers(number, [(":status", "200"), ("content-type", "text/event-stream")])
            self.server.streams[session] = self, number
            return
        message = json.loads(self.bodies[number] or b"{}")
        if message.get("method") == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {}}
            self.http.send_headers(number, [(":status", "200"), ("acp-connection-id", "c")])
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            self.http.send_data(number, json.dumps(answer).encode(), end_stream=True)
        else:
            self.http.send_headers(number, [(":status", "202")], end_stream=True)
            self.server.take(message, session)

    def say(self, number, data):
        self.http.send_data(number, data)
        self.transport.write(self.http.data_to_send())


@asynccontextmanager
async def leaving(requests, **how):
    server = Leaver(requests, **how)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(server), "127.0.0.1", 0)
    try:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/acp"
        async with asyncio.timeout(DEADLINE), editor_of(HttpTransport(url, http2=True)) as editor:
            yield server, editor
    finally:
        listening.close()
        for connection in server.connections:
            connection.transport.abort()


async def test_a_session_outlives_many_graceful_ends_of_connections():
    async with leaving(4) as (server, editor):
        session = await editor.open_session()
        for _ in range(20):
            await editor.prompt(session, "go")
        assert editor.text(session) == "".join(f"{number} " for number in range(1, 21))
        assert [server.connections.index(it) for it, _ in server.streams.values()] == [0, 0]
        assert len(server.connections) >= 5
        streams, *drained, _ = server.connections
        await eventually(
            lambda: all(it.transport.is_closing() for it in drained)
        )  # by the client: nothing is left there
        assert not streams.transport.is_closing()


async def test_a_request_that_goaway_leaves_out_is_sent_on_another_connection_once():
    async with leaving(5, refuses_the_last=True) as (server, editor):
        session = await editor.open_session()
        for _ in range(20):
            await editor.prompt(session, "go")
        assert server.taken["session/prompt"] == 20
        assert len(server.connections) > 2


async def test_a_connection_that_breaks_after_goaway_still_ends_the_session():
    async with leaving(4) as (server, editor):
        session = await editor.open_session()
        await editor.prompt(session, "go")
        await editor.prompt(session, "go")
        assert len(server.connections) > 1
        server.connections[0].transport.abort()
        end = await editor.connection.closed()
        assert end.reason == "peer_closed"
        assert "a stream ended" in end.detail
