"""Libraries for HTTP/1.1, HTTP/2 and WebSocket beside each other: processor time for one message, each way.

    pip install h11 wsproto ngh2
    python -m benchmarks.http_libraries

Each row reads or writes the same bytes, whole, as nearly all messages arrive. The figures are microseconds of processor
time, the best of several rounds. docs/design/http-libraries.md holds a recorded run and what follows from it.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from accord.h2.h2_connection import H2Connection
from accord.http.h1 import RequestReader
from accord.transports.websocket_frames import Frames, masking, texts

ROUNDS, EACH = 7, 4_000
LIMIT = 1 << 20

BODY = (
    b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"0123456789abcdef",'
    b'"prompt":[{"type":"text","text":"What is in here?"}]}}'
)
REQUEST = (
    b"POST /acp HTTP/1.1\r\nhost: 127.0.0.1:8000\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\nacp-connection-id: IYWbKqhvYdVQlC0sS0xg\r\n"
    b"acp-protocol-version: 1\r\nacp-session-id: 0123456789abcdef\r\naccord-message: 12\r\ncontent-length: %d\r\n\r\n"
    % len(BODY)
)
UPDATE = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"0123456789abcdef","update":'
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a few words of text"}}}}'
)


def ours_http() -> Sequence[Callable[[], object]]:
    data = REQUEST + BODY
    reader = RequestReader()
    return (lambda: reader.feed(data),)


def httptools_http() -> Sequence[Callable[[], object]]:
    library: Any = importlib.import_module("httptools")

    class Request:
        def __init__(self) -> None:
            self.fields: list[tuple[bytes, bytes]] = []
            self.body = self.url = b""

        def on_url(self, url: bytes) -> None:
            self.url += url

        def on_header(self, name: bytes, value: bytes) -> None:
            self.fields.append((name.lower(), value))

        def on_body(self, body: bytes) -> None:
            self.body += body

    data = REQUEST + BODY
    request = Request()
    parser = library.HttpRequestParser(request)

    def read() -> object:
        request.__init__()
        parser.feed_data(data)
        return parser.get_method(), parser.get_http_version(), request

    return (read,)


def h11_http() -> Sequence[Callable[[], object]]:
    library: Any = importlib.import_module("h11")

    def read() -> object:
        connection = library.Connection(library.SERVER)
        connection.receive_data(REQUEST + BODY)
        events: list[Any] = []
        while not events or type(events[-1]) is not library.EndOfMessage:
            events.append(connection.next_event())
        return events

    return (read,)


def ours_websocket() -> Sequence[Callable[[], object]]:
    mask = masking()
    incoming = texts([UPDATE], mask)
    frames = Frames(LIMIT, masked=True)
    return lambda: frames.feed(incoming), lambda: texts([UPDATE])


def websockets_websocket() -> Sequence[Callable[[], object]]:
    library: Any = importlib.import_module("websockets.protocol")
    connection = library.Protocol(library.Side.SERVER, state=library.State.OPEN, max_size=LIMIT)
    incoming = texts([UPDATE], masking())

    def read() -> object:
        connection.receive_data(incoming)
        return connection.events_received()

    def write() -> object:
        connection.send_text(UPDATE)
        return connection.data_to_send()

    return read, write


def wsproto_websocket() -> Sequence[Callable[[], object]]:
    library: Any = importlib.import_module("wsproto.connection")
    events: Any = importlib.import_module("wsproto.events")
    connection = library.Connection(library.ConnectionType.SERVER)
    incoming = texts([UPDATE], masking())
    text = UPDATE.decode()

    def read() -> object:
        connection.receive_data(incoming)
        return list(connection.events())

    return read, lambda: connection.send(events.TextMessage(text))


REQUEST_FIELDS = (
    (b":method", b"POST"),
    (b":scheme", b"https"),
    (b":authority", b"127.0.0.1:8000"),
    (b":path", b"/acp"),
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"acp-connection-id", b"IYWbKqhvYdVQlC0sS0xg"),
    (b"acp-protocol-version", b"1"),
    (b"acp-session-id", b"0123456789abcdef"),
)
RESPONSE_FIELDS = ((b":status", b"202"), (b"content-length", b"0"), (b"date", b"Mon, 23 Nov 2026 09:00:00 GMT"))


def our_exchange() -> Sequence[Callable[[], object]]:
    client, server = (
        H2Connection(is_client=is_client, stream_window=1 << 16, connection_window=1 << 18, streams=100)
        for is_client in (True, False)
    )

    def exchange() -> object:
        stream = client.open(REQUEST_FIELDS, ends=False)
        client.send_data(stream, BODY, ends=True)
        server.receive(client.output())
        server.acknowledge(stream, len(BODY))
        server.send_headers(stream, RESPONSE_FIELDS, ends=True)
        return client.receive(server.output())

    return (exchange,)


def h2_exchange() -> Sequence[Callable[[], object]]:
    library: Any = importlib.import_module("h2.connection")
    config: Any = importlib.import_module("h2.config")
    client, server = (
        library.H2Connection(config.H2Configuration(client_side=is_client, header_encoding=None))
        for is_client in (True, False)
    )
    client.initiate_connection()
    server.initiate_connection()

    def exchange() -> object:
        stream = client.get_next_available_stream_id()
        client.send_headers(stream, REQUEST_FIELDS)
        client.send_data(stream, BODY, end_stream=True)
        server.receive_data(client.data_to_send())
        server.acknowledge_received_data(len(BODY), stream)
        server.send_headers(stream, RESPONSE_FIELDS, end_stream=True)
        return client.receive_data(server.data_to_send())

    return (exchange,)


def ngh2_exchange() -> Sequence[Callable[[], object]]:
    library: Any = importlib.import_module("ngh2")
    client, server = library.Connection(library.Role.CLIENT), library.Connection(library.Role.SERVER)
    client.initiate_connection()
    server.initiate_connection()

    def exchange() -> object:
        stream = client.send_request(REQUEST_FIELDS)
        client.send_data(stream, BODY, end_stream=True)
        server.receive_data(client.data_to_send())
        server.events()
        server.send_response(stream, RESPONSE_FIELDS, end_stream=True)
        client.receive_data(server.data_to_send())
        return client.events()

    return (exchange,)


def cost(work: Callable[[], object]) -> float:
    """Microseconds of processor time for one call."""
    best = float("inf")
    for _ in range(ROUNDS):
        before = time.process_time()
        for _ in range(EACH):
            work()
        best = min(best, time.process_time() - before)
    return best / EACH * 1e6


def show(what: str, library: str, make: Callable[[], Sequence[Callable[[], object]]]) -> None:
    try:
        made = make()
    except ImportError as missing:
        print(f"| {what} | {library} | not installed: {missing.name} |")
        return
    for way, work in zip((", read", ", write"), made, strict=False):
        print(f"| {what}{way if len(made) > 1 else ''} | {library} | {cost(work):.1f} |")


def main() -> None:
    print("| message | reader | µs |\n|---|---|---|")
    readers = ("httptools with our checks", ours_http), ("httptools alone", httptools_http), ("h11", h11_http)
    for name, make_http in readers:
        show("a POST over HTTP/1.1, read", name, make_http)
    for name, make in ("ours", ours_websocket), ("websockets", websockets_websocket), ("wsproto", wsproto_websocket):
        show("an update over WebSocket", name, make)
    for name, make in ("ours, with hpack", our_exchange), ("h2", h2_exchange), ("ngh2", ngh2_exchange):
        show("a POST and its response over HTTP/2, both ends", name, make)


if __name__ == "__main__":
    main()
