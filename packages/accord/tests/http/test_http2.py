"""HTTP/2 on the server: flow control, floods, refusals, and the end of a connection."""

import asyncio
import contextlib
import json
import socket
from contextlib import asynccontextmanager

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RequestReceived,
    ResponseReceived,
    SettingsAcknowledged,
    StreamEnded,
    StreamReset,
)
from h2.settings import SettingCodes, Settings
from hyperframe.frame import WindowUpdateFrame

from accord.http import ServerLimits, serving
from accord.http.client.connection_pool import ConnectionPool
from accord.http.server import http2_server
from accord.http.server.http2_server import REQUEST
from tests.http.talking import an_agent, editor_of, transport_to
from tests.waiting import DEADLINE, eventually

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
ASK = {"jsonrpc": "2.0", "id": 2, "method": "_example.com/unknown"}

SMALL = 4096
SEGMENT = 536
"""Bytes that these clients' sockets hold, and of a segment: little is then enough to fill the buffers of both ends."""


class Client:
    """One connection, and all events that the server has caused on it."""

    def __init__(self, reader, writer, window):
        self.reader, self.writer = reader, writer
        self.http = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.http.local_settings = Settings(client=True, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.http.initiate_connection()
        self.events = []

    async def flush(self):
        self.writer.write(self.http.data_to_send())
        await self.writer.drain()

    def ask(self, method, path="/acp", *, body=b"", end=True, **headers):
        number = self.http.get_next_available_stream_id()
        target = [(":method", method), (":scheme", "http"), (":authority", "127.0.0.1"), (":path", path)]
        more = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.http.send_headers(number, [*target, *more], end_stream=end and not body)
        if body:
            self.http.send_data(number, body, end_stream=end)
        return number

    def post(self, message, **headers):
        return self.ask("POST", body=json.dumps(message).encode(), content_type="application/json", **headers)

    async def until(self, wanted):
        """Read until an event is as wanted, and return that event."""
        seen = 0
        await self.flush()
        while True:
            for event in self.events[seen:]:
                if wanted(event):
                    return event
            seen = len(self.events)
            if not (data := await self.reader.read(65_536)):
                raise EOFError
            self.events += self.http.receive_data(data)
            if not any(isinstance(event, ConnectionTerminated) for event in self.events):
                await self.flush()

    async def ended(self, number):
        return await self.until(lambda event: isinstance(event, StreamEnded) and event.stream_id == number)

    def response(self, number):
        for event in self.events:
            if isinstance(event, ResponseReceived) and event.stream_id == number:
                return dict(event.headers)
        return None

    def body(self, number):
        found = (event for event in self.events if isinstance(event, DataReceived) and event.stream_id == number)
        return b"".join(event.data for event in found)

    async def health(self):
        number = self.ask("GET", "/healthz")
        await self.ended(number)
        return self.response(number)[":status"], self.body(number)


@asynccontextmanager
async def client_of(server, window=65_535):
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    bare = socket.socket()
    bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
    bare.setblocking(False)
    await asyncio.get_running_loop().sock_connect(bare, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=bare)
    try:
        async with asyncio.timeout(DEADLINE):
            yield Client(reader, writer, window)
    finally:
        writer.transport.abort()


@pytest.fixture
async def client(server):
    async with client_of(server) as client:
        yield client


def is_goodbye(event):
    return isinstance(event, ConnectionTerminated)


def is_reset(number):
    return lambda event: isinstance(event, StreamReset) and event.stream_id == number


# Requests and responses


async def test_many_requests_on_one_connection_are_answered(client):
    numbers = [client.ask("GET", "/healthz") for _ in range(50)]
    for number in numbers:
        await client.ended(number)
        assert (client.response(number)[":status"], client.body(number)) == ("200", b"ok")


async def test_a_head_request_gets_headers_only(client):
    number = client.ask("HEAD", "/healthz")
    await client.ended(number)
    assert client.response(number)["content-length"] == "2"
    assert client.response(number)["date"].endswith("GMT")
    assert client.body(number) == b""


async def test_a_request_without_a_path_is_reset_and_the_others_are_answered(client):
    number = client.http.get_next_available_stream_id()
    client.http.send_headers(number, [(":method", "CONNECT"), (":authority", "127.0.0.1")], end_stream=True)
    reset = await client.until(is_reset(number))
    assert reset.error_code == ErrorCodes.PROTOCOL_ERROR
    assert await client.health() == ("200", b"ok")


async def test_websockets_over_http2_are_not_offered(client):
    await client.until(lambda event: isinstance(event, SettingsAcknowledged))
    assert not client.http.remote_settings.enable_connect_protocol


async def test_a_refused_body_need_not_be_sent_to_its_end(client):
    number = client.ask("POST", body=b"x" * 1000, end=False, content_type="text/plain")
    reset = await client.until(is_reset(number))
    assert client.response(number)[":status"] == "415"
    assert reset.error_code == ErrorCodes.NO_ERROR
    assert await client.health() == ("200", b"ok")


async def test_a_body_that_begins_after_the_whole_response_is_reset(client):
    number = client.ask("POST", end=False, content_type="text/plain")
    await client.ended(number)
    assert not any(is_reset(number)(event) for event in client.events)
    client.http.send_data(number, b"late")
    reset = await client.until(is_reset(number))
    assert (client.response(number)[":status"], reset.error_code) == ("415", ErrorCodes.NO_ERROR)
    assert await client.health() == ("200", b"ok")


# Flow control


async def test_a_window_that_grows_too_far_after_the_whole_response_is_an_error_of_its_stream(client):
    number = client.ask("GET", "/healthz", end=False)
    await client.ended(number)
    for _ in range(2):
        frame = WindowUpdateFrame(number, window_increment=2**31 - 1)
        client.writer.write(frame.serialize())
    reset = await client.until(is_reset(number))
    assert reset.error_code == ErrorCodes.FLOW_CONTROL_ERROR
    assert await client.health() == ("200", b"ok")


async def stream_of(client, connection):
    number = client.ask("GET", accept="text/event-stream", acp_connection_id=connection)
    await client.until(lambda event: isinstance(event, ResponseReceived) and event.stream_id == number)
    return number


async def opened(client):
    number = client.post(INITIALIZE)
    await client.until(lambda event: isinstance(event, ResponseReceived) and event.stream_id == number)
    return client.response(number)["acp-connection-id"]


async def test_a_response_waits_for_its_window_and_holds_up_no_other():
    async with serving(an_agent()) as server, client_of(server, window=8) as client:
        connection = await opened(client)
        stuck = client.ask("GET", accept="text/event-stream", acp_connection_id=connection)
        asked = client.post(ASK, acp_connection_id=connection)
        await client.ended(asked)
        (link,) = server.app._links.values()
        await eventually(lambda: link.streams.waiting_bytes == 0)  # taken for the stream, and waits there
        assert await client.health() == ("200", b"ok")
        assert len(client.body(stuck)) <= 8
        client.http.increment_flow_control_window(10_000, stuck)
        await client.until(lambda _: b'"id":2' in client.body(stuck))


async def test_a_response_whose_window_stays_full_is_cancelled():
    async with serving(an_agent(), limits=ServerLimits(stalled=1.0)) as server, client_of(server, window=8) as client:
        connection = await opened(client)
        stuck = client.ask("GET", accept="text/event-stream", acp_connection_id=connection)
        client.post(ASK, acp_connection_id=connection)
        reset = await client.until(is_reset(stuck))
        assert reset.error_code == ErrorCodes.CANCEL
        # On a busy machine the whole connection may have ended by then.
        await eventually(lambda: not any(link._readers for link in server.app._links.values()))


async def test_a_body_larger_than_the_window_arrives(client):
    body = json.dumps({**INITIALIZE, "params": {"protocolVersion": 1, "_meta": {"x": "y" * 900_000}}}).encode()
    number = client.ask("POST", end=False, content_type="application/json")
    while body:
        room = min(client.http.local_flow_control_window(number), client.http.max_outbound_frame_size, len(body))
        if room:
            client.http.send_data(number, body[:room], end_stream=room == len(body))
            body = body[room:]
            await client.flush()
        else:
            known = len(client.events)
            await client.until(lambda _, known=known: len(client.events) > known)
    await client.ended(number)
    assert client.response(number)[":status"] == "200"


# Floods


FLOOD = 2500
"""More frames without a purpose than a connection may send, also where sending them takes ten seconds."""


async def test_a_client_that_cancels_all_it_asks_for_is_told_to_calm_down(server, client):
    async with editor_of(transport_to(server.url, "http2")) as honest:
        for _ in range(FLOOD):
            client.http.reset_stream(client.ask("GET", "/healthz"), ErrorCodes.CANCEL)
        goodbye = await client.until(is_goodbye)
        assert goodbye.error_code == ErrorCodes.ENHANCE_YOUR_CALM
        session = await honest.open_session()
        await honest.prompt(session, "still here")
        assert honest.text(session) == "still here "


@pytest.mark.parametrize("kind", ["ping", "settings", "empty data"])
async def test_frames_without_a_purpose_end_the_connection(client, kind):
    number = client.ask("POST", end=False, content_type="application/json")
    for _ in range(FLOOD):
        match kind:
            case "ping":
                client.http.ping(b"12345678")
            case "settings":
                client.http.update_settings({SettingCodes.MAX_HEADER_LIST_SIZE: 5000})
            case _:
                client.http.send_data(number, b"")
    goodbye = await client.until(is_goodbye)
    assert goodbye.error_code == ErrorCodes.ENHANCE_YOUR_CALM


@pytest.mark.parametrize("who", ["client", "server"])
async def test_requests_that_are_reset_before_their_answer_leave_no_connection(server, client, who):
    """A window update of 0 bytes makes the server reset the stream, after it has begun to work."""
    opened = []
    for _ in range(FLOOD // REQUEST):
        opened.append(number := client.post(INITIALIZE))
        if who == "client":
            client.http.reset_stream(number, ErrorCodes.CANCEL)
        await client.flush()
        if who == "server":
            client.writer.write(b"\x00\x00\x04\x08\x00" + number.to_bytes(4, "big") + bytes(4))
        await asyncio.sleep(0)
    goodbye = await client.until(is_goodbye)
    assert goodbye.error_code == ErrorCodes.ENHANCE_YOUR_CALM
    answered = sum(isinstance(event, ResponseReceived) for event in client.events)
    await eventually(lambda: len(server.app._links) <= answered)
    assert answered < len(opened)


async def test_a_connection_whose_client_was_not_sent_its_id_ends_at_once(server):
    async with client_of(server, window=8) as client:  # the answer to `initialize` waits for the client's window
        number = client.post(INITIALIZE)
        await client.until(lambda event: isinstance(event, DataReceived))
        assert server.app.connections == 1
        client.http.reset_stream(number, ErrorCodes.CANCEL)
        await client.flush()
        await eventually(lambda: not server.app.connections)


async def test_a_client_that_reads_no_answers_to_its_frames_is_disconnected(server, client, monkeypatch, caplog):
    monkeypatch.setattr(http2_server, "MOST_UNREAD", 10_000)
    number = client.ask("POST", body=b"x", end=False, content_type="text/plain")
    await client.until(is_reset(number))
    client.writer.transport.pause_reading()
    late = b"\x00\x00\x00\x00\x00" + number.to_bytes(4, "big")  # DATA on a stream that was reset, which is answered
    with contextlib.suppress(ConnectionError):
        while not client.writer.transport.is_closing():
            client.writer.write(late * 1000)
            await client.writer.drain()
    assert "reads none of the answers to its frames" in caplog.text


async def test_endless_continuation_frames_end_the_connection(client):
    await client.until(lambda event: isinstance(event, SettingsAcknowledged))
    client.writer.write(b"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82" + b"\x00\x00\x00\x09\x00\x00\x00\x00\x01" * 100)
    goodbye = await client.until(is_goodbye)
    assert goodbye.error_code == ErrorCodes.PROTOCOL_ERROR


async def test_the_number_of_requests_at_once_is_announced():
    async with serving(an_agent(), limits=ServerLimits(streams=7)) as server, client_of(server) as client:
        await client.until(lambda event: isinstance(event, SettingsAcknowledged))
        assert client.http.remote_settings.max_concurrent_streams == 7


# The end


async def test_an_idle_connection_is_told_goodbye_when_the_server_ends():
    async with serving(an_agent()) as server:
        opening = client_of(server)
        client = await opening.__aenter__()
        assert await client.health() == ("200", b"ok")
    goodbye = await client.until(is_goodbye)
    assert goodbye.error_code == ErrorCodes.NO_ERROR
    await opening.__aexit__(None, None, None)


async def test_an_idle_connection_is_told_goodbye_after_its_time():
    async with serving(an_agent(), limits=ServerLimits(idle=0.2)) as server, client_of(server) as client:
        assert await client.health() == ("200", b"ok")
        goodbye = await client.until(is_goodbye)
        assert goodbye.error_code == ErrorCodes.NO_ERROR


async def test_a_request_is_reset_when_the_application_fails(server, client, caplog, monkeypatch):
    def fail(_):
        raise RuntimeError("a defect")

    monkeypatch.setattr(server.app._access, "user", fail)
    number = client.post(INITIALIZE)
    reset = await client.until(is_reset(number))
    assert reset.error_code == ErrorCodes.INTERNAL_ERROR
    assert "serving a request failed" in caplog.text
    caplog.clear()


async def test_a_request_that_is_cancelled_resets_its_stream_at_once():
    asked, reset = asyncio.Event(), asyncio.Event()

    async def serve(reader, writer):
        http = H2Connection(H2Configuration(client_side=False))
        http.initiate_connection()
        while not reset.is_set():
            writer.write(http.data_to_send())
            for event in http.receive_data(await reader.read(65_536)):
                if isinstance(event, RequestReceived):
                    asked.set()
                elif isinstance(event, StreamReset):
                    assert event.error_code == ErrorCodes.CANCEL
                    reset.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        requests = ConnectionPool(f"http://127.0.0.1:{port}/acp", http2=True)
        request = asyncio.create_task(requests.request("GET", []))
        await asyncio.wait_for(asked.wait(), DEADLINE)
        request.cancel()
        await asyncio.wait_for(reset.wait(), DEADLINE)
        await requests.close()
